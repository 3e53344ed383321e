"""Every setting there is: its name, type, default and description."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolcrib.core.errors import SettingsError, did_you_mean
from toolcrib.settings.secrets import MASK, Secrets
from toolcrib.settings.values import CONVERTERS

PREFIX = "TOOLCRIB_"
_URL_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")


def _setting(default: Any, description: str, *, choices: Sequence[str] = (), secret: bool = False) -> Any:
    return field(
        default=default,
        repr=False,
        metadata={"description": description, "choices": tuple(choices), "secret": secret},
    )


@dataclass(frozen=True, repr=False)
class Settings:
    """Everything that can be set. ``sources`` says where each value came from."""

    data_dir: str = _setting(
        "", "The folder for everything that is kept; by default toolcrib in the user's data folder."
    )
    store: str = _setting(
        "",
        "Where the tools are: memory:, json:///path, sqlite:///path or mongodb://...; "
        "by default a SQLite file in data_dir.",
    )
    blobs: str = _setting(
        "",
        "Where uploaded bundles are: file:///path, s3://bucket?endpoint=... or memory:; "
        "by default a folder in data_dir.",
    )
    s3_access_key_id: str = _setting(
        "", "Access key of the S3 bucket; without it the places that AWS tools look in.", secret=True
    )
    s3_secret_access_key: str = _setting("", "Secret key of the S3 bucket.", secret=True)
    s3_session_token: str = _setting("", "Session token of the S3 bucket.", secret=True)
    seal_keys: tuple[str, ...] = _setting(
        (),
        "Keys that seal credentials, each 32 bytes in base64; the first seals, all "
        "open. By default one is made in data_dir/keys.",
        secret=True,
    )

    host: str = _setting("127.0.0.1", "The address that the service listens on.")
    port: int = _setting(8000, "The port that the service listens on.")
    public_url: str = _setting("", "The address under which clients reach the service, for links to bundles.")
    allowed_hosts: tuple[str, ...] = _setting((), "Names that clients may use for the service in the Host header.")
    allowed_origins: tuple[str, ...] = _setting((), "Web origins whose pages may call the service.")
    trusted_proxies: tuple[str, ...] = _setting((), "Addresses of proxies whose X-Forwarded-For is believed.")
    max_body_bytes: int = _setting(4_000_000, "The largest body of a request that is not an upload.")
    max_upload_bytes: int = _setting(1_000_000_000, "The largest bundle that can be uploaded.")
    rate: float = _setting(0.0, "Requests a second that each caller may make; 0 means no limit.")
    burst: float = _setting(
        0.0, "Requests that a caller may make at once before the rate counts; 0 means twice the rate."
    )
    log_level: str = _setting("info", "How much is logged.", choices=("debug", "info", "warning", "error"))
    workers: int = _setting(1, "How many processes answer requests.")
    log_requests: bool = _setting(False, "Log every request, not only changes, failures and slow ones.")
    log_format: str = _setting("text", "Log lines for people or for programs.", choices=("text", "json"))

    auth: str = _setting(
        "auto", "Who must authenticate: everybody, or on loopback nobody.", choices=("auto", "required")
    )
    jwt_issuer: str = _setting("", "The issuer of JWT bearer tokens; empty means that none are taken.")
    jwt_audience: str = _setting("", "The audience that a JWT must name.")
    jwt_keys: str = _setting(
        "", "The issuer's public keys: a PEM, a file of one, a JWKS file or the https address of one."
    )
    jwt_algorithms: tuple[str, ...] = _setting(("RS256", "ES256", "EdDSA"), "Signature algorithms that are taken.")
    jwt_role_claim: str = _setting("role", "The claim that holds the role, dotted where it is nested.")

    policy: str = _setting("allow", "Who decides on changes and runs.", choices=("allow", "cedar", "webhook"))
    policy_file: str = _setting("", "The Cedar policies, where policy is cedar.")
    policy_roles: tuple[str, ...] = _setting(
        (), "Roles of principals for the Cedar policies, as principal=role: ada=payments, bob=readers."
    )
    policy_webhook_url: str = _setting(
        "", "The policy service: asked where policy is webhook, and told of every change."
    )
    policy_webhook_secret: str = _setting("", "Signs what the policy service is sent.", secret=True)
    policy_webhook_open: bool = _setting(False, "Allow what the policy service cannot be asked about.")
    policy_webhook_timeout: float = _setting(5.0, "Seconds to wait for the policy service.")
    policy_webhook_cache: float = _setting(
        0.0, "Seconds for which the policy service's answer about an unchanged tool holds; 0 asks every time."
    )
    events_url: str = _setting("", "Who is told of every change; by default the policy service.")
    events_secret: str = _setting("", "Signs the events; by default the policy service's secret.", secret=True)
    events_shape: str = _setting(
        "event",
        "The body of an event: as it was committed, or as a Policy DB registers a tool.",
        choices=("event", "registration"),
    )

    python_modules: tuple[str, ...] = _setting(
        (), "Modules that python bindings may import, with those below them; * means any."
    )
    allowed_addresses: tuple[str, ...] = _setting(
        (), "What tools may reach though it is not public: host names, IP addresses or networks; * is everything."
    )
    denied_addresses: tuple[str, ...] = _setting(
        (), "What tools may not reach though it is public or allowed: host names, IP addresses or networks."
    )
    run_bundles: bool = _setting(True, "Whether uploaded bundles may run here, each in its own process.")
    bundle_user: str = _setting("", "The user that bundles run as, where the service is root: strongly advised there.")
    bundle_network: bool = _setting(True, "Whether bundles may use the network.")
    run_timeout: float = _setting(60.0, "Seconds that a catalogued tool may run where it does not say.")
    highest_safety_level: str = _setting(
        "high",
        "What lies above needs approval before it runs.",
        choices=("safe", "low_risk", "medium", "high", "dangerous"),
    )
    plugins_dir: str = _setting("", "A folder of Python files with tools. AIWHISPERER_PLUGINS_DIR is read too.")
    chromium: str = _setting("", "The Chromium program for the browser tools; by default it is searched for.")
    brain_file: str = _setting("~/.thebrain/config/tools.json", "The file of the brain command.")
    env_file: str = _setting(".env", "Values for the required_config of tools that the environment lacks.")

    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    environ: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __repr__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value, source in self.in_force() if source != "default")
        return f"<Settings {given}>"

    @property
    def data_folder(self) -> Path:
        if self.data_dir:
            return Path(self.data_dir).expanduser()
        return user_folder(self.environ, "XDG_DATA_HOME", ".local/share") / "toolcrib"

    @property
    def store_url(self) -> str:
        return self.store or f"sqlite://{quote(str((self.data_folder / 'toolcrib.db').absolute()))}"

    @property
    def blobs_url(self) -> str:
        return self.blobs or f"file://{quote(str((self.data_folder / 'blobs').absolute()))}"

    @property
    def service_url(self) -> str:
        return (self.public_url or f"http://{self.host}:{self.port}").rstrip("/")

    @property
    def events_receiver(self) -> str:
        return self.events_url or self.policy_webhook_url

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.environ, Path(self.env_file).expanduser())

    def with_changes(self, source: str, **changes: Any) -> Settings:
        """A copy with some values set by somebody else, such as an option of the command line; None changes nothing."""
        given = {name: converted(name, value, source) for name, value in changes.items() if value is not None}
        sources = {**self.sources, **dict.fromkeys(given, source)}
        return dataclasses.replace(self, **given, sources=sources)

    def in_force(self) -> list[tuple[str, Any, str]]:
        """Every setting: its name, its value with secrets masked, and where it came from."""
        derived = {"data_dir": str(self.data_folder), "store": self.store_url, "blobs": self.blobs_url}
        return [
            (name, _shown(name, derived.get(name, getattr(self, name))), self.sources.get(name, "default"))
            for name in FIELDS
        ]


@dataclass(frozen=True)
class Description:
    """One setting, for those who read about it."""

    name: str
    variable: str
    type: str
    default: Any
    description: str
    choices: tuple[str, ...]
    secret: bool


FIELDS = {item.name: item for item in dataclasses.fields(Settings) if "description" in item.metadata}


def describe() -> list[Description]:
    """Every setting there is."""
    return [
        Description(
            name,
            PREFIX + name.upper(),
            str(item.type),
            item.default,
            item.metadata["description"],
            item.metadata["choices"],
            item.metadata["secret"],
        )
        for name, item in FIELDS.items()
    ]


def user_folder(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    named = environ.get(variable, "")
    if named.startswith("/"):
        return Path(named)
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / below_home


def converted(name: str, value: Any, source: str) -> Any:
    if name not in FIELDS:
        raise SettingsError(f"there is no setting {name!r}{did_you_mean(name, FIELDS)}")
    item = FIELDS[name]
    try:
        converted = CONVERTERS[str(item.type)](value)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"setting {name!r} ({source}) {error}") from None
    choices = item.metadata["choices"]
    if choices and converted not in choices:
        raise SettingsError(f"setting {name!r} ({source}) is {converted!r}; use one of {', '.join(map(repr, choices))}")
    return converted


def _shown(name: str, value: Any) -> Any:
    if value and FIELDS[name].metadata["secret"]:
        return MASK
    return _URL_PASSWORD.sub(rf"\1:{MASK}", value) if isinstance(value, str) else value

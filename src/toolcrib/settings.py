"""Settings: the only reader of the environment and of configuration files.

A value comes from a ``TOOLCRIB_*`` variable, else from ``toolcrib.toml``, else from the default. The file is the one
that ``TOOLCRIB_CONFIG`` names, else ``toolcrib.toml`` here, else ``toolcrib/toolcrib.toml`` in the user's
configuration folder. In the file a table is a prefix: ``[jwt] issuer = ...`` is ``jwt_issuer``.
"""

from __future__ import annotations

import dataclasses
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from toolcrib.core.errors import MissingConfigError, SettingsError, did_you_mean

PREFIX = "TOOLCRIB_"
MASK = "********"
_SECRET_WORDS = ("KEY", "SECRET", "PASSWORD", "TOKEN")
_URL_PASSWORD = re.compile(r"(?<=://)([^/@:]*):[^/@]*(?=@)")
_ALIASES = {"plugins_dir": "AIWHISPERER_PLUGINS_DIR"}
_CONFIG_VARIABLE = f"{PREFIX}CONFIG"


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
    policy_webhook_url: str = _setting(
        "", "The policy service: asked where policy is webhook, and told of every change."
    )
    policy_webhook_secret: str = _setting("", "Signs what the policy service is sent.", secret=True)
    policy_webhook_open: bool = _setting(False, "Allow what the policy service cannot be asked about.")
    policy_webhook_timeout: float = _setting(5.0, "Seconds to wait for the policy service.")
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
        (), "Addresses that are not public and that tools may call all the same: IP addresses, networks or host names."
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
        return _user_folder(self.environ, "XDG_DATA_HOME", ".local/share") / "toolcrib"

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
        given = {name: _converted(name, value, source) for name, value in changes.items() if value is not None}
        sources = {**self.sources, **dict.fromkeys(given, source)}
        return dataclasses.replace(self, **given, sources=sources)

    def in_force(self) -> list[tuple[str, Any, str]]:
        """Every setting: its name, its value with secrets masked, and where it came from."""
        derived = {"data_dir": str(self.data_folder), "store": self.store_url, "blobs": self.blobs_url}
        return [
            (name, _shown(name, derived.get(name, getattr(self, name))), self.sources.get(name, "default"))
            for name in _FIELDS
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


_FIELDS = {item.name: item for item in dataclasses.fields(Settings) if "description" in item.metadata}


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
        for name, item in _FIELDS.items()
    ]


def load_settings(environ: Mapping[str, str] | None = None, folder: Path | None = None) -> Settings:
    """What is in force now; SettingsError names a variable or a key that does not exist or has a wrong value."""
    environ = dict(os.environ if environ is None else environ)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for given in (_from_file(environ, folder or Path.cwd()), _from_environment(environ)):
        for name, (value, source) in given.items():
            values[name] = _converted(name, value, source)
            sources[name] = source
    return Settings(**values, sources=sources, environ=environ)


def _from_environment(environ: Mapping[str, str]) -> dict[str, tuple[Any, str]]:
    found: dict[str, tuple[Any, str]] = {}
    for name, variable in _ALIASES.items():
        if variable in environ:
            found[name] = environ[variable], variable
    known = [PREFIX + name.upper() for name in _FIELDS]
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable == _CONFIG_VARIABLE:
            continue
        if variable not in known:
            raise SettingsError(f"there is no setting {variable!r}{did_you_mean(variable, known)}")
        found[variable.removeprefix(PREFIX).lower()] = value, variable
    return found


def _from_file(environ: Mapping[str, str], folder: Path) -> dict[str, tuple[Any, str]]:
    path = _config_file(environ, folder)
    if path is None:
        return {}
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise SettingsError(f"the settings file {str(path)!r} cannot be read: {error}") from None
    found = {}
    for name, value in _flat(data):
        if name not in _FIELDS:
            raise SettingsError(f"there is no setting {name!r} ({path}){did_you_mean(name, _FIELDS)}")
        found[name] = value, str(path)
    return found


def _config_file(environ: Mapping[str, str], folder: Path) -> Path | None:
    if named := environ.get(_CONFIG_VARIABLE):
        return Path(named).expanduser()
    candidates = (
        folder / "toolcrib.toml",
        _user_folder(environ, "XDG_CONFIG_HOME", ".config") / "toolcrib/toolcrib.toml",
    )
    return next((path for path in candidates if path.is_file()), None)


def _user_folder(environ: Mapping[str, str], variable: str, below_home: str) -> Path:
    named = environ.get(variable, "")
    if named.startswith("/"):
        return Path(named)
    home = environ.get("HOME")
    return (Path(home) if home else Path.home()) / below_home


def _flat(data: Mapping[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in data.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}_")
        else:
            yield prefix + key, value


def _converted(name: str, value: Any, source: str) -> Any:
    if name not in _FIELDS:
        raise SettingsError(f"there is no setting {name!r}{did_you_mean(name, _FIELDS)}")
    item = _FIELDS[name]
    try:
        converted = _CONVERTERS[str(item.type)](value)
    except (TypeError, ValueError) as error:
        raise SettingsError(f"setting {name!r} ({source}) {error}") from None
    choices = item.metadata["choices"]
    if choices and converted not in choices:
        raise SettingsError(f"setting {name!r} ({source}) is {converted!r}; use one of {', '.join(map(repr, choices))}")
    return converted


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be text, not {value!r}")
    return value


def _as_list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        raise TypeError("must be a list of texts, in a variable separated by commas")
    return tuple(value)


def _as_flag(value: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in words:
        raise ValueError(f"must be true or false, not {value!r}")
    return words[value.lower()]


def _as_int(value: Any) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"must be a whole number, not {value!r}")
    return number


def _as_number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise ValueError(f"must be a number that is not negative, not {value!r}")
    return number


_CONVERTERS: dict[str, Any] = {
    "str": _as_text,
    "int": _as_int,
    "float": _as_number,
    "bool": _as_flag,
    "tuple[str, ...]": _as_list,
}


def is_secret(name: str) -> bool:
    """Whether a configuration key is masked when it is listed: by the words in it."""
    return any(word in name.upper() for word in _SECRET_WORDS)


def _shown(name: str, value: Any) -> Any:
    if value and _FIELDS[name].metadata["secret"]:
        return MASK
    return _URL_PASSWORD.sub(rf"\1:{MASK}", value) if isinstance(value, str) else value


class Secrets:
    """The configuration keys that tools ask for by ``required_config``: the environment, else the ``.env`` file."""

    def __init__(self, environ: Mapping[str, str], env_file: Path) -> None:
        self._environ = environ
        self._env_file = env_file

    def get(self, name: str) -> str | None:
        """The value, or None; an empty one counts as absent."""
        return self._environ.get(name) or self._from_file().get(name) or None

    __call__ = get

    def require(self, name: str) -> str:
        value = self.get(name)
        if value is None:
            raise MissingConfigError(
                f"the key {name!r} is not configured; set it in the environment or in {self._env_file}"
            )
        return value

    def missing(self, names: Iterable[str]) -> list[str]:
        return [name for name in names if self.get(name) is None]

    def listed(self, names: Iterable[str]) -> dict[str, str | None]:
        """The values for showing, those with a secret's name masked."""
        found = {name: self.get(name) for name in names}
        return {name: MASK if value and is_secret(name) else value for name, value in found.items()}

    def _from_file(self) -> dict[str, str]:
        try:
            lines = self._env_file.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return {}
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError(f"the file {str(self._env_file)!r} cannot be read: {error}") from None
        return dict(pair for line in lines if (pair := _env_line(line)) is not None)

    def __repr__(self) -> str:
        return f"<Secrets of the environment and {str(self._env_file)!r}>"


_ENV_LINE = re.compile(r"\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*")


def _env_line(line: str) -> tuple[str, str] | None:
    """``NAME=value`` with or without quotes; comments and anything else are passed over."""
    match = _ENV_LINE.fullmatch(line)
    if match is None:
        return None
    name, value = match.groups()
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        return name, value[1:-1]
    return name, re.split(r"\s#", value, maxsplit=1)[0].rstrip()

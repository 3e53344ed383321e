"""Every setting there is: its name, type, default and description."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args
from urllib.parse import quote

from pydantic import BeforeValidator, Field, ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, PydanticBaseSettingsSource, SettingsConfigDict

from toolcrib.core.addresses import mask_passwords
from toolcrib.core.errors import SettingsError, did_you_mean
from toolcrib.core.json import MASK, read_json, refuse_flag
from toolcrib.settings.secrets import Secrets
from toolcrib.settings.sources import (
    PREFIX,
    SourcedValues,
    from_file,
    from_variables,
    joined,
    user_folder,
    with_more_plugins,
)


def _split(separator: str) -> Callable[[Any], Any]:
    def split(value: Any) -> Any:
        """The parts of a variable's text, which may be a JSON list too; ``[::1]`` is an address and no list."""
        if not isinstance(value, str):
            return value
        with suppress(ValueError):
            if isinstance(listed := read_json(value), list):
                return listed
        return [part.strip() for part in value.split(separator) if part.strip()]

    return split


Whole = Annotated[int, Field(ge=0), BeforeValidator(refuse_flag)]
Number = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(refuse_flag)]
Texts = Annotated[tuple[str, ...], BeforeValidator(_split(","))]
Lines = Annotated[tuple[str, ...], BeforeValidator(_split("\n"))]
_KINDS: dict[Any, str] = {
    str: "text",
    int: "a whole number (0 or more)",
    float: "a number (0 or more)",
    bool: "true or false",
    tuple[str, ...]: "a list of texts",
}


def _set(default: Any, description: str) -> Any:
    return Field(default, description=description)


def _secret(default: Any, description: str) -> Any:
    return Field(default, description=description, json_schema_extra={"secret": True})


class Settings(BaseSettings):
    """Everything that can be set. ``sources`` says where each value came from."""

    model_config = SettingsConfigDict(frozen=True, extra="forbid")

    data_dir: str = _set("", "The folder for everything that is kept; by default toolcrib in the user's data folder.")
    store: str = _set(
        "",
        "Where the tools are: memory:, json:///path, sqlite:///path, mongodb://... or brain:///path (brain: alone is "
        "brain_file); by default a SQLite file in data_dir. Three slashes are a path from the working folder, four "
        "are one from the root.",
    )
    blobs: str = _set(
        "",
        "Where uploaded bundles are: file:///path, s3://bucket?endpoint=... or memory:; "
        "by default a folder in data_dir.",
    )
    s3_access_key_id: str = _secret("", "Access key of the S3 bucket; without it the places that AWS tools look in.")
    s3_secret_access_key: str = _secret("", "Secret key of the S3 bucket.")
    s3_session_token: str = _secret("", "Session token of the S3 bucket.")
    seal_keys: Texts = _secret(
        (),
        "Keys that seal credentials, each 32 bytes in base64; the first seals, all "
        "open. By default one is made in data_dir/keys.",
    )

    host: str = _set("127.0.0.1", "The address that the service listens on.")
    port: Whole = _set(8000, "The port that the service listens on.")
    public_url: str = _set("", "The address under which clients reach the service, for links to bundles.")
    public_bundles: bool = _set(
        False, "Hand out the code of a bundle to whoever has its link (tool_source_code_link), without credentials."
    )
    allowed_hosts: Texts = _set((), "Names that clients may use for the service in the Host header.")
    allowed_origins: Texts = _set((), "Web origins whose pages may call the service.")
    trusted_proxies: Texts = _set((), "Addresses of proxies whose X-Forwarded-For is believed.")
    max_body_bytes: Whole = _set(4_000_000, "The largest body of a request that is not an upload.")
    max_upload_bytes: Whole = _set(1_000_000_000, "The largest bundle that can be uploaded.")
    max_uploads: Whole = _set(8, "How many bundles may come in at once; half of them from one caller.")
    max_unpacked_bytes: Whole = _set(256_000_000, "The most that the code of one bundle may be, unpacked.")
    unpacked_cache_bytes: Whole = _set(
        2_000_000_000, "The most that all unpacked bundles may take on the disk; what was used longest ago goes first."
    )
    max_connections: Whole = _set(
        1000, "Connections that each worker holds at once; fewer if the limit on open files says so."
    )
    idle_seconds: Number = _set(10.0, "Seconds after which a connection that says nothing is closed.")
    rate: Number = _set(0.0, "Requests a second that each caller may make; 0 means no limit.")
    burst: Number = _set(0.0, "Requests that a caller may make at once before the rate counts; 0 means twice the rate.")
    query_seconds: Number = _set(
        2.0, "Seconds of work that one query of the service may take; 0 means no limit on time."
    )
    max_runs: Whole = _set(
        64, "Runs of tools that the service has under way at once, at least 1; one caller has at most half of them."
    )
    max_result_characters: Whole = _set(
        40_000,
        "A longer result reaches an MCP client as its beginning and a handle, to be read with read_result; 0 means no "
        "limit, and with more than one worker there is none: each would know its own handles alone.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = _set("info", "How much is logged.")
    workers: Whole = _set(1, "How many processes answer requests.")
    log_requests: bool = _set(False, "Log every request, not only changes, failures and slow ones.")
    telemetry_content: bool = _set(
        False, "Put the arguments and results of runs into their OpenTelemetry spans, which are sent without them."
    )
    telemetry_propagation: bool = _set(
        False, "Send the HTTP services and MCP servers that run tools the trace they belong to (traceparent)."
    )
    log_format: Literal["text", "json"] = _set("text", "Log lines for people or for programs.")

    auth: Literal["auto", "required"] = _set("auto", "Who must authenticate: everybody, or on loopback nobody.")
    jwt_issuer: str = _set("", "The issuer of JWT bearer tokens; empty means that none are taken.")
    jwt_audience: str = _set("", "The audience that a JWT must name.")
    jwt_keys: str = _set("", "The issuer's public keys: a PEM, a file of one, a JWKS file or the https address of one.")
    jwt_algorithms: Texts = _set(("RS256", "ES256", "EdDSA"), "Signature algorithms that are taken.")
    jwt_role_claim: str = _set("role", "The claim that holds the role or a list of roles, dotted if it is nested.")

    tool_owners: Literal["enforced", "shared"] = _set(
        "enforced", "Who may change a tool: its owner and administrators, or whoever may publish."
    )

    policy: Literal["allow", "cedar", "webhook"] = _set("allow", "Who decides on changes and runs.")
    policy_file: str = _set("", "The Cedar policies, if policy is cedar.")
    policy_roles: Texts = _set(
        (), "Roles of principals for the Cedar policies, as principal=role: ada=payments, bob=readers."
    )
    unknown_policy_rules: Literal["warn", "refuse", "ignore"] = _set(
        "warn", "What becomes of a tool that names a policy rule which nobody serves."
    )
    policy_webhook_url: str = _set("", "The policy service: asked if policy is webhook, and told of every change.")
    policy_webhook_secret: str = _secret("", "Signs what the policy service is sent.")
    policy_webhook_open: bool = _set(False, "Allow what the policy service cannot be asked about.")
    policy_webhook_timeout: Number = _set(5.0, "Seconds to wait for the policy service.")
    policy_webhook_cache: Number = _set(
        0.0, "Seconds for which the policy service's answer about an unchanged tool holds; 0 asks every time."
    )
    events_url: str = _set("", "Who is told of every change; by default the policy service.")
    events_secret: str = _secret("", "Signs the events; by default the policy service's secret.")
    events_shape: Literal["event", "registration"] = _set(
        "event", "The body of an event: as it was committed, or as a Policy DB registers a tool."
    )

    python_tools: Texts = _set(
        (), "Tools that python bindings may name beside those that ship: package.module:attribute, each word for word."
    )
    mcp_commands: Lines = _set(
        (), "Commands that MCP bindings may start, each word for word; one a line in the variable."
    )
    tool_commands: Lines = _set(
        (), "Commands that command bindings may start, each word for word; one a line in the variable."
    )
    allowed_addresses: Texts = _set(
        (), "What tools may reach though it is not public: host names, IP addresses or networks; * is everything."
    )
    denied_addresses: Texts = _set(
        (), "What tools may not reach though it is public or allowed: host names, IP addresses or networks."
    )
    run_bundles: bool = _set(True, "Whether uploaded bundles may run here, each in its own process.")
    bundle_isolation: Literal["full", "weak"] = _set(
        "full",
        "Behind which walls bundles run: full refuses to run them where one of user, mount, process, network and ipc "
        "is missing, weak runs them behind those that there are.",
    )
    bundle_network: bool = _set(
        True, "Whether bundles whose metadata ask for the network get it, as far as the address rules allow."
    )
    run_timeout: Number = _set(60.0, "Seconds that a catalogued tool may run if it does not say.")
    max_run_timeout: Number = _set(3600.0, "Seconds that no catalogued tool may run longer, whatever it says.")
    highest_safety_level: Literal["safe", "low_risk", "medium", "high", "dangerous"] = _set(
        "high", "What lies above needs approval before it runs."
    )
    plugins_dir: Annotated[str, BeforeValidator(joined)] = _set(
        "",
        "Folders of Python files with tools, separated as in PATH; in the file a list will do. Those of "
        "AIWHISPERER_PLUGINS_DIR are added.",
    )
    chromium: str = _set("", "The Chromium program for the browser tools; by default it is searched for.")
    files_dir: str = _set(
        "", "The folder for the files of bricks that are called as tools; by default files in data_dir."
    )
    max_browsers: Whole = _set(4, "How many browsers may run at once for catalogued tools; further calls wait in turn.")
    max_sessions: Whole = _set(
        8, "How many sessions, such as browsers that stay between calls, the service keeps at once; 0 means none."
    )
    max_caller_sessions: Whole = _set(4, "How many sessions one caller may have at once.")
    session_idle_seconds: Number = _set(600.0, "Seconds after which a session that nobody has used is closed.")
    brain_file: str = _set("~/.thebrain/config/tools.json", "The file of the brain command.")
    env_file: str = _set(".env", "Values for the required_config of tools that the environment lacks.")

    sources: Mapping[str, str] = {}
    environ: Mapping[str, str] = {}

    @classmethod
    def settings_customise_sources(
        cls, settings_cls: Any, init_settings: PydanticBaseSettingsSource, *_: Any, **__: Any
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Made directly, settings are what they are given; :func:`load_settings` reads."""
        del settings_cls
        return (init_settings,)

    def __repr_args__(self) -> Iterable[tuple[str, Any]]:
        return ((name, value) for name, value, source in self.in_force() if source != "default")

    @property
    def data_folder(self) -> Path:
        if self.data_dir:
            return Path(self.data_dir).expanduser()
        return user_folder(self.environ, "XDG_DATA_HOME", ".local/share") / "toolcrib"

    @property
    def store_url(self) -> str:
        if self.store == "brain:":
            return file_url("brain", Path(self.brain_file).expanduser())
        return self.store or file_url("sqlite", self.data_folder / "toolcrib.db")

    @property
    def blobs_url(self) -> str:
        return self.blobs or file_url("file", self.data_folder / "blobs")

    @property
    def spool(self) -> Path:
        """The folder where uploads wait while they come in."""
        return self.data_folder / "incoming"

    @property
    def files_folder(self) -> Path:
        """Where callers of tools that read or write files may name one."""
        return Path(self.files_dir).expanduser() if self.files_dir else self.data_folder / "files"

    @property
    def service_url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return (self.public_url or f"http://{host}:{self.port}").rstrip("/")

    @property
    def events_receiver(self) -> str:
        return self.events_url or self.policy_webhook_url

    @property
    def plugin_folders(self) -> list[Path]:
        return [Path(folder).expanduser() for folder in self.plugins_dir.split(os.pathsep) if folder]

    @property
    def secrets(self) -> Secrets:
        return Secrets(self.environ, Path(self.env_file).expanduser())

    def with_changes(self, source: str, **changes: Any) -> Settings:
        """A copy with some values set by somebody else, such as an option of the command line; None changes nothing."""
        given = {name: value for name, value in changes.items() if value is not None}
        return _merged([(given, dict.fromkeys(given, source)), (dict(self), self.sources)], self.environ)

    def in_force(self) -> list[tuple[str, Any, str]]:
        """Every setting: its name, its value with secrets masked, and where it came from."""
        derived = {"data_dir": str(self.data_folder), "store": self.store_url, "blobs": self.blobs_url}
        return [
            (
                one.name,
                _shown(derived.get(one.name, getattr(self, one.name)), one.secret),
                self.sources.get(one.name, "default"),
            )
            for one in describe()
        ]


def file_url(scheme: str, path: Path) -> str:
    """The address of a path from the root: ``file:///path``, and ``sqlite:////path`` as stores write it."""
    return f"{scheme}:{'//' if scheme == 'file' else '///'}{quote(str(path.absolute()))}"


def load_settings(environ: Mapping[str, str] | None = None, folder: Path | None = None) -> Settings:
    """What is in force now. Raises SettingsError that names what is unknown or has a wrong value, and its source."""
    environ = dict(os.environ if environ is None else environ)
    ranked = [from_variables(environ), from_file(environ, folder or Path.cwd())]
    return _merged(with_more_plugins(ranked, environ), environ)


@dataclass(frozen=True, slots=True)
class Description:
    """One setting, for those who read about it."""

    name: str
    variable: str
    type: str
    default: Any
    description: str
    choices: tuple[str, ...]
    secret: bool


def describe() -> list[Description]:
    """Every setting there is."""
    return list(_DESCRIPTIONS.values())


def _described() -> Iterable[Description]:
    for name, field in Settings.model_fields.items():
        if field.description:
            choices = get_args(field.annotation) if field.annotation not in _KINDS else ()
            kind = _KINDS.get(field.annotation, _KINDS[str])
            secret = field.json_schema_extra is not None
            yield Description(name, PREFIX + name.upper(), kind, field.default, field.description, choices, secret)


_DESCRIPTIONS = {one.name: one for one in _described()}
_GONE = {
    "bundle_user": "it is gone: each run of a bundle has a user id of its own; take it out",
    "python_modules": "it is gone; list each tool as package.module:attribute in 'python_tools'",
}


def _merged(ranked: Sequence[SourcedValues], environ: Mapping[str, str]) -> Settings:
    """The settings of all sources; the first that has one wins."""
    sources = {name: where for _, wheres in reversed(ranked) for name, where in wheres.items()}
    unknown = next((name for name in sources if name not in _DESCRIPTIONS), None)
    if unknown is not None:
        hint = f"; {_GONE[unknown]}" if unknown in _GONE else did_you_mean(unknown, _DESCRIPTIONS)
        raise SettingsError(f"there is no setting {unknown!r} ({sources[unknown]}){hint}")
    given = [InitSettingsSource(Settings, dict(values)) for values, _ in ranked]
    known = InitSettingsSource(Settings, {"sources": sources, "environ": environ})
    sourced: dict[str, Any] = {"_build_sources": ((known, *given), {})}
    try:
        return Settings(**sourced)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _complaint(str(first["loc"][0]), first["input"], sources) from None


def _complaint(name: str, value: Any, sources: Mapping[str, str]) -> SettingsError:
    setting = _DESCRIPTIONS[name]
    where = f"setting {name!r} ({sources.get(name, 'default')})"
    if setting.choices:
        return SettingsError(f"{where} is {value!r}; use one of {', '.join(map(repr, setting.choices))}")
    found = "" if setting.secret else f", not {value!r}"
    return SettingsError(f"{where} must be {setting.type}{found}")


def _shown(value: Any, secret: bool) -> Any:
    if value and secret:
        return MASK
    return mask_passwords(value) if isinstance(value, str) else value

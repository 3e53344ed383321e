"""The composition root: settings -> adapters -> Catalogue. The only module that names a concrete adapter.

Each adapter is imported when it is needed, so that nobody pays for a backend that they do not use.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from toolcrib.calling.authorising import Authoriser
from toolcrib.calling.call import Approve, Calls
from toolcrib.calling.recording import Recorder
from toolcrib.catalogue import Catalogue
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import DeniedError, SettingsError, ToolValidationError
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings, load_settings

if TYPE_CHECKING:
    from toolcrib.adapters.http import HttpCaller
    from toolcrib.adapters.outbox import OutboxDeliverer
    from toolcrib.adapters.runners.bundle import BundleHouse
    from toolcrib.adapters.runners.unpacking import BundleCache
    from toolcrib.adapters.sealing import StoreSeal
    from toolcrib.core.tool import Runner
    from toolcrib.ports import AuditLog, Blobs, Index, Policy, Store, Tokens

SHIPPED_MODULES = ("toolcrib.toolsets",)
"""What python bindings may always import: the tools that come with Toolcrib."""
_SCHEMES = ("memory:", "json:///path", "sqlite:///path", "mongodb://host/database")
_MONGO = ("mongodb", "mongodb+srv")


def open_catalogue(
    url: str | None = None,
    settings: Settings | None = None,
    *,
    functions: Mapping[str, Any] | None = None,
    python_modules: Sequence[str] = (),
    cleanups: Sequence[Callable[[ToolSpec], None]] = (),
) -> Catalogue:
    """The catalogue at ``url``, or where the settings say.

    ``functions`` are those that system bindings may name; ``python_modules`` are those that python bindings may
    import, beside the settings' own; ``cleanups`` run after a delete, beside the one that removes a bundle.
    Deletions that a crash interrupted are finished before this returns.
    """
    settings = settings or load_settings()
    if url is not None:
        settings = settings.with_changes("argument", store=url)
    policy, close_policy = open_policy(settings)
    binder = Binder(settings, functions or {}, python_modules)
    with ExitStack() as undo:
        store = open_store(settings.store_url)
        undo.callback(store.close)
        audit = open_audit(settings.store_url)
        undo.callback(audit.close)
        catalogue = Catalogue(
            store,
            index=open_index(store),
            policy=policy,
            audit=audit,
            seal=open_seal(settings, store),
            bind=binder,
            cleanups=[binder.forget, *cleanups],
            closing=[audit.close, close_policy, binder.close],
            announce=bool(settings.events_receiver),
        )
        binder.credentials = catalogue.credentials
        catalogue.recover()
        undo.pop_all()
    return catalogue


def open_store(url: str, *, clock: Callable[[], float] = time.time) -> Store:
    """The store at ``url``; SettingsError where it is no address of one. ``clock`` says when a version was written."""
    scheme = _scheme(url)
    if scheme == "memory":
        from toolcrib.adapters.stores.memory import MemoryStore

        return MemoryStore(clock=clock)
    if scheme == "json":
        from toolcrib.adapters.stores.json_file import JsonFileStore

        return JsonFileStore(file_path(url), clock=clock)
    if scheme == "sqlite":
        from toolcrib.adapters.stores.sqlite import SqliteStore

        return SqliteStore(file_path(url), clock=clock)
    from toolcrib.adapters.stores.mongo import MongoStore

    return MongoStore(url, clock=clock)


def open_index(store: Store) -> Index:
    """The store's own full-text index where it keeps one, else one in memory that follows the store."""
    if hasattr(store, "search_text"):
        from toolcrib.adapters.indexes.store_text import StoreTextIndex, TextStore

        return StoreTextIndex(cast("TextStore", store))
    from toolcrib.adapters.indexes.derived import DerivedIndex

    return DerivedIndex(store)


def open_audit(store_url: str) -> AuditLog:
    """The audit of a store: in memory, in a file beside it, or in the same database."""
    scheme = _scheme(store_url)
    if scheme == "memory":
        from toolcrib.adapters.audit.memory import MemoryAudit

        return MemoryAudit()
    if scheme in _MONGO:
        from toolcrib.adapters.audit.mongo import MongoAudit

        return MongoAudit(store_url)
    from toolcrib.adapters.audit.sqlite import SqliteAudit

    return SqliteAudit(file_path(store_url).with_suffix(".audit.db"))


def open_tokens(settings: Settings) -> Tokens:
    """Where the tokens of a store's service are kept."""
    if _scheme(settings.store_url) in _MONGO:
        from toolcrib.adapters.tokens import MongoTokens

        return MongoTokens(settings.store_url)
    from toolcrib.adapters.tokens import SqliteTokens

    return SqliteTokens(settings.data_folder / "tokens.db")


def open_seal(settings: Settings, store: Store, *, check: bool = True) -> StoreSeal:
    """Seals the credentials in ``store``; SettingsError if they are sealed with a key that is not ours."""
    from toolcrib.adapters.sealing import StoreSeal

    path = None if _scheme(settings.store_url) == "memory" else settings.data_folder / "keys" / "seal.key"
    seal = StoreSeal(store, settings.seal_keys, path)
    if check:
        seal.check()
    return seal


def rotate_seal(settings: Settings, *, lost: bool = False) -> int:
    """Seal every credential again with the first of the configured keys, or with a new one if the key is ours;
    how many tools that touched. None if the old key is ``lost``: what it sealed stays closed.
    """
    with closing(open_store(settings.store_url)) as store:
        open_seal(settings, store, check=not lost).rotate()
    if lost:
        return 0
    with closing(open_catalogue(settings=settings)) as catalogue:
        return catalogue.reseal(principal="rotation")


def calls_of(catalogue: Catalogue, settings: Settings, *, approve: Approve | None = None) -> Calls:
    """The one way to call the catalogue's tools, under the rules of the settings."""
    return Calls(
        catalogue.tool,
        SafetyLevel(settings.highest_safety_level),
        approve,
        None if catalogue.policy is None else Authoriser(catalogue.policy),
        None if catalogue.audit is None else Recorder(catalogue.audit),
        remote=catalogue.remote,
    )


def address_rules(settings: Settings) -> AddressRules:
    """Who may be reached by tools: whatever is public, but for what the settings add and take away."""
    return AddressRules(settings.allowed_addresses, settings.denied_addresses, public_only=True)


def open_policy(settings: Settings) -> tuple[Policy | None, Callable[[], None]]:
    """Who decides, None if everything is allowed, and what closes it."""
    if settings.policy == "allow":
        return None, _nothing
    if settings.policy == "cedar":
        from toolcrib.adapters.policies.cedar import CedarPolicy

        path = Path(_needed(settings, "policy_file")).expanduser()
        return CedarPolicy(path, roles=_roles(settings.policy_roles)), _nothing
    from toolcrib.adapters.policies.caching import CachingPolicy
    from toolcrib.adapters.policies.webhook import WebhookPolicy

    webhook = WebhookPolicy(
        _needed(settings, "policy_webhook_url"),
        secret=settings.policy_webhook_secret,
        seconds=settings.policy_webhook_timeout,
        fail_open=settings.policy_webhook_open,
    )
    if settings.policy_webhook_cache:
        return CachingPolicy(webhook, seconds=settings.policy_webhook_cache), webhook.close
    return webhook, webhook.close


def _nothing() -> None:
    """Nothing is held open."""


def _roles(given: Iterable[str]) -> dict[str, list[str]]:
    roles: dict[str, list[str]] = {}
    for text in given:
        principal, equals, role = (part.strip() for part in text.partition("="))
        if not (principal and equals and role):
            raise SettingsError(f"policy_roles holds {text!r}; write principal=role")
        roles.setdefault(principal, []).append(role)
    return roles


def open_outbox(settings: Settings, store: Store) -> OutboxDeliverer | None:
    """Tells the events' receiver of every change, once it is started; None where the settings name no receiver."""
    if not settings.events_receiver:
        return None
    from toolcrib.adapters.outbox import DeliveryOptions, OutboxDeliverer, as_event, as_registration

    shape = as_registration if settings.events_shape == "registration" else as_event
    options = DeliveryOptions(secret=settings.events_secret or settings.policy_webhook_secret)
    return OutboxDeliverer(store, settings.events_receiver, options, shape=shape)


def open_blobs(settings: Settings) -> Blobs:
    """Where uploaded bundles are kept."""
    from toolcrib.adapters.blobs import S3Credentials
    from toolcrib.adapters.blobs import open_blobs as open_url

    credentials = S3Credentials(settings.s3_access_key_id, settings.s3_secret_access_key, settings.s3_session_token)
    return open_url(settings.blobs_url, credentials)


class Binder:
    """Makes catalogued specs runnable. What tools share (connections, a sandbox) is opened at the first need."""

    def __init__(self, settings: Settings, functions: Mapping[str, Any], python_modules: Sequence[str]) -> None:
        self._settings = settings
        self._functions = functions
        self._rules = address_rules(settings)
        self._python_modules = (*SHIPPED_MODULES, *settings.python_modules, *python_modules)
        self.credentials: Callable[[str], Mapping[str, Any]] = lambda _: {}

    def __call__(self, spec: ToolSpec) -> Tool:
        """The spec with what runs it; of several bindings the nearest wins."""
        binding = spec.binding
        if binding.python:
            from toolcrib.adapters.pythonref import python_tool
            from toolcrib.adapters.runners.fenced import fenced_tool

            return fenced_tool(python_tool(spec, self._python_modules), self._rules)
        if binding.system_function_rpc_id:
            from toolcrib.adapters.runners.fenced import fenced_tool
            from toolcrib.adapters.runners.system_function import function_tool

            return fenced_tool(function_tool(spec, self._functions), self._rules)
        runner = next((runner for name, runner in self._runners.items() if getattr(binding, name)), None)
        if runner is not None:
            from toolcrib.adapters.runners.bound import bound_tool

            return bound_tool(spec, runner(spec))
        raise ToolValidationError(f"{spec.name!r} cannot run: its binding does not say how")

    def forget(self, spec: ToolSpec) -> None:
        """Removes the bundle of a deleted tool, here and in the blobs."""
        from toolcrib.formats.bundle import bundle_digest

        digest = bundle_digest(spec.binding.source_code_link)
        if digest is None:
            return
        from toolcrib.catalogue.bundles import remove_bundle

        remove_bundle(open_blobs(self._settings))(spec)
        self._cache.forget(digest)

    def close(self) -> None:
        if "_caller" in vars(self):
            self._caller.close()

    @cached_property
    def _runners(self) -> dict[str, Callable[[ToolSpec], Runner]]:
        """By field of the binding. An upload always leaves a link, so what was said beside it comes first."""
        return {"service_url": self._service, "mcp": self._mcp, "source_code_link": self._bundle}

    def _mcp(self, spec: ToolSpec) -> Runner:
        from toolcrib.adapters.runners.mcp_server import McpRunner

        seconds = self._settings.run_timeout
        return McpRunner(self._caller, lambda: self.credentials(spec.name), default_seconds=seconds)

    def _service(self, spec: ToolSpec) -> Runner:
        from toolcrib.adapters.runners.http_service import HttpServiceRunner

        seconds = self._settings.run_timeout
        return HttpServiceRunner(self._caller, lambda: self.credentials(spec.name), default_seconds=seconds)

    def _bundle(self, spec: ToolSpec) -> Runner:
        if not self._settings.run_bundles:
            raise DeniedError(f"{spec.name!r} is a bundle, and bundles do not run here", rule="run_bundles")
        from toolcrib.adapters.runners.bundle import BundleRunner

        seconds = self._settings.run_timeout
        return BundleRunner(self._house, lambda: self.credentials(spec.name), default_seconds=seconds)

    @cached_property
    def _caller(self) -> HttpCaller:
        from toolcrib.adapters.http import HttpCaller

        return HttpCaller(self._rules)

    @cached_property
    def _house(self) -> BundleHouse:
        from toolcrib.adapters.runners.bundle import BundleHouse
        from toolcrib.adapters.runners.sandbox import Sandbox, SandboxLimits

        limits = SandboxLimits(network=self._settings.bundle_network, user=self._settings.bundle_user)
        return BundleHouse(self._cache, Sandbox(limits))

    @cached_property
    def _cache(self) -> BundleCache:
        from toolcrib.adapters.runners.unpacking import BundleCache

        return BundleCache(open_blobs(self._settings), self._settings.data_folder / "unpacked")


def _needed(settings: Settings, name: str) -> str:
    value: str = getattr(settings, name)
    if not value:
        raise SettingsError(f"policy {settings.policy!r} needs the setting {name!r}; set TOOLCRIB_{name.upper()}")
    return value


def seed_samples(catalogue: Catalogue) -> int:
    """Publish the tools that come with Toolcrib into an empty catalogue; how many that were."""
    if len(catalogue):
        return 0
    from toolcrib.toolsets.browser import browser_specs
    from toolcrib.toolsets.scraping.specs import scraping_specs

    samples = {spec.name: spec for spec in (*browser_specs(), *scraping_specs().values())}
    return len(catalogue.publish_many(samples.values(), principal="samples"))


def file_path(url: str) -> Path:
    """The path of ``json:///path`` or ``sqlite:///path``; ``json:///~/x`` is in the home folder."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    if parts.netloc or parts.query or not path.startswith("/") or path.endswith("/"):
        raise SettingsError(f"{url!r} names no file; write {parts.scheme}:///and/the/full/path")
    return Path(path.removeprefix("/")).expanduser() if path.startswith("/~") else Path(path)


def _scheme(url: str) -> str:
    scheme = urlsplit(url).scheme
    if scheme not in ("memory", "json", "sqlite", *_MONGO):
        raise SettingsError(f"{url!r} is not the address of a store; use {', '.join(_SCHEMES)}")
    return scheme

"""The composition root: settings -> adapters -> Catalogue. The only module that names a concrete adapter.

Each adapter is imported when it is needed, so that nobody pays for a backend that they do not use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import unquote, urlsplit

from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import SettingsError, ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings, load_settings

if TYPE_CHECKING:
    from toolcrib.adapters.outbox import OutboxDeliverer
    from toolcrib.ports import AuditLog, Blobs, Index, Policy, Seal, Store

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
    cleanups: Sequence[Callable[[ToolSpec], None]] | None = None,
) -> Catalogue:
    """The catalogue at ``url``, or where the settings say.

    ``functions`` are those that system bindings may name; ``python_modules`` are those that python bindings may
    import, beside the settings' own; ``cleanups`` stand in for the one that removes a deleted tool's bundle.
    Deletions that a crash interrupted are finished before this returns.
    """
    settings = settings or load_settings()
    if url is not None:
        settings = settings.with_changes("argument", store=url)
    store = open_store(settings.store_url)
    holder: list[Catalogue] = []

    def bind(spec: ToolSpec) -> Tool:
        return bound_tool(
            spec,
            settings,
            functions=functions or {},
            python_modules=python_modules,
            credentials=lambda: holder[0].credentials(spec.name),
        )

    policy, audit = open_policy(settings), open_audit(settings.store_url)
    catalogue = Catalogue(
        store,
        index=open_index(store),
        policy=policy,
        audit=audit,
        seal=open_seal(settings, shared=store.remote),
        bind=bind,
        cleanups=[_remove_bundle(settings)] if cleanups is None else cleanups,
        closing=[audit.close, getattr(policy, "close", lambda: None)],
        announce=bool(settings.events_receiver),
    )
    holder.append(catalogue)
    catalogue.recover()
    return catalogue


def open_store(url: str) -> Store:
    """The store at ``url``; SettingsError where it is no address of one."""
    scheme = _scheme(url)
    if scheme == "memory":
        from toolcrib.adapters.stores.memory import MemoryStore

        return MemoryStore()
    if scheme == "json":
        from toolcrib.adapters.stores.json_file import JsonFileStore

        return JsonFileStore(file_path(url))
    if scheme == "sqlite":
        from toolcrib.adapters.stores.sqlite import SqliteStore

        return SqliteStore(file_path(url))
    from toolcrib.adapters.stores.mongo import MongoStore

    return MongoStore(url)


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


def open_seal(settings: Settings, *, shared: bool) -> Seal:
    """Seals credentials with the keys of the settings, or with one that is made in the data folder at the first need.

    Where several processes share the store, each would make its own, so there the settings must name the keys.
    """
    from toolcrib.adapters.sealing import AesGcmSeal, DeferredSeal, key_file, new_key

    def seal() -> AesGcmSeal:
        if settings.seal_keys:
            return AesGcmSeal(settings.seal_keys)
        if shared:
            raise SettingsError(
                "a shared store needs the same keys everywhere to seal credentials; set TOOLCRIB_SEAL_KEYS"
            )
        if _scheme(settings.store_url) == "memory":
            return AesGcmSeal([new_key()])
        return AesGcmSeal([key_file(settings.data_folder / "keys" / "seal.key")])

    return DeferredSeal(seal)


def open_policy(settings: Settings) -> Policy | None:
    """Who decides, or None where everything is allowed."""
    if settings.policy == "allow":
        return None
    if settings.policy == "cedar":
        from toolcrib.adapters.policies.cedar import CedarPolicy

        return CedarPolicy(Path(_needed(settings, "policy_file")).expanduser())
    from toolcrib.adapters.policies.webhook import WebhookPolicy

    return WebhookPolicy(
        _needed(settings, "policy_webhook_url"),
        secret=settings.policy_webhook_secret,
        seconds=settings.policy_webhook_timeout,
        fail_open=settings.policy_webhook_open,
    )


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


def bound_tool(
    spec: ToolSpec,
    settings: Settings,
    *,
    functions: Mapping[str, Any],
    python_modules: Sequence[str],
    credentials: Callable[[], dict[str, Any]],
) -> Tool:
    """The spec with what runs it; of several bindings the nearest wins."""
    binding = spec.binding
    if binding.python:
        from toolcrib.adapters.pythonref import python_tool

        return python_tool(spec, (*SHIPPED_MODULES, *settings.python_modules, *python_modules))
    raise ToolValidationError(f"{spec.name!r} cannot run: its binding says nothing of how")


def _remove_bundle(settings: Settings) -> Callable[[ToolSpec], None]:
    """Removes a deleted tool's bundle. The blobs are opened when there is one: most tools have none."""

    def remove(spec: ToolSpec) -> None:
        from toolcrib.catalogue.bundles import remove_bundle
        from toolcrib.formats.bundle import bundle_digest

        if bundle_digest(spec.binding.source_code_link) is not None:
            remove_bundle(open_blobs(settings))(spec)

    return remove


def _needed(settings: Settings, name: str) -> str:
    value: str = getattr(settings, name)
    if not value:
        raise SettingsError(f"policy {settings.policy!r} needs the setting {name!r}; set TOOLCRIB_{name.upper()}")
    return value


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

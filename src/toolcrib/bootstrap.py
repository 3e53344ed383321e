"""The composition root: settings -> adapters -> Catalogue. The only module that names a concrete adapter.

Each adapter is imported when it is needed, so that nobody pays for a backend that they do not use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import SettingsError, ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings, load_settings

if TYPE_CHECKING:
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
    cleanups: Sequence[Callable[[ToolSpec], None]] = (),
) -> Catalogue:
    """The catalogue at ``url``, or where the settings say.

    ``functions`` are those that system bindings may name; ``python_modules`` are those that python bindings may
    import, beside the settings' own. Deletions that a crash interrupted are finished before this returns.
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

    catalogue = Catalogue(
        store,
        index=open_index(store),
        policy=open_policy(settings),
        audit=open_audit(settings.store_url),
        seal=open_seal(settings, shared=store.remote),
        bind=bind,
        cleanups=cleanups,
        announce=bool(settings.policy_webhook_url),
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
    raise SettingsError(f"policy {settings.policy!r} is not available")


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

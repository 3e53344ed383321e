"""What is kept, opened by address: tools, audit, tokens, bundles, events that wait."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from toolcrib.adapters.files import after_host, make_folder, narrow
from toolcrib.core.addresses import mask_passwords
from toolcrib.core.errors import SettingsError
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.outbox import OutboxDeliverer
    from toolcrib.adapters.runners.unpacking import BundleCache
    from toolcrib.ports import AuditLog, Bearer, Blobs, Store, Tokens

_OURS = ("toolcrib.db", "toolcrib.audit.db", "tokens.db", "keys", "blobs", "unpacked", "incoming")
"""What the names in the data folder begin with."""
_SQLITES_MEMORY = ":memory:"
_log = logging.getLogger("toolcrib")
Clock = Callable[[], float]
Kind = Literal["memory", "json", "sqlite", "mongodb", "brain"]

_ADDRESSES: dict[Kind, str] = {
    "memory": "memory:",
    "json": "json:///path",
    "sqlite": "sqlite:///path",
    "mongodb": "mongodb://host/database",
    "brain": "brain:///path",
}
_IN_FILES: tuple[Kind, ...] = ("json", "sqlite", "brain")


def kind_of(url: str) -> Kind:
    """The kind of store that an address names; SettingsError if it names none."""
    scheme = urlsplit(url).scheme.replace("mongodb+srv", "mongodb")
    for kind in _ADDRESSES:
        if kind == scheme:
            return kind
    raise SettingsError(f"{mask_passwords(url)!r} is not the address of a store; use {', '.join(_ADDRESSES.values())}")


def store_file(url: str) -> Path:
    """The file of a store in one: ``sqlite:///path`` is a path from here, ``sqlite:////path`` one from the root.

    If the folder is only there from the root, it is that one: three slashes used to be a path from the root.
    """
    scheme, path = urlsplit(url).scheme, after_host(url)[1:]
    if not path or path.endswith("/"):
        ways = f"{scheme}:///path for one from here, {scheme}:////path for one from the root"
        raise SettingsError(f"{url!r} names no file; write {ways}")
    if path == _SQLITES_MEMORY:
        raise SettingsError(f"{url!r} is no file; the store in memory is 'memory:'")
    if path.startswith(("/", "~", ".")):
        return Path(f"/{path.lstrip('/')}" if path.startswith("/") else path).expanduser().absolute()
    here, from_root = Path(path).absolute(), Path("/", path)
    if from_root.parent.is_dir() and not here.parent.is_dir():
        return from_root
    if from_root.exists() and not here.exists():
        raise SettingsError(
            f"{url!r} is {str(here)!r}, which is not there, while {str(from_root)!r} is; "
            f"write {scheme}:///{from_root} for that one, {scheme}:///./{path} for a new one"
        )
    return here


def is_in_our_folder(settings: Settings) -> bool:
    """Whether the store is in a folder that is made for it: in the data folder, or where The Brain keeps its file."""
    if settings.store in ("", "brain:"):
        return True
    in_file = kind_of(settings.store) in _IN_FILES
    return in_file and store_file(settings.store).is_relative_to(settings.data_folder.absolute())


def _checked_file(url: str, may_make_folder: bool) -> Path:
    """The file of a store that is to be opened: what its address leaves open is told, and no folder is made for it."""
    path = store_file(url)
    if path == Path(after_host(url)) and Path.cwd() != Path("/"):
        _warn(url, path)
    if not may_make_folder and not path.parent.is_dir():
        raise SettingsError(f"the folder {str(path.parent)!r} of the store {url!r} does not exist; make it first")
    return path


@cache
def _warn(url: str, path: Path) -> None:
    """Once: a store is opened often."""
    scheme = urlsplit(url).scheme
    _log.warning("%r is a path from here; as there is no such folder, it is read as %s:///%s", url, scheme, path)


def open_store(url: str, *, clock: Clock = time.time, may_make_folder: bool = False) -> Store:
    """The store at ``url``; SettingsError if it is no address of one. ``clock`` says when a version was written.

    The folder of a store in a file must be there, unless it may be made.
    """
    match kind_of(url):
        case "memory":
            from toolcrib.adapters.stores.memory import MemoryStore

            return MemoryStore(clock=clock)
        case "json":
            from toolcrib.adapters.stores.json_file import JsonFileStore

            return JsonFileStore(_checked_file(url, may_make_folder), clock=clock)
        case "brain":
            from toolcrib.adapters.stores.codecs import MetadataCodec
            from toolcrib.adapters.stores.json_file import JsonFileStore

            return JsonFileStore(_checked_file(url, may_make_folder), codec=MetadataCodec(), clock=clock)
        case "sqlite":
            from toolcrib.adapters.stores.sqlite import SqliteStore

            return SqliteStore(_checked_file(url, may_make_folder), clock=clock)
        case "mongodb":
            from toolcrib.adapters.stores.mongo import MongoStore

            return MongoStore(url, clock=clock)


def close_data_folder(settings: Settings) -> None:
    """Make the data folder, or take from others what an older release let them open in it.

    The folder itself too, unless somebody keeps other things there. What cannot be closed is told by whoever needs it.
    """
    folder = settings.data_folder
    with suppress(OSError):
        make_folder(folder)
        entries = list(folder.iterdir())
        ours = [entry for entry in entries if entry.name.startswith(_OURS)]
        narrow(*(ours if len(ours) < len(entries) else [folder]), but=folder / "unpacked")


def open_audit(store_url: str, *, may_make_folder: bool = False) -> AuditLog:
    """The audit of a store: in memory, in a file beside it, or in the same database."""
    match kind_of(store_url):
        case "memory":
            from toolcrib.adapters.audit.memory import MemoryAudit

            return MemoryAudit()
        case "mongodb":
            from toolcrib.adapters.audit.mongo import MongoAudit

            return MongoAudit(store_url)
        case "json" | "sqlite" | "brain":
            from toolcrib.adapters.audit.sqlite import SqliteAudit

            return SqliteAudit(_audit_of(_checked_file(store_url, may_make_folder)))


def audit_file(store_url: str) -> Path:
    """Where the audit of a store in a file is; SettingsError if it is in none."""
    return _audit_of(store_file(store_url))


def _audit_of(path: Path) -> Path:
    return path.with_suffix(".audit.db")


def open_tokens(settings: Settings) -> Tokens:
    """Where the tokens of a store's service are kept: in the data folder, or in the same database."""
    from toolcrib.adapters.tokens import MongoTokens, SqliteTokens

    if kind_of(settings.store_url) == "mongodb":
        return MongoTokens(settings.store_url)
    return SqliteTokens(settings.data_folder / "tokens.db")


def open_bearer(settings: Settings) -> Bearer | None:
    """Who verifies JWTs; None if the settings name no issuer."""
    if not settings.jwt_issuer:
        return None
    from toolcrib.adapters.jwt import Issuer, JwtBearer

    keys, algorithms = settings.jwt_keys, settings.jwt_algorithms
    return JwtBearer(Issuer(settings.jwt_issuer, settings.jwt_audience, keys, algorithms, settings.jwt_role_claim))


def open_blobs(settings: Settings) -> Blobs:
    """Where uploaded bundles are kept."""
    from toolcrib.adapters.blobs import S3Credentials
    from toolcrib.adapters.blobs import open_blobs as open_url

    credentials = S3Credentials(settings.s3_access_key_id, settings.s3_secret_access_key, settings.s3_session_token)
    return open_url(settings.blobs_url, credentials)


def open_unpacked(settings: Settings, blobs: Blobs) -> BundleCache:
    """Where bundles are unpacked to run."""
    from toolcrib.adapters.runners.unpacking import BundleCache
    from toolcrib.formats.archives import ArchiveLimits

    folder, most = settings.data_folder / "unpacked", settings.unpacked_cache_bytes
    return BundleCache(blobs, folder, most_bytes=most, limits=ArchiveLimits(settings.max_unpacked_bytes))


def open_outbox(settings: Settings, store: Store, *, clock: Clock = time.time) -> OutboxDeliverer | None:
    """Tells the events' receiver of every change, once it is started; None if the settings name no receiver."""
    if not settings.events_receiver:
        return None
    from toolcrib.adapters.outbox import DeliveryOptions, OutboxDeliverer, as_event, as_registration

    shape = as_registration if settings.events_shape == "registration" else as_event
    options = DeliveryOptions(secret=settings.events_secret or settings.policy_webhook_secret)
    return OutboxDeliverer(
        store, settings.events_receiver, options, public_url=settings.service_url, shape=shape, clock=clock
    )

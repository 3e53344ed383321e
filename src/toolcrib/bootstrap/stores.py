"""What is kept, opened by address: tools, audit, tokens, bundles, events that wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal
from urllib.parse import urlsplit

from toolcrib.adapters.files import file_path, make_folder, narrow
from toolcrib.core.addresses import mask_passwords
from toolcrib.core.errors import SettingsError
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.outbox import OutboxDeliverer
    from toolcrib.adapters.runners.unpacking import BundleCache
    from toolcrib.ports import AuditLog, Bearer, Blobs, Store, Tokens

_OURS = ("toolcrib.db", "toolcrib.audit.db", "tokens.db", "keys", "blobs", "unpacked", "incoming")
"""What the names in the data folder begin with."""
Clock = Callable[[], float]
Kind = Literal["memory", "json", "sqlite", "mongodb", "brain"]

_ADDRESSES: dict[Kind, str] = {
    "memory": "memory:",
    "json": "json:///path",
    "sqlite": "sqlite:///path",
    "mongodb": "mongodb://host/database",
    "brain": "brain:///path",
}


def kind_of(url: str) -> Kind:
    """The kind of store that an address names; SettingsError if it names none."""
    scheme = urlsplit(url).scheme.replace("mongodb+srv", "mongodb")
    for kind in _ADDRESSES:
        if kind == scheme:
            return kind
    raise SettingsError(f"{mask_passwords(url)!r} is not the address of a store; use {', '.join(_ADDRESSES.values())}")


def open_store(url: str, *, clock: Clock = time.time) -> Store:
    """The store at ``url``; SettingsError if it is no address of one. ``clock`` says when a version was written."""
    match kind_of(url):
        case "memory":
            from toolcrib.adapters.stores.memory import MemoryStore

            return MemoryStore(clock=clock)
        case "json":
            from toolcrib.adapters.stores.json_file import JsonFileStore

            return JsonFileStore(file_path(url), clock=clock)
        case "brain":
            from toolcrib.adapters.stores.codecs import MetadataCodec
            from toolcrib.adapters.stores.json_file import JsonFileStore

            return JsonFileStore(file_path(url), codec=MetadataCodec(), clock=clock)
        case "sqlite":
            from toolcrib.adapters.stores.sqlite import SqliteStore

            return SqliteStore(file_path(url), clock=clock)
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


def open_audit(store_url: str) -> AuditLog:
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

            return SqliteAudit(audit_file(store_url))


def audit_file(store_url: str) -> Path:
    """Where the audit of a store in a file is; SettingsError if it is in none."""
    return file_path(store_url).with_suffix(".audit.db")


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

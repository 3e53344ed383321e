"""What is kept, opened by address: tools, audit, tokens, bundles, events that wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from toolcrib.adapters.files import file_path
from toolcrib.core.errors import SettingsError
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.outbox import OutboxDeliverer
    from toolcrib.adapters.stores.codecs import Codec
    from toolcrib.ports import AuditLog, Bearer, Blobs, Store, Tokens

_SCHEMES = ("memory:", "json:///path", "sqlite:///path", "mongodb://host/database")
_MONGO = ("mongodb", "mongodb+srv")


def open_store(url: str, *, clock: Callable[[], float] = time.time) -> Store:
    """The store at ``url``; SettingsError if it is no address of one. ``clock`` says when a version was written."""
    scheme = scheme_of(url)
    if scheme == "memory":
        from toolcrib.adapters.stores.memory import MemoryStore

        return MemoryStore(clock=clock)
    if scheme == "json":
        return open_file(file_path(url), clock=clock)
    if scheme == "sqlite":
        from toolcrib.adapters.stores.sqlite import SqliteStore

        return SqliteStore(file_path(url), clock=clock)
    from toolcrib.adapters.stores.mongo import MongoStore

    return MongoStore(url, clock=clock)


def open_file(path: Path, codec: Codec | None = None, *, clock: Callable[[], float] = time.time) -> Store:
    """A store in a JSON file; ``codec`` says how a tool is written in it, by default as its spec."""
    from toolcrib.adapters.stores.json_file import JsonFileStore

    return JsonFileStore(path, codec=codec, clock=clock)


def open_audit(store_url: str) -> AuditLog:
    """The audit of a store: in memory, in a file beside it, or in the same database."""
    scheme = scheme_of(store_url)
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
    if scheme_of(settings.store_url) in _MONGO:
        from toolcrib.adapters.tokens import MongoTokens

        return MongoTokens(settings.store_url)
    from toolcrib.adapters.tokens import SqliteTokens

    return SqliteTokens(settings.data_folder / "tokens.db")


def open_bearer(settings: Settings) -> Bearer | None:
    """Who verifies JWTs; None if the settings name no issuer."""
    if not settings.jwt_issuer:
        return None
    from toolcrib.adapters.jwt import Issuer, JwtBearer

    return JwtBearer(
        Issuer(
            settings.jwt_issuer,
            settings.jwt_audience,
            settings.jwt_keys,
            settings.jwt_algorithms,
            settings.jwt_role_claim,
        )
    )


def open_blobs(settings: Settings) -> Blobs:
    """Where uploaded bundles are kept."""
    from toolcrib.adapters.blobs import S3Credentials
    from toolcrib.adapters.blobs import open_blobs as open_url

    credentials = S3Credentials(settings.s3_access_key_id, settings.s3_secret_access_key, settings.s3_session_token)
    return open_url(settings.blobs_url, credentials)


def open_outbox(settings: Settings, store: Store) -> OutboxDeliverer | None:
    """Tells the events' receiver of every change, once it is started; None if the settings name no receiver."""
    if not settings.events_receiver:
        return None
    from toolcrib.adapters.outbox import DeliveryOptions, OutboxDeliverer, as_event, as_registration

    shape = as_registration if settings.events_shape == "registration" else as_event
    options = DeliveryOptions(secret=settings.events_secret or settings.policy_webhook_secret)
    return OutboxDeliverer(store, settings.events_receiver, options, shape=shape)


def scheme_of(url: str) -> str:
    scheme = urlsplit(url).scheme
    if scheme not in ("memory", "json", "sqlite", *_MONGO):
        raise SettingsError(f"{url!r} is not the address of a store; use {', '.join(_SCHEMES)}")
    return scheme

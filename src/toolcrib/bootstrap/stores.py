"""What is kept, opened by address: tools, audit, tokens, bundles, events that wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from toolcrib.adapters.files import file_path
from toolcrib.core.errors import SettingsError
from toolcrib.settings import Settings

if TYPE_CHECKING:
    from toolcrib.adapters.outbox import OutboxDeliverer
    from toolcrib.ports import AuditLog, Bearer, Blobs, Store, Tokens

Clock = Callable[[], float]


def open_store(url: str, *, clock: Clock = time.time) -> Store:
    """The store at ``url``; SettingsError if it is no address of one. ``clock`` says when a version was written."""
    return backend_of(url).store(url, clock)


def open_audit(store_url: str) -> AuditLog:
    """The audit of a store: in memory, in a file beside it, or in the same database."""
    return backend_of(store_url).audit(store_url)


def open_tokens(settings: Settings) -> Tokens:
    """Where the tokens of a store's service are kept: in the data folder, or in the same database."""
    return backend_of(settings.store_url).tokens(settings)


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


def open_outbox(settings: Settings, store: Store, *, clock: Clock = time.time) -> OutboxDeliverer | None:
    """Tells the events' receiver of every change, once it is started; None if the settings name no receiver."""
    if not settings.events_receiver:
        return None
    from toolcrib.adapters.outbox import DeliveryOptions, OutboxDeliverer, as_event, as_registration

    shape = as_registration if settings.events_shape == "registration" else as_event
    options = DeliveryOptions(secret=settings.events_secret or settings.policy_webhook_secret)
    return OutboxDeliverer(store, settings.events_receiver, options, shape=shape, clock=clock)


# Every kind of store: its functions, and its line in the table


def _memory_store(_url: str, clock: Clock) -> Store:
    from toolcrib.adapters.stores.memory import MemoryStore

    return MemoryStore(clock=clock)


def _json_store(url: str, clock: Clock) -> Store:
    from toolcrib.adapters.stores.json_file import JsonFileStore

    return JsonFileStore(file_path(url), clock=clock)


def _brain_store(url: str, clock: Clock) -> Store:
    from toolcrib.adapters.stores.codecs import MetadataCodec
    from toolcrib.adapters.stores.json_file import JsonFileStore

    return JsonFileStore(file_path(url), codec=MetadataCodec(), clock=clock)


def _sqlite_store(url: str, clock: Clock) -> Store:
    from toolcrib.adapters.stores.sqlite import SqliteStore

    return SqliteStore(file_path(url), clock=clock)


def _mongo_store(url: str, clock: Clock) -> Store:
    from toolcrib.adapters.stores.mongo import MongoStore

    return MongoStore(url, clock=clock)


def _memory_audit(_store_url: str) -> AuditLog:
    from toolcrib.adapters.audit.memory import MemoryAudit

    return MemoryAudit()


def _audit_beside(store_url: str) -> AuditLog:
    from toolcrib.adapters.audit.sqlite import SqliteAudit

    return SqliteAudit(file_path(store_url).with_suffix(".audit.db"))


def _mongo_audit(store_url: str) -> AuditLog:
    from toolcrib.adapters.audit.mongo import MongoAudit

    return MongoAudit(store_url)


def _tokens_in_folder(settings: Settings) -> Tokens:
    from toolcrib.adapters.tokens import SqliteTokens

    return SqliteTokens(settings.data_folder / "tokens.db")


def _mongo_tokens(settings: Settings) -> Tokens:
    from toolcrib.adapters.tokens import MongoTokens

    return MongoTokens(settings.store_url)


class Backend(NamedTuple):
    """A kind of store: how its address is written, and what opens it, its audit and the tokens of its service."""

    address: str
    store: Callable[[str, Clock], Store]
    audit: Callable[[str], AuditLog]
    tokens: Callable[[Settings], Tokens]
    lasts: bool = True


_MONGO = Backend("mongodb://host/database", _mongo_store, _mongo_audit, _mongo_tokens)
_BACKENDS = {
    "memory": Backend("memory:", _memory_store, _memory_audit, _tokens_in_folder, lasts=False),
    "json": Backend("json:///path", _json_store, _audit_beside, _tokens_in_folder),
    "sqlite": Backend("sqlite:///path", _sqlite_store, _audit_beside, _tokens_in_folder),
    "mongodb": _MONGO,
    "mongodb+srv": _MONGO,
    "brain": Backend("brain:///path", _brain_store, _audit_beside, _tokens_in_folder),
}


def backend_of(url: str) -> Backend:
    backend = _BACKENDS.get(urlsplit(url).scheme)
    if backend is None:
        known = dict.fromkeys(one.address for one in _BACKENDS.values())
        raise SettingsError(f"{url!r} is not the address of a store; use {', '.join(known)}")
    return backend

"""A connection to a MongoDB replica set: how it is opened, when it is tried again, what is said when it fails.

The store, the audit and the tokens each hold one. Writes are acknowledged by a majority and journalled; reads see
what a majority has.
"""

from __future__ import annotations

import logging
import math
import random
import socket
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from toolcrib.core.errors import MissingDependencyError, StorageFullError, StorageRefusedError, StoreError
from toolcrib.core.query.budget import BUDGET

try:
    import bson
    import pymongo
    from bson import ObjectId
    from pymongo.errors import (
        AutoReconnect,
        ConfigurationError,
        ExecutionTimeout,
        InvalidURI,
        OperationFailure,
        PyMongoError,
    )
    from pymongo.read_concern import ReadConcern
    from pymongo.write_concern import WriteConcern
except ImportError as missing:
    raise MissingDependencyError("pymongo", extra="mongo") from missing

if TYPE_CHECKING:
    from pymongo.client_session import ClientSession
    from pymongo.database import Database
    from pymongo.server_description import ServerDescription

_log = logging.getLogger(__name__)
_T = TypeVar("_T")
Document = dict[str, Any]

DEFAULT_DATABASE = "toolcrib"
_DURABLE = WriteConcern("majority", j=True)
_TRY_MS = 500
NAMESPACE_EXISTS = 48
_UNAUTHORIZED = 13
_NO_ROOM_CODES = frozenset({14031})
_REFUSED_CODES = frozenset({13, 18})
_PINGS = "pings"
_FIRST_CONTACT_SECONDS = 3.0
_PORT = 27017
_NO_MEMBERS = frozenset({"Standalone", "RSGhost"})
"""How the driver calls a server without ``--replSet``, and one with it that nobody has initiated."""


class MongoConnection:
    """``prepare`` makes indexes and the like, before the first action.

    ``patience`` is how long an action is repeated while the set has no primary; an election takes up to twelve
    seconds. The first contact is not waited for as long, because the address may be wrong, unless somebody takes our
    connection there and has only not answered yet: a server that has much to do.
    """

    def __init__(self, url: str, prepare: Callable[[], object], *, patience: float = 20.0) -> None:
        self._hosts = urlsplit(url).netloc.rpartition("@")[2]
        self._prepare = prepare
        self._patience = patience
        self._ready = False
        self._ready_lock = Lock()
        options: dict[str, Any] = {"appname": "toolcrib", "retryWrites": True, "retryReads": True}
        if "serverselectiontimeoutms" not in url.lower():
            options["serverSelectionTimeoutMS"] = _TRY_MS
        try:
            with warnings.catch_warnings():  # pymongo only warns of an option that it does not know
                warnings.simplefilter("error", UserWarning)
                self._client: pymongo.MongoClient[Document] = pymongo.MongoClient(url, connect=False, **options)
            database = self._client.get_default_database(DEFAULT_DATABASE)
        except (InvalidURI, ConfigurationError, ValueError, UserWarning) as error:
            raise StoreError(f"the address of the MongoDB store is wrong: {error}") from None
        self.database: Database[Document] = database.with_options(
            write_concern=_DURABLE, read_concern=ReadConcern("majority")
        )

    def attempt(self, action: Callable[[], _T]) -> _T:
        """Do it, and again while the replica set elects a primary: ``action`` may be done twice. Raises StoreError."""
        began = time.monotonic()
        while True:
            try:
                self._get_ready()
                return action()
            except PyMongoError as error:
                if not _passes(error) or not self._may_recover() or self._is_over(began):
                    raise self._failure(error) from error
            time.sleep(random.uniform(0.005, 0.1))  # noqa: S311 -- only to keep rivals from meeting again

    def ask(self, question: Callable[[int | None], _T]) -> _T:
        """``attempt`` for a query, within its budget: it is given for how many milliseconds the server may work.

        The server's time is the query's; that of an election is not.
        """
        budget = BUDGET.get()
        if budget is None:
            return self.attempt(lambda: question(None))

        def asked() -> _T:
            budget.check()
            began, worked = time.monotonic(), time.thread_time()
            most = None if math.isinf(budget.seconds_left) else max(1, round(budget.seconds_left * 1000))
            try:
                answer = question(most)
            except ExecutionTimeout:
                raise budget.time_is_over() from None
            budget.spend_seconds((time.monotonic() - began) - (time.thread_time() - worked))
            return answer

        return self.attempt(asked)

    def add(self, collection: str, documents: Sequence[Document]) -> None:
        """Keep new documents. Each has its ``_id`` before the first attempt, so a second changes nothing."""
        named = [{"_id": ObjectId(), **document} for document in documents]
        writes = [pymongo.ReplaceOne({"_id": document["_id"]}, document, upsert=True) for document in named]
        self.attempt(lambda: self.database[collection].bulk_write(writes))

    @contextmanager
    def transaction(self) -> Iterator[ClientSession]:
        with self._client.start_session() as session, session.start_transaction(ReadConcern("snapshot"), _DURABLE):
            yield session

    def make_collection(self, name: str) -> None:
        """A transaction that has to make a collection gets in the way of others.

        Making one that is there waits for the transactions that use it, also for one whose program was killed.
        """
        if name in self.database.list_collection_names(filter={"name": name}):
            return
        try:
            self.database.create_collection(name, check_exists=False)
        except OperationFailure as error:
            if error.code != NAMESPACE_EXISTS:
                raise

    def ping(self) -> None:
        """Raises StoreError if a majority does not take a write at once. It writes one document, over and over."""
        began = time.monotonic()
        while True:
            try:
                self._check_member()
                self.database[_PINGS].replace_one({"_id": "ping"}, {"at": time.time()}, upsert=True)
                return
            except PyMongoError as error:
                met = any(server.server_type_name != "Unknown" for server in self._servers())
                late = time.monotonic() > began + _FIRST_CONTACT_SECONDS
                if met or late or not isinstance(error, AutoReconnect) or not self._is_waited_for():
                    raise self._failure(error) from error

    def close(self) -> None:
        self._client.close()

    def _get_ready(self) -> None:
        """Once; making what is there already costs nothing and changes nothing."""
        if self._ready:
            return
        with self._ready_lock:
            if not self._ready:
                self._check_member()
                try:
                    self._prepare()
                except OperationFailure as error:
                    if error.code != _UNAUTHORIZED:
                        raise
                    _log.info("may only read at %r: its indexes and views are left as they are", self._hosts)
                self._ready = True

    def _check_member(self) -> None:
        if "setName" not in self._client.admin.command("hello"):
            raise self._no_member()

    def _may_recover(self) -> bool:
        """Whether waiting helps: it does not if at the first contact no server is, or may be, a member of the set."""
        return self._ready or any(server.server_type_name not in _NO_MEMBERS for server in self._servers())

    def _is_over(self, began: float) -> bool:
        """Whether an action was tried for long enough."""
        tried = time.monotonic() - began
        if self._ready or tried <= _FIRST_CONTACT_SECONDS:
            return tried > (self._patience if self._ready else _FIRST_CONTACT_SECONDS)
        return tried > self._patience or not self._is_waited_for()

    def _is_waited_for(self) -> bool:
        """Whether a server that has not answered yet, nor refused to, takes connections."""
        silent = [server for server in self._servers() if server.server_type_name == "Unknown" and not server.error]
        return any(_takes_connections(*server.address) for server in silent)

    def _servers(self) -> list[ServerDescription]:
        return list(self._client.topology_description.server_descriptions().values())

    def _failure(self, error: PyMongoError) -> StoreError:
        if isinstance(error, AutoReconnect) and not self._may_recover():
            return self._no_member()
        reason = error.details.get("errmsg") if isinstance(error, OperationFailure) and error.details else None
        text = str(reason or error).split(", Timeout:")[0].strip()
        return _kind(error)(f"the MongoDB store failed: {text}")

    def _no_member(self) -> StoreError:
        name = self._client.topology_description.replica_set_name
        return StoreError(
            f"the MongoDB server at {self._hosts!r} is not a member of a replica set{f' {name!r}' if name else ''}; "
            "start it with --replSet and run rs.initiate() (one member is enough)"
        )


def _takes_connections(host: str, port: int | None) -> bool:
    try:
        socket.create_connection((host, port or _PORT), timeout=_TRY_MS / 1000).close()
    except OSError:
        return False
    return True


def size_of(document: Document) -> int:
    """How many bytes the server keeps of it."""
    return len(bson.encode(document))


_PASSING_CODES = frozenset({
    6, 7, 89, 91, 112, 133, 134, 189, 246, 251, 262, 317, 9001, 10107, 11000, 11600, 11602, 13435, 13436,
})  # fmt: skip
"""Of a server that steps down, shuts down, starts, or met a rival transaction."""


def _kind(error: PyMongoError) -> type[StoreError]:
    codes = set(_codes(error))
    if codes & _NO_ROOM_CODES:
        return StorageFullError
    return StorageRefusedError if codes & _REFUSED_CODES else StoreError


def _codes(error: PyMongoError) -> Iterator[int]:
    """Those of the error, and of each write of a bulk."""
    if isinstance(error, OperationFailure):
        yield error.code or 0
        for write in (error.details or {}).get("writeErrors", ()):
            yield write.get("code", 0)


def _passes(error: PyMongoError) -> bool:
    """Whether trying again can help: an election, a lost connection, two transactions that met."""
    if isinstance(error, AutoReconnect):
        return True
    if error.has_error_label("TransientTransactionError") or error.has_error_label("UnknownTransactionCommitResult"):
        return True
    return isinstance(error, OperationFailure) and error.code in _PASSING_CODES

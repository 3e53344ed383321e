"""``mongodb://...`` keeps the catalogue on a replica set, for several services at once.

Every commit is one transaction, acknowledged by a majority and journalled. Etags are drawn before the first attempt,
so that an attempt whose answer was lost in an election is recognised when it is made again.
"""

from __future__ import annotations

import json
import random
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib.adapters.stores.changes import document_text, new_etag
from toolcrib.core.errors import InvalidQueryError, MissingDependencyError, StoreError
from toolcrib.core.query import Filter
from toolcrib.core.query.parsing import is_unicode
from toolcrib.ports import Change, Match, OutboxEntry, Record

try:
    import pymongo
    from pymongo.errors import (
        AutoReconnect,
        CollectionInvalid,
        ConfigurationError,
        InvalidURI,
        OperationFailure,
        PyMongoError,
    )
    from pymongo.read_concern import ReadConcern
    from pymongo.write_concern import WriteConcern

    from toolcrib.adapters.stores.mongo_filter import decode, server_filter
    from toolcrib.adapters.stores.mongo_write import (
        COUNTERS,
        HISTORY,
        OUTBOX,
        TOOLS,
        Commit,
        Document,
        Write,
        past_record,
        record,
    )  # fmt: skip
except ImportError as missing:
    raise MissingDependencyError("pymongo", extra="mongo") from missing

if TYPE_CHECKING:
    from pymongo.collection import Collection
    from pymongo.database import Database

_T = TypeVar("_T")

DEFAULT_DATABASE = "toolcrib"
_FIRST_CONTACT_MS = 3000
_TEXT_WEIGHTS = {"words_of_name": 4, "document.tags": 2, "document.description": 1}
_INDEXED = ("tool_type", "category", "tags", "capabilities", "execution_mode", "policy_rule_uri")


class MongoStore:
    """A store on a MongoDB replica set (a single member is enough). Safe between threads and between services.

    ``patience`` is how long a call is repeated while the set has no primary; an election takes up to twelve seconds.
    """

    remote = True

    def __init__(self, url: str, *, patience: float = 20.0, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._patience = patience
        try:
            options: dict[str, Any] = {"appname": "toolcrib", "retryWrites": True, "retryReads": True}
            if "serverselectiontimeoutms" not in url.lower():
                options["serverSelectionTimeoutMS"] = _FIRST_CONTACT_MS
            with warnings.catch_warnings():  # pymongo only warns of an option that it does not know
                warnings.simplefilter("error", UserWarning)
                self._client: pymongo.MongoClient[Document] = pymongo.MongoClient(url, connect=False, **options)
            database = self._client.get_default_database(DEFAULT_DATABASE)
        except (InvalidURI, ConfigurationError, ValueError, UserWarning) as error:
            raise StoreError(f"the address of the MongoDB store is wrong: {error}") from None
        self._database: Database[Document] = database.with_options(
            write_concern=WriteConcern("majority", j=True), read_concern=ReadConcern("majority")
        )
        self._tools: Collection[Document] = self._database[TOOLS]
        self._history: Collection[Document] = self._database[HISTORY]
        self._outbox: Collection[Document] = self._database[OUTBOX]
        self._ready = False
        self._ready_lock = Lock()

    # Reading

    def get(self, name: str) -> Record | None:
        if not is_unicode(name):
            return None
        found = self._attempt(lambda: self._tools.find_one({"_id": name}))
        return None if found is None else record(found)

    def get_json(self, name: str) -> str | None:
        found = self.get(name)
        return None if found is None else json.dumps(found.document, ensure_ascii=False, separators=(",", ":"))

    def generation(self) -> None:
        """Nothing that is cheaper to ask for than the tool itself would tell."""

    def query(self, where: Filter, *, limit: int | None = None, after: str | None = None) -> list[Record]:
        if limit is not None and limit <= 0:
            return []
        if after is not None and not is_unicode(after):
            raise InvalidQueryError(f"{after!r} is not a name to go on from")
        question, exact = server_filter(where, "document.")
        if after is not None:
            question = {"$and": [{"_id": {"$gt": after}}, question]}

        def matching() -> list[Record]:
            records: list[Record] = []
            with self._tools.find(question, limit=limit or 0 if exact else 0).sort("_id", 1) as cursor:
                for found in map(record, cursor):
                    if exact or where.matches(found.document):
                        records.append(found)
                        if len(records) == limit:
                            break
            return records

        return self._attempt(matching)

    def count(self, where: Filter) -> int:
        question, exact = server_filter(where, "document.")
        if exact:
            return self._attempt(lambda: self._tools.count_documents(question))
        fields = {"document": 1}
        return self._attempt(
            lambda: sum(where.matches(decode(found["document"])) for found in self._tools.find(question, fields))
        )

    def history(self, name: str) -> list[Record]:
        if not is_unicode(name):
            return []

        def versions() -> list[Record]:
            current = self._tools.find_one({"_id": name})
            records = [] if current is None else [record(current)]
            past = self._history.find({"name": name}).sort("version", -1)
            # A version that was replaced between the two questions is in both answers.
            newest = records[0].version if records else None
            return records + [old for old in map(past_record, past) if newest is None or old.version < newest]

        return self._attempt(versions)

    def search_text(self, text: str, *, limit: int = 10) -> list[Match]:
        """Tools whose name, description and tags hold every word of ``text``, best first."""
        words = [word for word in text.replace('"', " ").replace("\0", " ").split() if is_unicode(word)]
        if not words or limit <= 0:
            return []
        question = {"$text": {"$search": " ".join(f'"{word}"' for word in words[:50])}}
        score = {"$meta": "textScore"}
        found = self._attempt(
            lambda: list(self._tools.find(question, {"score": score}).sort([("score", score)]).limit(limit))
        )
        return [Match(row["_id"], row["score"] / (1 + row["score"]), f"holds {text!r}") for row in found]

    # Writing

    def commit(self, changes: Sequence[Change]) -> list[Record]:
        at = self._clock()
        writes = [
            Write(change, "{}" if change.document is None else document_text(change), new_etag(), at)
            for change in changes
        ]
        attempts = 0

        def attempt() -> list[Record]:
            nonlocal attempts
            attempts += 1
            snapshot, durable = ReadConcern("snapshot"), WriteConcern("majority", j=True)
            with self._client.start_session() as session, session.start_transaction(snapshot, durable):
                commit = Commit(self._database, session, writes)
                return (attempts > 1 and commit.landed()) or commit.run()

        return self._attempt(attempt) if writes else []

    def outbox(self, *, limit: int = 100) -> list[OutboxEntry]:
        if limit <= 0:
            return []
        found = self._attempt(lambda: list(self._outbox.find(limit=limit).sort("_id", 1)))
        return [
            OutboxEntry(
                sequence=entry["_id"],
                name=entry["name"],
                payload=json.loads(entry["payload"]),
                attempts=entry["attempts"],
                not_before=entry["not_before"],
                last_error=entry["last_error"],
            )
            for entry in found
        ]

    def acknowledge(self, sequence: int) -> None:
        self._attempt(lambda: self._outbox.delete_one({"_id": sequence}))

    def postpone(self, sequence: int, *, not_before: float, error: str) -> None:
        later = {"$set": {"not_before": not_before, "last_error": error}, "$inc": {"attempts": 1}}
        self._attempt(lambda: self._outbox.update_one({"_id": sequence}, later))

    def ping(self) -> None:
        """Raises StoreError where no primary answers."""
        try:
            hello = self._client.admin.command("hello")
        except PyMongoError as error:
            raise _failure(error) from error
        if "setName" not in hello:
            raise StoreError(
                "the MongoDB store needs a replica set, because its commits are transactions; "
                "start mongod with --replSet (one member is enough)"
            )

    def close(self) -> None:
        self._client.close()

    # The server

    def _attempt(self, action: Callable[[], _T]) -> _T:
        """Do it, and again while the replica set elects a primary. The first contact is not waited for."""
        deadline = time.monotonic() + self._patience
        while True:
            try:
                self._prepare()
                return action()
            except PyMongoError as error:
                if not self._ready or not _passes(error) or time.monotonic() > deadline:
                    raise _failure(error) from error
            time.sleep(random.uniform(0.005, 0.1))  # noqa: S311 -- only to keep rivals from meeting again

    def _prepare(self) -> None:
        """Collections and indexes, once; creating one that exists costs nothing and changes nothing."""
        if self._ready:
            return
        with self._ready_lock:
            self.ping()
            for name in (OUTBOX, COUNTERS):  # a transaction that has to make a collection gets in the way of others
                with suppress(CollectionInvalid):
                    self._database.create_collection(name)
            for field in _INDEXED:
                self._tools.create_index([(f"document.{field}", 1), ("_id", 1)])
            self._tools.create_index(
                [(field, "text") for field in _TEXT_WEIGHTS],
                name="tool_text",
                weights=_TEXT_WEIGHTS,
                default_language="none",
                language_override="no_language",
            )
            self._history.create_index([("name", 1), ("version", -1)], unique=True)
            self._ready = True


_PASSING_CODES = frozenset({
    6, 7, 89, 91, 112, 133, 134, 189, 246, 251, 262, 317, 9001, 10107, 11000, 11600, 11602, 13435, 13436,
})  # fmt: skip
"""Of a server that steps down, shuts down, starts, or met a rival transaction."""


def _passes(error: PyMongoError) -> bool:
    """Whether trying again can help: an election, a lost connection, two transactions that met."""
    if isinstance(error, AutoReconnect):
        return True
    if error.has_error_label("TransientTransactionError") or error.has_error_label("UnknownTransactionCommitResult"):
        return True
    return isinstance(error, OperationFailure) and error.code in _PASSING_CODES


def _failure(error: PyMongoError) -> StoreError:
    reason = error.details.get("errmsg") if isinstance(error, OperationFailure) and error.details else None
    text = str(reason or error).split(", Timeout:")[0].strip()
    return StoreError(f"the MongoDB store failed: {text}")

"""``mongodb://...`` keeps the catalogue on a replica set, for several services at once.

Every commit is one transaction, acknowledged by a majority and journalled. Etags are drawn before the first attempt,
so that an attempt whose answer was lost in an election is recognised when it is made again.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from toolcrib.adapters.mongo import Document, MongoConnection, size_of
from toolcrib.adapters.stores.changes import check_after, kept_document, new_etag
from toolcrib.adapters.stores.mongo_filter import any_word, decode, server_filter
from toolcrib.adapters.stores.mongo_views import make_views
from toolcrib.adapters.stores.mongo_write import (
    COUNTERS,
    HISTORY,
    OUTBOX,
    TOOLS,
    Commit,
    Write,
    fill_in_words,
    past_record,
    record,
)  # fmt: skip
from toolcrib.core.json import is_unicode
from toolcrib.core.query import Filter
from toolcrib.core.query.budget import BUDGET, found, looked_at
from toolcrib.core.ranking import Candidate, Lookup
from toolcrib.ports import Change, OutboxEvent, Record

if TYPE_CHECKING:
    from pymongo.collection import Collection

_CLAIMS = "tool_claims"
_INDEXED = ("tool_type", "category", "tags", "capabilities", "execution_mode", "policy_rule_uri")


class MongoStore:
    """A store on a MongoDB replica set (a single member is enough). Safe between threads and between services."""

    remote = True

    def __init__(self, url: str, *, patience: float = 20.0, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._server = MongoConnection(url, self._prepare, patience=patience)
        self._attempt = self._server.attempt
        self._ask = self._server.ask
        database = self._server.database
        self._tools: Collection[Document] = database[TOOLS]
        self._history: Collection[Document] = database[HISTORY]
        self._outbox: Collection[Document] = database[OUTBOX]
        self._claims: Collection[Document] = database[_CLAIMS]

    # Reading

    def get(self, name: str) -> Record | None:
        if not is_unicode(name):
            return None
        found = self._attempt(lambda: self._tools.find_one({"_id": name}))
        return None if found is None else record(found)

    def generation(self) -> None:
        """Nothing that is cheaper to ask for than the tool itself would tell."""

    def query(self, where: Filter, *, limit: int | None = None, after: str | None = None) -> list[Record]:
        if limit is not None and limit <= 0:
            return []
        check_after(after)
        question, exact = server_filter(where, "document.")
        if after is not None:
            question = {"$and": [{"_id": {"$gt": after}}, question]}

        def matching(most_ms: int | None) -> list[Record]:
            records: list[Record] = []
            some = limit or 0 if exact else 0
            with self._tools.find(question, limit=some, max_time_ms=most_ms).sort("_id", 1) as cursor:
                for document in cursor:
                    looked_at()
                    candidate = record(document)
                    if exact or where.matches(candidate.document):
                        _count_found(document)
                        records.append(candidate)
                        if len(records) == limit:
                            break
            return records

        return self._ask(matching)

    def count(self, where: Filter) -> int:
        question, exact = server_filter(where, "document.")

        def counted(most_ms: int | None) -> int:
            if exact:
                limits: dict[str, Any] = {} if most_ms is None else {"maxTimeMS": most_ms}
                return self._tools.count_documents(question, **limits)
            count = 0
            with self._tools.find(question, {"document": 1}, max_time_ms=most_ms) as cursor:
                for document in cursor:
                    looked_at()
                    count += where.matches(decode(document["document"]))
            return count

        return self._ask(counted)

    def history(self, name: str) -> list[Record]:
        if not is_unicode(name):
            return []

        def versions(most_ms: int | None) -> list[Record]:
            current = self._tools.find_one({"_id": name}, max_time_ms=most_ms)
            records = []
            if current is not None:
                _count_found(current)
                records.append(record(current))
            # A version that was replaced between the two questions is in both answers.
            newest = records[0].version if records else None
            with self._history.find({"name": name}, max_time_ms=most_ms).sort("version", -1) as past:
                for document in past:
                    looked_at()
                    _count_found(document)
                    old = past_record(document)
                    if newest is None or old.version < newest:
                        records.append(old)
            return records

        return self._ask(versions)

    def text_candidates(self, wanted: Sequence[Lookup], *, limit: int) -> list[Candidate]:
        question = {"$and": [{"words": {"$in": any_word(lookup)}} for lookup in wanted]}
        rows = self._ask(
            lambda most_ms: list(self._tools.find(question, {"words": 1}, limit=limit, max_time_ms=most_ms))
        )
        return [Candidate(row["_id"], " ".join(row["words"])) for row in rows]

    # Writing

    def commit(self, changes: Sequence[Change]) -> list[Record]:
        at = self._clock()
        writes = [Write(change, kept_document(change)[1], new_etag(), at) for change in changes]
        attempts = 0

        def attempt() -> list[Record]:
            nonlocal attempts
            attempts += 1
            with self._server.transaction() as session:
                commit = Commit(self._server.database, session, writes)
                return (attempts > 1 and commit.landed()) or commit.run()

        return self._attempt(attempt) if writes else []

    def outbox(self, *, limit: int = 100) -> list[OutboxEvent]:
        if limit <= 0:
            return []
        found = self._attempt(lambda: list(self._outbox.find(limit=limit).sort("_id", 1)))
        return [OutboxEvent(entry.pop("_id"), payload=json.loads(entry.pop("payload")), **entry) for entry in found]

    def acknowledge(self, sequence: int) -> None:
        self._attempt(lambda: self._outbox.delete_one({"_id": sequence}))

    def postpone(self, sequence: int, *, not_before: float, error: str) -> None:
        later = {"$set": {"not_before": not_before, "last_error": error}, "$inc": {"attempts": 1}}
        self._attempt(lambda: self._outbox.update_one({"_id": sequence}, later))

    def claimed(self, name: str) -> str:
        found = self._attempt(lambda: self._claims.find_one({"_id": name}))
        return "" if found is None else str(found["value"])

    def claim(self, name: str, value: str, *, instead_of: str = "") -> str:
        def put() -> object:
            if instead_of:
                return self._claims.update_one({"_id": name, "value": instead_of}, {"$set": {"value": value}})
            return self._claims.update_one({"_id": name}, {"$setOnInsert": {"value": value}}, upsert=True)

        self._attempt(put)
        return self.claimed(name)

    def ping(self) -> None:
        self._server.ping()

    def close(self) -> None:
        self._server.close()

    def _prepare(self) -> None:
        for name in (OUTBOX, COUNTERS):
            self._server.make_collection(name)
        for field in _INDEXED:
            self._tools.create_index([(f"document.{field}", 1), ("_id", 1)])
        self._tools.create_index([("words", 1), ("_id", 1)])
        fill_in_words(self._tools)
        self._history.create_index([("name", 1), ("version", -1)], unique=True)
        make_views(self._server.database, TOOLS)


def _count_found(document: Document) -> None:
    """To be counted, a document must be measured; nobody pays for that without a budget."""
    if BUDGET.get() is not None:
        found(size_of(document))

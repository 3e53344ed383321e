"""The audit in a MongoDB collection beside the tools, so that every replica writes into the same one.

Each process has a chain of its own, which begins with the heads of the newest others: one chain for all would make them
wait for one another. The head of a chain is a document among its events and goes along with them. Events that come
while others are being written go together, in one write after those.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, Unpack

from pymongo import ReplaceOne, UpdateOne

from toolcrib.adapters.mongo import Document, MongoConnection
from toolcrib.core.chains import PAST, Head, Link, linked
from toolcrib.core.errors import StoreError
from toolcrib.ports import AuditCriteria, AuditEvent

_AUDIT = "audit"
_EVENT, _HEAD = {"_id": {"$type": "objectId"}}, {"_id": {"$type": "string"}}
_SEEN = 20
"""How many other chains a new one names."""
_ROWS_AT_ONCE = 1000


@dataclass(eq=False, slots=True)
class _Turn:
    """Some events that wait to be written, and what came of it."""

    events: tuple[AuditEvent, ...]
    is_over: bool = False
    error: StoreError | None = None


class MongoAudit:
    remote = True

    def __init__(self, url: str) -> None:
        self._server = MongoConnection(url, self._prepare)
        self._events = self._server.database[_AUDIT]
        self._waiting: list[_Turn] = []
        self._queue = Lock()
        self._writing = Lock()
        self._head: Head | None = None
        self._begun = 0.0

    def record(self, *events: AuditEvent) -> None:
        if not events:
            return
        turn = _Turn(events)
        with self._queue:
            self._waiting.append(turn)
        with self._writing:
            if not turn.is_over:
                self._write_waiting()
        if turn.error:
            raise type(turn.error)(str(turn.error))  # one for each who waited

    def _write_waiting(self) -> None:
        """All turns that wait, in one write. After a failure nobody knows what was written, so a new chain begins."""
        with self._queue:
            turns, self._waiting = self._waiting, []
        error: StoreError | None = StoreError("the audit was interrupted")
        try:
            self._write([event for turn in turns for event in turn.events])
            error = None
        except StoreError as failure:
            error = failure
        finally:
            if error:
                self._head = None
            for turn in turns:
                turn.is_over, turn.error = True, error

    def _write(self, events: list[AuditEvent]) -> None:
        saw = ""
        if self._head is None:
            newest = list(self.heads().values())[-_SEEN:]
            saw = " ".join(map(str, newest))
            self._head, self._begun = Head(secrets.token_hex(6), 0, ""), time.time()
        links = linked(events, self._head, saw)
        self._server.add(_AUDIT, [*map(_document, links), _head_document(links[-1].head, self._begun)])
        self._head = links[-1].head

    def events(self, *, since: float = 0.0, limit: int = 100, **wanted: Unpack[AuditCriteria]) -> list[AuditEvent]:
        where: dict[str, Any] = {name: value for name, value in wanted.items() if value} | _EVENT
        where |= {"at": {"$gte": since}} if since else {}
        # By the moment first: the ids of several processes are ordered only by the second.
        newest = [("at", -1), ("_id", -1)]
        found = self._server.attempt(lambda: list(self._events.find(where).sort(newest).limit(limit)))
        return [AuditEvent(**{name: document[name] for name in AuditEvent._fields}) for document in found]

    def links(self) -> Iterator[Link]:
        def ordered() -> Any:
            return self._events.find(_EVENT).sort([("chain", 1), ("number", 1)]).allow_disk_use(True)

        with self._server.attempt(ordered) as rows:
            for row in rows:
                event = [row[name] for name in AuditEvent._fields]
                yield Link(row.get("chain", ""), row.get("number", 0), row.get("hash", ""), row.get("saw", ""), event)

    def heads(self) -> dict[str, Head]:
        rows = self._server.attempt(lambda: list(self._events.find(_HEAD).sort("begun", 1)))
        return {row["chain"]: Head(row["chain"], row["number"], row["hash"]) for row in rows if row["number"]}

    def adopt(self, links: Iterable[Link], heads: Mapping[str, Head]) -> None:
        known = self.heads()
        documents = [_document(link) for link in links if link.chain not in known]
        for start in range(0, len(documents), _ROWS_AT_ONCE):
            self._server.add(_AUDIT, documents[start : start + _ROWS_AT_ONCE])
        brought = [_head_document(head, 0.0) for head in heads.values() if head.chain not in known]
        if brought:
            self._server.add(_AUDIT, brought)

    def ping(self) -> None:
        self._server.ping()

    def close(self) -> None:
        self._server.close()

    def _prepare(self) -> None:
        for field in ("tool", "principal", "at"):
            self._events.create_index([(field, 1), ("_id", -1)])
        if self._events.find_one({"_id": _head_id(PAST)}) is None:
            self._link_past()

    def _link_past(self) -> None:
        """Link the events that an older release kept, as they are found. Who does it at the same time does the same."""
        head = Head(PAST, 0, "")
        fields = dict.fromkeys(AuditEvent._fields, 1)
        oldest = self._events.find(_EVENT | {"chain": {"$exists": False}}, fields).sort([("at", 1), ("_id", 1)])
        writes: list[Any] = []
        with oldest.allow_disk_use(True) as rows:
            for row in rows:
                (link,) = linked([[row[name] for name in AuditEvent._fields]], head)
                head = link.head
                place = {"chain": PAST, "number": head.number, "hash": head.hash}
                writes.append(UpdateOne({"_id": row["_id"]}, {"$set": place}))
        for start in range(0, len(writes), _ROWS_AT_ONCE):
            self._events.bulk_write(writes[start : start + _ROWS_AT_ONCE])
        past = _head_document(head, 0.0)
        self._events.bulk_write([ReplaceOne({"_id": past["_id"]}, past, upsert=True)])


def _document(link: Link) -> Document:
    place: Document = {"chain": link.chain, "number": link.number, "hash": link.hash}
    seen = {"saw": link.saw} if link.saw else {}
    return dict(zip(AuditEvent._fields, link.event, strict=True)) | place | seen


def _head_document(head: Head, begun: float) -> Document:
    return {"_id": _head_id(head.chain), "chain": head.chain, "number": head.number, "hash": head.hash, "begun": begun}


def _head_id(chain: str) -> str:
    return f"head:{chain}"

"""The audit in a MongoDB collection beside the tools, so that every replica writes into the same one."""

from __future__ import annotations

from typing import Any, Unpack

from toolcrib.adapters.mongo import MongoConnection
from toolcrib.ports import AuditCriteria, AuditEvent

_AUDIT = "audit"


class MongoAudit:
    remote = True

    def __init__(self, url: str) -> None:
        self._server = MongoConnection(url, self._prepare)
        self._events = self._server.database[_AUDIT]

    def record(self, *events: AuditEvent) -> None:
        if events:
            self._server.add(_AUDIT, [event._asdict() for event in events])

    def events(self, *, since: float = 0.0, limit: int = 100, **wanted: Unpack[AuditCriteria]) -> list[AuditEvent]:
        where: dict[str, Any] = {name: value for name, value in wanted.items() if value}
        where |= {"at": {"$gte": since}} if since else {}
        # By the moment first: the ids of several processes are ordered only by the second.
        newest = [("at", -1), ("_id", -1)]
        found = self._server.attempt(lambda: list(self._events.find(where).sort(newest).limit(limit)))
        return [AuditEvent(**{name: document[name] for name in AuditEvent._fields}) for document in found]

    def ping(self) -> None:
        self._server.ping()

    def close(self) -> None:
        self._server.close()

    def _prepare(self) -> None:
        for field in ("tool", "principal", "at"):
            self._events.create_index([(field, 1), ("_id", -1)])

"""The audit in a MongoDB collection beside the tools, so that every replica writes into the same one."""

from __future__ import annotations

from typing import Any

from toolcrib.core.errors import MissingDependencyError, StoreError
from toolcrib.ports import AuditEvent

_FIELDS = ("call", "at", "principal", "action", "tool", "outcome", "detail")


class MongoAudit:
    remote = True

    def __init__(self, url: str) -> None:
        try:
            import pymongo
            from pymongo.errors import PyMongoError
        except ImportError:
            raise MissingDependencyError("pymongo", extra="mongo") from None
        self._failure = PyMongoError
        self._client: Any = pymongo.MongoClient(url, w="majority", journal=True, serverSelectionTimeoutMS=10_000)
        try:
            self._events = self._client.get_default_database("toolcrib")["audit"]
            for field in ("tool", "principal", "at"):
                self._events.create_index([(field, 1), ("_id", -1)])
        except PyMongoError as error:
            raise self._failed(error) from None

    def record(self, *events: AuditEvent) -> None:
        if not events:
            return
        try:
            self._events.insert_many([{name: getattr(event, name) for name in _FIELDS} for event in events])
        except self._failure as error:
            raise self._failed(error) from None

    def events(
        self,
        *,
        tool: str = "",
        principal: str = "",
        action: str = "",
        outcome: str = "",
        call: str = "",
        since: float = 0.0,
        limit: int = 100,
    ) -> list[AuditEvent]:
        wanted = {"tool": tool, "principal": principal, "action": action, "outcome": outcome, "call": call}
        where: dict[str, Any] = {name: value for name, value in wanted.items() if value}
        where |= {"at": {"$gte": since}} if since else {}
        try:
            # By the moment first: the ids of several processes are ordered only by the second.
            found = list(self._events.find(where).sort([("at", -1), ("_id", -1)]).limit(limit))
        except self._failure as error:
            raise self._failed(error) from None
        return [AuditEvent(**{name: document[name] for name in _FIELDS}) for document in found]

    def close(self) -> None:
        self._client.close()

    def _failed(self, error: Exception) -> StoreError:
        return StoreError(f"the audit collection did not answer: {error!s:.200}")

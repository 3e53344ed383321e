"""The audit of a catalogue that lives in memory. It keeps the newest events and ends with the process."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from itertools import islice

from toolcrib.ports import AuditEvent


class MemoryAudit:
    remote = False

    def __init__(self, keep: int = 100_000) -> None:
        self._events: deque[AuditEvent] = deque(maxlen=keep)

    def record(self, *events: AuditEvent) -> None:
        self._events.extend(events)

    def events(
        self, *, tool: str = "", principal: str = "", action: str = "", outcome: str = "", call: str = "",
        since: float = 0.0, limit: int = 100,
    ) -> list[AuditEvent]:  # fmt: skip
        wanted = {"tool": tool, "principal": principal, "action": action, "outcome": outcome, "call": call}
        return list(islice(matching(reversed(list(self._events)), wanted, since), limit))

    def close(self) -> None:
        """Nothing to close."""


def matching(events: Iterable[AuditEvent], wanted: dict[str, str], since: float) -> Iterable[AuditEvent]:
    criteria = [(key, value) for key, value in wanted.items() if value]
    return (
        event for event in events if event.at >= since and all(getattr(event, key) == value for key, value in criteria)
    )

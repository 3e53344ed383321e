"""The audit of a catalogue that lives in memory. It keeps the newest events and ends with the process.

Nobody else can reach it, so its events are linked when somebody asks.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Unpack

from toolcrib.core.chains import Head, Link, linked
from toolcrib.ports import AuditCriteria, AuditEvent


class MemoryAudit:
    remote = False

    def __init__(self) -> None:
        self._events: deque[AuditEvent] = deque(maxlen=100_000)

    def record(self, *events: AuditEvent) -> None:
        self._events.extend(events)

    def events(self, *, since: float = 0.0, limit: int = 100, **wanted: Unpack[AuditCriteria]) -> list[AuditEvent]:
        given = {name: value for name, value in wanted.items() if value}.items()
        newest = (event for event in reversed(list(self._events)) if event.at >= since)
        return list(islice((event for event in newest if given <= event._asdict().items()), limit))

    def links(self) -> Iterator[Link]:
        return iter(linked(list(self._events), Head("memory", 0, "")))

    def heads(self) -> dict[str, Head]:
        return {link.chain: link.head for link in list(self.links())[-1:]}

    def adopt(self, links: Iterable[Link], heads: Mapping[str, Head]) -> None:
        del heads
        self._events.extend(AuditEvent(*link.event) for link in links)

    def ping(self) -> None:
        """Memory is always there."""

    def close(self) -> None:
        """Nothing to close."""

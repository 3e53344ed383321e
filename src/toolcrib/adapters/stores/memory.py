"""``memory:`` keeps the catalogue in this process. It is the reference that the other stores are held against."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import islice
from threading import RLock

from toolcrib.adapters.stores.contents import Contents
from toolcrib.core.query import Filter
from toolcrib.ports import Change, OutboxEntry, Record


class MemoryStore:
    """A store that lasts as long as the object. Safe to use from several threads."""

    remote = False

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._contents = Contents()
        self._lock = RLock()
        self._clock = clock

    def get(self, name: str) -> Record | None:
        with self._lock:
            version = self._contents.get(name)
        return None if version is None else version.record()

    def commit(self, changes: Sequence[Change]) -> list[Record]:
        with self._lock:
            plan = self._contents.plan(changes, self._clock())
            self._contents.put(plan)
        return [version.record() for version in plan.versions]

    def generation(self) -> object:
        """Equal values: nothing was written between the two calls, by anybody."""
        with self._lock:
            return self._contents.generation()

    def query(self, where: Filter, *, limit: int | None = None, after: str | None = None) -> list[Record]:
        with self._lock:
            versions = list(islice(self._contents.matching(where, after), limit))
        return [version.record() for version in versions]

    def count(self, where: Filter) -> int:
        with self._lock:
            return sum(1 for _ in self._contents.matching(where))

    def history(self, name: str) -> list[Record]:
        with self._lock:
            versions = self._contents.history(name)
        return [version.record() for version in versions]

    def outbox(self, *, limit: int = 100) -> list[OutboxEntry]:
        with self._lock:
            return self._contents.outbox(limit)

    def acknowledge(self, sequence: int) -> None:
        with self._lock:
            self._contents.acknowledge(sequence)

    def postpone(self, sequence: int, *, not_before: float, error: str) -> None:
        with self._lock:
            self._contents.postpone(sequence, not_before, error)

    def claimed(self, name: str) -> str:
        with self._lock:
            return self._contents.claims.get(name, "")

    def claim(self, name: str, value: str, *, instead_of: str = "") -> str:
        with self._lock:
            self._contents.claim(name, value, instead_of)
            return self._contents.claims.get(name, "")

    def ping(self) -> None:
        """Memory is always there."""

    def close(self) -> None:
        """Nothing to close."""

"""``memory:`` keeps the catalogue in this process. It is the reference that the other stores are held against."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock

from toolcrib.adapters.stores.contents import Contents, ContentsReader
from toolcrib.ports import Change, Record


class MemoryStore(ContentsReader):
    """A store that lasts as long as the object. Safe to use from several threads."""

    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._contents = Contents()
        self._lock = RLock()
        self._clock = clock

    def commit(self, changes: Sequence[Change]) -> list[Record]:
        with self._lock:
            plan = self._contents.plan(changes, self._clock())
            self._contents.put(plan)
        return [version.record() for version in plan.versions]

    def acknowledge(self, sequence: int) -> None:
        with self._lock:
            self._contents.acknowledge(sequence)

    def postpone(self, sequence: int, *, not_before: float, error: str) -> None:
        with self._lock:
            self._contents.postpone(sequence, not_before, error)

    def claim(self, name: str, value: str, *, instead_of: str = "") -> str:
        with self._lock:
            self._contents.claim(name, value, instead_of)
            return self._contents.claims.get(name, "")

    def ping(self) -> None:
        """Memory is always there."""

    def close(self) -> None:
        """Nothing to close."""

    @contextmanager
    def _reading(self) -> Iterator[Contents]:
        with self._lock:
            yield self._contents

"""Values that are kept for a while, within bounds."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """At most ``size`` values of at most ``weight`` together; the one put in longest ago goes first. Thread-safe."""

    def __init__(self, size: int, *, weight: float = float("inf"), clock: Callable[[], float] = time.monotonic) -> None:
        self._size = size
        self._weight = weight
        self._clock = clock
        self._kept: OrderedDict[K, tuple[V, float, float]] = OrderedDict()
        self._heavy = 0.0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: K) -> V | None:
        """What was put there, if its time is not up."""
        found = self._kept.get(key)  # one step of the interpreter, so it needs no lock
        if found is None or self._clock() >= found[1]:
            return None
        return found[0]

    def put(self, key: K, value: V, *, seconds: float = float("inf"), weight: float = 0.0) -> None:
        """Kept for ``seconds``; not at all if it is heavier than everything may be together."""
        with self._lock:
            self._drop(key)
            if weight > self._weight:
                return
            self._kept[key] = (value, self._clock() + seconds, weight)
            self._heavy += weight
            while len(self._kept) > self._size or self._heavy > self._weight:
                self._drop(next(iter(self._kept)))

    def forget(self, key: K) -> None:
        with self._lock:
            self._drop(key)

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()
            self._heavy = 0.0

    def _drop(self, key: K) -> None:
        if (found := self._kept.pop(key, None)) is not None:
            self._heavy -= found[2]

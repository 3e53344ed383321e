"""Token buckets: so many takes a second for each key, with room for a burst."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable


class Buckets:
    """``rate`` a second for every key, ``burst`` at once.

    At most ``capacity`` keys are remembered. One that is forgotten begins with a full bucket, and the one idle for
    longest is forgotten first: its bucket is the fullest. For one thread.
    """

    __slots__ = ("_burst", "_capacity", "_clock", "_left", "_rate")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], capacity: int = 10_000) -> None:
        self._rate = rate
        self._burst = max(burst, 1.0)
        self._clock = clock
        self._capacity = capacity
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def remembered(self) -> int:
        return len(self._left)

    def take(self, key: str, patience: float = 0.0) -> float:
        """0 if there was one to take; otherwise nothing is taken, and it is the seconds until there is one.

        Whoever has more ``patience`` than that has taken it: the next one is promised to them.
        """
        now = self._clock()
        kept = self._left.get(key)
        left = self._burst
        if kept is not None:
            left = kept[0] + (now - kept[1]) * self._rate
            left = min(left, self._burst)
            self._left.move_to_end(key)
        missing = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._left[key] = (left - 1.0 if missing == 0.0 or missing < patience else left, now)
        if kept is None and len(self._left) > self._capacity:
            self._left.popitem(last=False)
        return missing

    def give_back(self, key: str) -> None:
        """By who took one and does not use it."""
        if key in self._left:
            left, at = self._left[key]
            self._left[key] = (min(self._burst, left + 1.0), at)

"""Token buckets: so many requests a second each, with room for a burst."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from toolcrib.surfaces.http.errors import RateLimitedError


class RateLimit:
    """``rate`` a second for every key, ``burst`` at once; a rate of 0 means no limit.

    At most ``capacity`` keys are remembered. One that is forgotten begins with a full bucket, and the one idle for
    longest is forgotten first: its bucket is the fullest.
    """

    __slots__ = ("_buckets", "_burst", "_capacity", "_clock", "_rate")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], capacity: int = 10_000) -> None:
        self._rate = rate
        self._burst = max(burst, 1.0)
        self._clock = clock
        self._capacity = capacity
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    @property
    def remembered(self) -> int:
        return len(self._buckets)

    def take(self, key: str) -> None:
        """One request more, or RateLimitedError."""
        if self._rate <= 0:
            return
        wait = self._wait(key)
        if wait > 0:
            raise RateLimitedError(
                f"more than {self._rate:g} requests a second; try again in {wait:.1f} s", seconds=wait
            )

    def _wait(self, key: str) -> float:
        now = self._clock()
        left, at = self._buckets.get(key, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._rate)
        admitted = left >= 1.0
        self._buckets[key] = (left - 1.0 if admitted else left, now)
        self._buckets.move_to_end(key)
        if len(self._buckets) > self._capacity:
            self._buckets.popitem(last=False)
        return 0.0 if admitted else (1.0 - left) / self._rate

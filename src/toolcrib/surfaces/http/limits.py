"""How many requests a second each may send."""

from __future__ import annotations

from collections.abc import Callable

from toolcrib.core.buckets import Buckets
from toolcrib.core.errors import RateLimitedError


class RateLimit:
    """``rate`` a second for every key, ``burst`` at once; a rate of 0 means no limit."""

    __slots__ = ("_buckets", "_rate")

    def __init__(self, rate: float, burst: float, clock: Callable[[], float], capacity: int = 10_000) -> None:
        self._rate = rate
        self._buckets = Buckets(rate, burst, clock, capacity)

    @property
    def remembered(self) -> int:
        return self._buckets.remembered

    def take(self, key: str) -> None:
        """One request more, or RateLimitedError."""
        if self._rate > 0 and (wait := self._buckets.take(key)) > 0:
            raise RateLimitedError(
                f"more than {self._rate:g} requests a second; try again in {wait:.1f} s", seconds=wait
            )

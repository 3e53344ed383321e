"""Deadlines on a machine that others use too."""

import time
from collections.abc import Awaitable, Callable

GRACE = 0.25
"""The promise: a call that is stopped at its deadline is over within so many seconds of it."""


async def quickest(attempt: Callable[[], Awaitable[object]], *, enough: float, tries: int = 3) -> float:
    """The seconds of the quickest attempt; no further one is made once an attempt took less than ``enough``."""
    best = float("inf")
    for _ in range(tries):
        began = time.monotonic()
        await attempt()
        best = min(best, time.monotonic() - began)
        if best < enough:
            break
    return best

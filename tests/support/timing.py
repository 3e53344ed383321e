"""Deadlines on a machine that others use too."""

import time
from collections.abc import Awaitable, Callable


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

"""How long to wait before the next attempt."""

from __future__ import annotations

from collections.abc import Callable


def backoff(
    attempt: int, first: float, longest: float = float("inf"), draw: Callable[[float, float], float] | None = None
) -> float:
    """Seconds after the failed ``attempt``, counted from 0: twice as long each time, up to ``longest``.

    ``draw(low, high)``, such as ``random.uniform``, takes a part of it, so that those who failed together do not come
    back together.
    """
    seconds = min(longest, first * 2.0 ** min(attempt, 30))
    return seconds if draw is None else draw(seconds / 2, seconds)

"""How long to wait before the next attempt."""

from __future__ import annotations

import re
from collections.abc import Callable
from email.utils import mktime_tz, parsedate_tz

_SECONDS = re.compile("[0-9]{1,9}")


def backoff(
    attempt: int, first: float, longest: float = float("inf"), draw: Callable[[float, float], float] | None = None
) -> float:
    """Seconds after the failed ``attempt``, counted from 0: twice as long each time, up to ``longest``.

    ``draw(low, high)``, such as ``random.uniform``, takes a part of it, so that those who failed together do not come
    back together.
    """
    seconds = min(longest, first * 2.0 ** min(attempt, 30))
    return seconds if draw is None else draw(seconds / 2, seconds)


def seconds_asked(retry_after: str, now: float) -> float | None:
    """The wait that a service asks for with ``Retry-After``, in seconds or as a date; None if it is neither.

    ``now`` is counted as ``time.time`` does.
    """
    text = retry_after.strip()
    if _SECONDS.fullmatch(text):
        return float(text)
    try:
        at = parsedate_tz(text)
        return None if at is None else max(0.0, mktime_tz(at) - now)
    except (ValueError, OverflowError):
        return None

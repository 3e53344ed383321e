"""How often each tool was called, how long it took, and what it put into conversations.

Every call passes here, so a call that went well costs one look-up and one ``append``, which no lock need guard. What
was appended is counted later: when there is enough of it, and when somebody asks.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

from toolcrib.core.counting import CountTokens, estimated_tokens
from toolcrib.core.errors import kind_for_code

UNKNOWN = "(unknown)"
"""Under this name are the calls of tools that there are not: callers can invent names without end."""
CALLS_MEASURED = 512
"""The percentiles are exact, over so many of a tool's latest runs."""
_BATCH = 256
_MOST_NAMES = 10_000
"""Beyond it the tool that was first called longest ago is forgotten."""
_MOST_CODES = 50
_log = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Usage:
    """What became of the calls of one tool."""

    calls: int = 0
    """All of them: also those that were refused, and those that were cancelled."""
    errors: int = 0
    errors_by_code: Mapping[str, int] = field(default_factory=dict)
    p50: float | None = None
    """Seconds that half of the latest runs took at most; None if the tool never ran."""
    p95: float | None = None
    last_used: datetime | None = None
    definition_tokens: int = 0
    """What the tool's definition costs each time that it is sent to a model, about."""
    result_tokens: int = 0
    """What all its answers in conversations cost the first time that they are sent, about."""


class _Tally:
    __slots__ = ("codes", "latest", "result_tokens", "times", "used", "went_well")

    def __init__(self) -> None:
        self.times: list[float] = []
        self.used = 0.0
        self.latest: deque[float] = deque(maxlen=CALLS_MEASURED)
        self.codes: Counter[str] = Counter()
        self.went_well = 0
        self.result_tokens = 0


class UsageCounter:
    """Counts calls from any thread, each exactly once."""

    __slots__ = ("_clock", "_lock", "_tallies")

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._tallies: dict[str, _Tally] = {}
        self._lock = threading.Lock()

    def went_well(self, name: str, ended: float, seconds: float) -> None:
        """``ended`` is when, by ``time.perf_counter``."""
        tally = self._tallies.get(name)
        if tally is None:
            tally = self._new(name)
        tally.used = ended
        times = tally.times
        times.append(seconds)
        if len(times) >= _BATCH:
            with self._lock:
                _count(tally)

    def failed(self, name: str | None, code: str, ended: float, seconds: float) -> None:
        """``name`` is None if there is no such tool."""
        tally = self._tallies.get(name or UNKNOWN) or self._new(name or UNKNOWN)
        kind = kind_for_code(code)
        tally.used = ended
        with self._lock:
            tally.codes[code if code in tally.codes or len(tally.codes) < _MOST_CODES else "other"] += 1
            if kind is None or kind.answer.after_start:
                _count(tally)
                tally.latest.append(seconds)

    def answered(self, name: str, tokens: int) -> None:
        """A model was given an answer of so many tokens."""
        tally = self._tallies.get(name) or self._new(name)
        with self._lock:
            tally.result_tokens += tokens

    def taken(self, *, reset: bool = False) -> dict[str, Usage]:
        """What was counted since the beginning, or since the last ``reset``: each call is in one of the two."""
        epoch = self._clock() - time.perf_counter()
        with self._lock:
            found = {name: _usage(tally, epoch) for name, tally in self._tallies.items()}
            if reset:
                for tally in self._tallies.values():
                    tally.latest.clear()
                    tally.codes.clear()
                    tally.used = tally.went_well = tally.result_tokens = 0
        return found

    def _new(self, name: str) -> _Tally:
        with self._lock:
            if name not in self._tallies and len(self._tallies) >= _MOST_NAMES:
                del self._tallies[next(iter(self._tallies))]
            return self._tallies.setdefault(name, _Tally())


def _count(tally: _Tally) -> None:
    """Count what was appended; others go on appending meanwhile."""
    fresh = tally.times[:]
    del tally.times[: len(fresh)]
    tally.went_well += len(fresh)
    tally.latest.extend(fresh)


def _usage(tally: _Tally, epoch: float) -> Usage:
    _count(tally)
    errors = tally.codes.total()
    times = sorted(tally.latest)
    return Usage(
        calls=tally.went_well + errors,
        errors=errors,
        errors_by_code=dict(tally.codes.most_common()),
        p50=_percentile(times, 50),
        p95=_percentile(times, 95),
        last_used=datetime.fromtimestamp(epoch + tally.used, UTC) if tally.used else None,
        result_tokens=tally.result_tokens,
    )


def _percentile(times: list[float], percent: int) -> float | None:
    """The nearest rank: a time that was measured, which so many of a hundred did not exceed."""
    return times[-(-len(times) * percent // 100) - 1] if times else None


def token_counter(count: CountTokens | None) -> CountTokens:
    """Counts with ``count``; estimates without one, and whenever it raises."""
    return estimated_tokens if count is None or count is estimated_tokens else partial(_counted, count)


def _counted(count: CountTokens, text: str) -> int:
    try:
        return count(text)
    except Exception:  # a tokenizer is somebody else's code: it must not harm a call
        _log.exception("count_tokens raised")
        return estimated_tokens(text)

"""What a run of an agent may spend: calls, seconds, tokens.

Use it around an agent's loop, so that a task that goes nowhere ends, and the model is told to answer with what it has.
Outside of ``cache`` and ``retry``: a model's call is one call, also if its answer was kept or took three attempts.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from toolcrib.calling.layers import above_zero, has_failed, plain, whole
from toolcrib.calling.layers.agent_run import AgentRun, current_run
from toolcrib.calling.usage import token_counter
from toolcrib.core.content import SIMPLE, Json, Text, parts_of
from toolcrib.core.context import ToolContext
from toolcrib.core.counting import CountTokens, estimated_tokens
from toolcrib.core.errors import BudgetSpentError, ToolcribError
from toolcrib.core.json import as_text, write_json
from toolcrib.core.tool import Runner, Tool


@dataclass(slots=True)
class Spent:
    """What a run has spent so far."""

    calls: int = 0
    tokens: int = 0
    since: float = 0.0
    seconds: float = 0.0


class Budget:
    """A layer that refuses calls of a run whose budget is spent; made by :func:`budget`."""

    def __init__(
        self,
        calls: int | None,
        seconds: float | None,
        tokens: int | None,
        count_tokens: CountTokens,
        clock: Callable[[], float],
    ) -> None:
        self._calls = calls
        self._seconds = seconds
        self._tokens = tokens
        self._count = count_tokens
        self._clock = clock
        self._lock = threading.Lock()
        self._alone = AgentRun()

    def spent(self) -> Spent:
        """What the run that this is called in has spent."""
        with self._lock:
            spent = (current_run() or self._alone).kept_by(self, self._begun)
            seconds = self._clock() - spent.since if spent.calls else 0.0
            return Spent(spent.calls, spent.tokens, spent.since, seconds)

    def __call__(self, run: Runner) -> Runner:
        async def within(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            runs = self._runs()
            left = self._admit(runs)
            if left is not None:
                own = context.seconds_for(tool.spec.timeout_seconds)
                if left < (float("inf") if own is None else own):
                    context = context.within(left)
            if self._tokens is None:
                return await run(tool, arguments, context)
            asked = self._count(_text_of(arguments))
            told: Any = ""
            try:
                value = await run(tool, arguments, context)
                told = value if type(value) in SIMPLE else _told_by(value)
                return value
            except ToolcribError as error:
                told = error.message
                raise
            finally:
                self._charge(runs, asked + self._tokens_of(told))

        return within

    def _begun(self) -> Spent:
        return Spent(since=self._clock())

    def _runs(self) -> tuple[Spent, ...]:
        """What the run of this call has spent, and each run that it is a part of."""
        run: AgentRun | None = current_run() or self._alone
        found: tuple[Spent, ...] = ()
        while run is not None:
            found = (*found, run.kept_by(self, self._begun))
            run = run.outer
        return found

    def _admit(self, runs: tuple[Spent, ...]) -> float | None:
        """The seconds that are left, None if they are not limited; the call is counted, or refused."""
        calls, tokens, seconds = self._calls, self._tokens, self._seconds
        left = None
        with self._lock:
            for spent in runs:
                if not spent.calls:  # somebody may have asked before what was spent
                    spent.since = self._clock()
                if calls is not None and spent.calls >= calls:
                    raise _spent("calls", spent.calls, calls)
                if tokens is not None and spent.tokens >= tokens:
                    raise _spent("tokens", spent.tokens, tokens)
                if seconds is not None:
                    more = spent.since + seconds - self._clock()
                    if more <= 0:
                        raise _spent("seconds", seconds - more, seconds)
                    if left is None or more < left:
                        left = more
            for spent in runs:
                spent.calls += 1
        return left

    def _charge(self, runs: tuple[Spent, ...], tokens: int) -> None:
        with self._lock:
            for spent in runs:
                spent.tokens += tokens

    def _tokens_of(self, value: Any) -> int:
        """Of what a tool returned, as a model reads it."""
        if type(value) in SIMPLE:
            return self._count(_text_of(value))
        parts = parts_of(value)
        texts = [part.text if isinstance(part, Text) else part.value for part in parts if isinstance(part, Text | Json)]
        return sum(self._count(_text_of(text)) for text in texts)


def budget(
    *,
    calls: int | None = None,
    seconds: float | None = None,
    tokens: int | None = None,
    count_tokens: CountTokens = estimated_tokens,
    clock: Callable[[], float] = time.monotonic,
) -> Budget:
    """A layer that lets a run of an agent (:func:`agent_run`) make so many ``calls``, within so many ``seconds``.

    ``seconds`` count from the run's first call, and no call gets more time than is left of them. ``tokens`` are those
    of arguments, results and errors as a model reads them, estimated or counted by ``count_tokens``; images, audio and
    files are not among them. Past a limit every call is a BudgetSpentError that says which. A call that is refused
    further inside is counted too.
    """
    if calls is seconds is tokens is None:
        raise ValueError("a budget needs calls, seconds or tokens")
    above_zero(seconds=1 if seconds is None else seconds)
    whole(1, calls=1 if calls is None else calls, tokens=1 if tokens is None else tokens)
    return Budget(calls, seconds, tokens, token_counter(count_tokens), clock)


def _spent(limit: str, spent: float, of: float) -> BudgetSpentError:
    return BudgetSpentError(
        f"the budget of this run is spent: {spent:.4g} of {of:g} {limit}, so the tool was not called; "
        "answer with what you have",
        limit=limit, spent=spent, of=of,
    )  # fmt: skip


def _told_by(value: Any) -> Any:
    return value.error if has_failed(value) else plain(value)


def _text_of(value: Any) -> str:
    if type(value) is str:
        return value
    try:
        return write_json(value).decode()
    except (TypeError, ValueError, RecursionError):
        return as_text(value)

"""Try again what can help to be tried again and does no harm to be done twice.

Use it for tools that ask others: services that are busy for a moment, networks that drop a packet. Inside of a
cache, a budget and a breaker of repeats; outside of limits and breakers of circuits, which then count each attempt.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Collection
from typing import Any

from toolcrib.calling.layers import (
    CountsItems,
    Layer,
    above_zero,
    after_waiting,
    has_failed,
    names_in,
    seconds_left,
    whole,
    with_facts,
)
from toolcrib.core.backoff import backoff, seconds_asked
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import (
    RETRY_AFTER,
    OverloadedError,
    RateLimitedError,
    ToolBusyError,
    ToolcribError,
    can_retry,
)
from toolcrib.core.json import copied
from toolcrib.core.result import ToolResult
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool

_NEVER_STARTED = frozenset(kind.code for kind in (ToolBusyError, RateLimitedError, OverloadedError))
_NO_MORE = float("inf")
_Failure = ToolcribError | ToolResult


def retry(  # noqa: PLR0913 - the last three are for tests
    attempts: int = 3,
    *,
    first_delay: float = 0.5,
    longest_delay: float = 30.0,
    on: type[BaseException] | tuple[type[BaseException], ...] = (),
    tools: Collection[str] = (),
    always: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    draw: Callable[[float, float], float] = random.uniform,  # noqa: S311 - nothing secret
) -> Layer:
    """A layer that makes up to ``attempts`` of a call.

    What is tried again says that it can help: an error that is ``retryable``, a failed result with ``retryable`` in
    its metadata, or an exception of the tool's that is one of ``on``. And it must do no harm: the tool is ``safe`` or
    ``cacheable``, one of ``tools``, or anything with ``always``; what was refused before the tool began (busy, over a
    rate) does none. A call whose items somebody has heard already is not made again.

    The wait doubles from ``first_delay`` on, with jitter; it is as long as ``Retry-After`` says if the error knows
    that, or the answer of a service that the tool's exception has, such as httpx's. What asks for more than
    ``longest_delay``, or for more than is left of the time that the caller gave, is not waited for. Without a caller's
    deadline every attempt has the tool's own.
    """
    whole(1, attempts=attempts)
    above_zero(first_delay=first_delay, longest_delay=longest_delay)
    named, kinds = names_in(tools), _kinds(on)

    def wait_after(failure: _Failure, attempt: int, spec: ToolSpec) -> float:
        """How long, or for ever."""
        code, helps, asked = _said_by(failure, kinds)
        harmless = always or spec.safety_level is SafetyLevel.SAFE or spec.cacheable or spec.name in named
        if not helps or not (harmless or code in _NEVER_STARTED):
            return _NO_MORE
        own = backoff(attempt, first_delay, longest_delay, draw)
        return max(asked, own) if asked <= longest_delay else _NO_MORE

    def layer(run: Runner) -> Runner:
        async def tried(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            started, attempt, given = clock(), 1, context
            heard = None if context.listener is None else CountsItems(context.listener)
            if heard is not None:
                context = context.heard_by(heard)
            while True:
                failure: _Failure
                try:
                    value = await run(tool, arguments if attempt == attempts else copied(arguments), context)
                    if not has_failed(value):
                        return value if attempt == 1 else with_facts(value, {"attempts": attempt})
                    failure = value
                except ToolcribError as error:
                    failure = error
                if attempt == attempts or (heard is not None and heard.items):
                    return _given_up(failure, attempt)
                wait = wait_after(failure, attempt - 1, tool.spec)
                if seconds_left(given, clock() - started) <= wait:
                    return _given_up(failure, attempt)
                await sleep(wait)
                if seconds_left(given, waited := clock() - started) <= 0:
                    return _given_up(failure, attempt)
                context = after_waiting(given, waited).heard_by(heard)
                attempt += 1

        return tried

    return layer


def _kinds(on: Any) -> tuple[type[BaseException], ...]:
    kinds = (on,) if isinstance(on, type) else tuple(on)
    if not all(isinstance(kind, type) and issubclass(kind, BaseException) for kind in kinds):
        raise TypeError(f"on is an exception's class or several of them, not {on!r:.60}")
    return kinds


def _said_by(failure: _Failure, on: tuple[type[BaseException], ...]) -> tuple[str | None, bool, float]:
    """Its code, whether trying again can help, and how long it asks to wait."""
    if isinstance(failure, ToolResult):
        code, facts = failure.error_code, failure.metadata
        helps = bool(facts.get("retryable"))
    else:
        code, facts = failure.code, dict(failure.facts)
        helps = can_retry(failure) or isinstance(failure.__cause__, on)
        facts.setdefault(RETRY_AFTER, _asked_by(failure.__cause__))
    asked = facts.get(RETRY_AFTER)
    return code, helps, asked if isinstance(asked, int | float) and asked > 0 else 0.0


def _asked_by(error: BaseException | None) -> float | None:
    """The wait that a service asks for whose answer is why the tool raised ``error``."""
    try:
        answer = getattr(error, "response", None)
        header = (error if answer is None else answer).headers.get("retry-after")  # type: ignore[union-attr]
        return seconds_asked(header, time.time())
    except Exception:  # it is somebody else's object, and most have nothing of the kind
        return None


def _given_up(failure: _Failure, attempts: int) -> Any:
    if isinstance(failure, ToolResult):
        return failure if attempts == 1 else with_facts(failure, {"attempts": attempts})
    if attempts > 1:
        failure.facts = {**failure.facts, "attempts": attempts}
    raise failure

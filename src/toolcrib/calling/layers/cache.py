"""Keep the answers of tools whose equal calls have equal answers, for a while.

Use it for look-ups that cost time or money. Only tools that are marked ``cacheable`` are concerned.
"""

from __future__ import annotations

import asyncio
import pickle
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass
from typing import Any

from toolcrib.calling.layers import (
    CountsItems,
    above_zero,
    after_waiting,
    fingerprint,
    has_failed,
    plain,
    seconds_left,
    whole,
    with_facts,
)
from toolcrib.calling.remembered import Remembered
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolcribError, ToolTimeoutError
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import Ran
from toolcrib.core.spec import Binding
from toolcrib.core.tool import Runner, Tool

Key = tuple[Hashable, ...]


def cache(
    seconds: float = 300.0,
    *,
    entries: int = 1000,
    bytes: int = 64 << 20,
    shared: bool = False,
    clock: Callable[[], float] = time.monotonic,
) -> Cache:
    """A layer that keeps answers for ``seconds``, at most so many ``entries`` and ``bytes`` together.

    An answer is given for the same tool, equal arguments, and the same caller: principal, session, roles, limits
    and values. With ``shared`` it is given to every caller, unless the tool takes a context or runs elsewhere.
    Callers whose values are no JSON, and answers that cannot be copied, are left out. Failures are not kept, and
    what a caller does to an answer reaches nobody else. Equal calls at the same time run once. The metadata of an
    answer that was not made for its caller says ``cached``.
    """
    above_zero(seconds=seconds)
    whole(1, entries=entries, bytes=bytes)
    return Cache(seconds, Remembered(entries, weight=bytes, clock=clock), shared, clock)


@dataclass(frozen=True, slots=True)
class _Answer:
    """A runner's value as everybody gets a copy of it. ``items``: a stream tells them; None if nobody listened."""

    pickled: bytes
    items: bool | None
    failed: bool = False

    def fits(self, context: ToolContext) -> bool:
        return context.listener is None or self.items is not None

    def given(self, context: ToolContext) -> Any:
        value = pickle.loads(self.pickled)
        if self.items and context.listener is not None:
            for item in plain(pickle.loads(self.pickled)):
                context.listener(ToolEvent("item", item=item))
        return value if self.failed else with_facts(value, {"cached": True})


class _Again:
    """The call that others waited for was cancelled: they go on as if it had not been."""


class _Alone:
    """It came to something that cannot be shared: each goes its own way."""


_Outcome = _Answer | ToolcribError | type[_Again] | type[_Alone]


class Cache:
    """A layer, made by :func:`cache`."""

    def __init__(
        self, seconds: float, kept: Remembered[Key, _Answer], shared: bool, clock: Callable[[], float]
    ) -> None:
        self._seconds = seconds
        self._kept = kept
        self._shared = shared
        self._clock = clock
        self._flights: dict[Key, Future[_Outcome]] = {}
        self._lock = threading.Lock()

    @property
    def under_way(self) -> int:
        """How many calls are made just now whose answers may be kept."""
        return len(self._flights)

    def clear(self) -> None:
        """Forget every answer."""
        self._kept.clear()

    def __call__(self, run: Runner) -> Runner:
        async def remembered(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            if not tool.spec.cacheable or (key := self._key(tool, arguments, context)) is None:
                return await run(tool, arguments, context)
            started, given = self._clock(), context
            while True:
                answer, flight, leads = self._look(key, context)
                if answer is not None:
                    return answer.given(context)
                if leads:
                    return await self._fly(key, flight, run, tool, arguments, context)
                if flight in _MAKING.get():  # a tool that asks itself would wait for itself
                    return await run(tool, arguments, context)
                outcome = await _landed(flight, tool, context)
                if isinstance(outcome, ToolcribError):
                    raise copy(outcome) from outcome.__cause__
                if isinstance(outcome, _Answer) and outcome.fits(context):
                    return outcome.given(context)
                if seconds_left(given, waited := self._clock() - started) <= 0:
                    raise ToolTimeoutError(tool.spec.name, given.timeout_seconds or 0.0)
                context = after_waiting(given, waited)
                if outcome is _Alone:
                    return await run(tool, arguments, context)

        return remembered

    def _look(self, key: Key, context: ToolContext) -> tuple[_Answer | None, Future[_Outcome], bool]:
        """The answer; or the call under way that will bring it, and whether that is for this caller to make."""
        answer = self._kept.get(key)
        if answer is not None and answer.fits(context):
            return answer, _LANDED, False
        with self._lock:
            flight = self._flights.get(key)
            if flight is not None:
                return None, flight, False
            answer = self._kept.get(key)
            if answer is not None and answer.fits(context):
                return answer, _LANDED, False
            flight = self._flights[key] = Future()
            flight.set_running_or_notify_cancel()  # nobody who waits for it can cancel it
            return None, flight, True

    async def _fly(
        self,
        key: Key,
        flight: Future[_Outcome],
        run: Runner,
        tool: Tool,
        arguments: dict[str, Any],
        context: ToolContext,
    ) -> Any:
        """Make the call, for everybody who waits for it."""
        outcome: _Outcome = _Again
        heard = None if context.listener is None else CountsItems(context.listener)
        token = _MAKING.set((*_MAKING.get(), flight))
        try:
            value = await run(tool, arguments, context if heard is None else context.heard_by(heard))
            tool.check_output(value.value if type(value) is Ran else value)
            outcome = _answer(value, heard)
            if isinstance(outcome, _Answer) and not outcome.failed:
                self._kept.put(key, outcome, seconds=self._seconds, weight=len(outcome.pickled))
            return value
        except ToolTimeoutError as error:
            was_the_tools = getattr(error, "seconds", None) == tool.spec.timeout_seconds
            outcome = error if was_the_tools else _Alone  # perhaps this caller alone was in a hurry
            raise
        except ToolcribError as error:
            outcome = error
            raise
        except Exception:
            outcome = _Alone
            raise
        finally:
            _MAKING.reset(token)
            with self._lock:
                del self._flights[key]
            flight.set_result(outcome)

    def _key(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Key | None:
        """What an answer depends on: the code and its description, the arguments, who asks. None if that is unknown."""
        given = fingerprint(arguments)
        if given is None:
            return None
        asked = (tool, tool.spec.digest, given)
        if self._shared and tool.context_parameter is None and tool.spec.binding == _HERE:
            return asked
        values = fingerprint(dict(context.values)) if context.values else b""
        return (
            None
            if values is None
            else (*asked, context.principal, context.roles, context.limits, context.session, values)
        )


_HERE = Binding()
_LANDED: Future[Any] = Future()
_MAKING: ContextVar[tuple[Future[Any], ...]] = ContextVar("toolcrib_cached_calls", default=())
"""The calls that this one is made by."""


async def _landed(flight: Future[_Outcome], tool: Tool, context: ToolContext) -> _Outcome:
    """What the call of another caller comes to, within the time that this one gave."""
    try:
        async with asyncio.timeout(context.timeout_seconds):
            return await asyncio.wrap_future(flight)
    except TimeoutError:
        raise ToolTimeoutError(tool.spec.name, context.timeout_seconds or 0.0) from None


def _answer(value: Any, heard: CountsItems | None) -> _Answer | type[_Alone]:
    try:
        pickled = pickle.dumps(value)
        pickle.loads(pickled)
    except Exception:  # whatever a stranger's object does not like about being copied
        return _Alone
    made = plain(value)
    items = None if heard is None else heard.items > 0 and isinstance(made, list) and len(made) == heard.items
    return _Answer(pickled, items, has_failed(value))

"""Run on the caller's own event loop."""

from __future__ import annotations

import asyncio
import time
import types
from collections.abc import Coroutine, Generator
from functools import partial
from typing import Any

from toolcrib.calling.failures import as_failure, is_cancellation
from toolcrib.calling.items import COMPLETE, awaited, collected, collected_async, is_incomplete, is_lazy
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolFailedError, ToolTimeoutError
from toolcrib.core.tool import Tool


async def run_inline(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """A plain function, called here and now. If what it returns is still to come, it is waited for."""
    keywords = tool.keywords(arguments, context)
    seconds, name = context.timeout_seconds, tool.spec.name
    started = time.monotonic()
    try:
        value = tool.function(**keywords)
        if is_lazy(value):
            value = collected(value, context.listener)
        elif is_incomplete(value):
            value = awaited(value, context.listener)
            return await (value if seconds is None else _within(seconds, started, value, name))
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        failure = _failure(name, error, seconds, started)
        if failure is error:
            raise
        raise failure from error
    if seconds is not None:
        _refuse_late(name, seconds, started)
    return value


async def run_async_inline(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
    """An async function, cancelled at its deadline.

    A timer costs more than a small tool does, and many tools never wait: so the first step is taken without one, and
    the timer is set only when the tool suspends, to the deadline counted from the start.
    """
    keywords = tool.keywords(arguments, context)
    seconds = tool.spec.timeout_seconds
    if context.timeout_seconds is not None:
        seconds = context.seconds_for(seconds)
    started = time.monotonic()
    try:
        awaitable = tool.function(**keywords)
        kind = type(awaitable)
        if kind is types.AsyncGeneratorType:
            awaitable = collected_async(awaitable, context.listener)
        if seconds is None:
            value = await awaitable
            return await awaited(value, context.listener) if is_incomplete(value) else value
        if kind is types.CoroutineType:
            try:
                waiting_on = awaitable.send(None)
            except StopIteration as done:
                if time.monotonic() - started > seconds:
                    _refuse_late(tool.spec.name, seconds, started)
                value = done.value
                if type(value) in COMPLETE or not is_incomplete(value):
                    return value
                awaitable = awaited(value, context.listener)
            else:
                awaitable = _resumed(awaitable, waiting_on)
        value = await _within(seconds, started, awaitable, tool.spec.name)
        if is_incomplete(value):
            return await _within(seconds, started, awaited(value, context.listener), tool.spec.name)
        return value
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        failure = _failure(tool.spec.name, error, seconds, started)
        if failure is error:
            raise
        raise failure from error


def _failure(name: str, error: BaseException, seconds: float | None, started: float) -> BaseException:
    """What a caller is told of what a function raised."""
    if isinstance(error, ToolTimeoutError):
        return error
    if is_cancellation(error):
        return error
    if isinstance(error, asyncio.CancelledError):
        return ToolFailedError(name, "it cancelled itself", cause_type="CancelledError")
    if seconds is not None:
        _refuse_late(name, seconds, started)
    return as_failure(name, error)


async def _within(seconds: float, started: float, awaitable: Any, name: str) -> Any:
    scope = asyncio.timeout(max(0.0, started + seconds - time.monotonic()))
    try:
        async with scope:
            value = await awaitable
    except TimeoutError:
        if not scope.expired():
            raise
        raise ToolTimeoutError(name, seconds) from None
    _refuse_late(name, seconds, started)
    return value


def _refuse_late(name: str, seconds: float, started: float) -> None:
    """A tool that never let the loop run, or caught its cancellation, ended by itself; it is late all the same."""
    elapsed = time.monotonic() - started
    if elapsed > seconds:
        raise ToolTimeoutError(name, seconds, ended_after=elapsed)


@types.coroutine
def _resumed(coroutine: Coroutine[Any, Any, Any], waiting_on: Any) -> Generator[Any, Any, Any]:
    """Drive a coroutine that has been started and waits on ``waiting_on`` to its end."""
    while True:
        try:
            value = yield waiting_on
        except GeneratorExit:
            coroutine.close()
            raise
        except BaseException as error:  # whatever the loop throws in belongs to the coroutine
            step = partial(coroutine.throw, error)
        else:
            step = partial(coroutine.send, value)
        try:
            waiting_on = step()
        except StopIteration as done:
            return done.value

"""Hooks around a call, for those who want no runner of their own: before it, after it, and when it failed.

Use it to look at calls or to change them: fill in an argument, cut a result, tell somebody of a failure. Each hook may
be sync or async, and returning nothing leaves everything as it is.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolcrib.calling.failures import is_cancellation
from toolcrib.calling.layers import Layer, has_failed, with_facts
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, InvalidOutputError, LayerFailedError, ToolcribError
from toolcrib.core.json import copied
from toolcrib.core.result import Ran
from toolcrib.core.tool import Runner, Tool

Before = Callable[[Tool, dict[str, Any], ToolContext], "Mapping[str, Any] | Awaitable[Mapping[str, Any] | None] | None"]
After = Callable[[Tool, dict[str, Any], Any], Any]
OnError = Callable[[Tool, dict[str, Any], ToolcribError], Any]


def around(*, before: Before | None = None, after: After | None = None, error: OnError | None = None) -> Layer:
    """A layer of hooks; what they raise becomes the result of the call.

    ``before(tool, arguments, context)`` gets a copy of the arguments and may return others, which are validated again.
    ``after(tool, arguments, result)`` gets what the tool returned and may return something else instead.
    ``error(tool, arguments, error)`` gets what the tool or an inner layer raised, or the error of a failed result, and
    may return a value instead. What they return that is None changes nothing.
    """

    def layer(run: Runner) -> Runner:
        async def hooked(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            if before is not None:
                arguments = await _changed(before, tool, arguments, context)
            try:
                value = await run(tool, arguments, context)
            except ToolcribError as failure:
                if error is None or (instead := await _instead("error", error, tool, arguments, failure)) is None:
                    raise
                return instead
            if has_failed(value):
                instead = None
                if error is not None:
                    instead = await _instead("error", error, tool, arguments, value.to_error())
                return value if instead is None else instead
            if after is None:
                return value
            ran = type(value) is Ran
            instead = await _instead("after", after, tool, arguments, value.value if ran else value)
            if instead is None:
                return value
            return with_facts(instead, value.facts) if ran else instead

        return hooked

    return layer


async def _changed(before: Before, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> dict[str, Any]:
    changed = await _asked("before", before, tool, copied(arguments), context)
    if changed is None:
        return arguments
    try:
        return tool.validate(changed)
    except InvalidArgumentsError as error:  # the caller's own arguments were right
        raise LayerFailedError(_named("before", before), tool.name, str(error)) from error


async def _instead(kind: str, hook: Callable[..., Any], tool: Tool, *given: Any) -> Any:
    """The value that a hook wants instead, if any; it must be what the tool's output schema allows."""
    value = await _asked(kind, hook, tool, *given)
    if value is not None:
        try:
            tool.check_output(value)
        except InvalidOutputError as error:
            raise LayerFailedError(_named(kind, hook), tool.name, str(error)) from error
    return value


async def _asked(kind: str, hook: Callable[..., Any], tool: Tool, *given: Any) -> Any:
    """What a hook returns; whatever it raises is its own fault, unless it is an error of ours, raised on purpose."""
    try:
        answer = hook(tool, *given)
        return await answer if inspect.isawaitable(answer) else answer
    except ToolcribError:
        raise
    except asyncio.CancelledError as error:
        if is_cancellation(error):
            raise
        raise LayerFailedError(_named(kind, hook), tool.name, "it cancelled itself") from error
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise LayerFailedError(_named(kind, hook), tool.name, reason) from error


def _named(kind: str, hook: Callable[..., Any]) -> str:
    return f"the {kind!r} hook {getattr(hook, '__name__', type(hook).__name__)!r}"

"""Behaviour around calls without touching tools: one layer a file.

A layer is a function from runner to runner. It sees calls that are allowed and valid, and whatever it raises or returns
takes the way of what the tool itself raises or returns: a runner's value, a ``Ran``, a ToolResult, or a ToolcribError.
Layers are put together when one is added, so what a layer keeps belongs outside of the function that it makes.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from toolcrib.calling.failures import is_cancellation
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import LayerFailedError, ToolcribError
from toolcrib.core.json import check_json
from toolcrib.core.progress import Listener, ToolEvent
from toolcrib.core.result import Ran, ToolResult
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool

Layer = Callable[[Runner], Runner]
Per = Literal["tool", "principal"] | Callable[[Tool, ToolContext], str]
"""What a layer counts by: calls of the same tool, of the same principal, or whatever a function makes of the two."""
_log = logging.getLogger("toolcrib")
_sorted = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode


def stacked(layers: Sequence[Layer]) -> Runner:
    """All of them around the tool's own runner; the first is outermost. A layer that breaks is told as one."""
    run: Runner = _own
    for layer in reversed(layers):
        run = layer(run)

    async def guarded(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        try:
            return await run(tool, arguments, context)
        except ToolcribError:
            raise
        except (Exception, asyncio.CancelledError) as error:
            if _came_from(tool.runner, error) or is_cancellation(error):
                raise
            _log.exception("a layer around the tool %r broke", tool.spec.name)
            raise LayerFailedError("a layer", tool.spec.name, f"{type(error).__name__}; see the log") from error

    return guarded


def only(layer: Layer, concerns: Callable[[ToolSpec], bool]) -> Layer:
    """The layer for the tools that it ``concerns``; calls of others do not pass through it."""

    def chosen(run: Runner) -> Runner:
        around = layer(run)

        def either(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Awaitable[Any]:
            return (around if concerns(tool.spec) else run)(tool, arguments, context)

        return either

    return chosen


def concerning(
    tools: Iterable[str] = (), tags: Iterable[str] = (), safety_level: SafetyLevel | str | None = None
) -> Callable[[ToolSpec], bool] | None:
    """Whether a tool is one of ``tools``, has one of ``tags``, and is of ``safety_level`` or above; None for all."""
    names, wanted = names_in(tools), names_in(tags)
    least = None if safety_level is None else SafetyLevel(safety_level).rank
    if not names and not wanted and least is None:
        return None

    def concerns(spec: ToolSpec) -> bool:
        named = not (names or wanted) or spec.name in names or not wanted.isdisjoint(spec.tags)
        return named and (least is None or spec.safety_level.rank >= least)

    return concerns


def _own(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Awaitable[Any]:
    return tool.runner(tool, arguments, context)


def _came_from(runner: Any, error: BaseException) -> bool:
    """Whether what runs the tool raised it, and not a layer."""
    while isinstance(runner, partial):
        runner = runner.func
    code = getattr(runner, "__code__", None) or getattr(type(runner).__call__, "__code__", None)
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    return trace is not None


# What several layers need


def names_in(given: Iterable[str]) -> frozenset[str]:
    """The names of a list; a text is one name, not the list of its letters."""
    return frozenset([given] if isinstance(given, str) else given)


def counted_by(per: Per) -> Callable[[Tool, ToolContext], str]:
    if per == "tool":
        return lambda tool, _: tool.spec.name
    if per == "principal":
        return lambda _, context: context.principal
    if callable(per):
        return per
    raise TypeError(f"per is 'tool', 'principal' or a function of a tool and its context, not {per!r:.60}")


def above_zero(**numbers: float) -> None:
    """ValueError names the one that is not a number above 0."""
    for name, number in numbers.items():
        if type(number) not in (int, float) or not number > 0:
            raise ValueError(f"{name} must be a number above 0, not {number!r:.60}")


def has_failed(value: Any) -> bool:
    """Whether a runner's value is the result of a call that went wrong."""
    return isinstance(value, ToolResult) and not value.success


def with_facts(value: Any, facts: Mapping[str, Any]) -> Any:
    """A runner's value, with facts that go into the metadata of the call's result."""
    if isinstance(value, ToolResult):
        return replace(value, metadata={**value.metadata, **facts})
    return Ran(value.value, {**value.facts, **facts}) if type(value) is Ran else Ran(value, facts)


def plain(value: Any) -> Any:
    """A runner's value without what is around it."""
    if isinstance(value, ToolResult):
        return value.data
    return value.value if type(value) is Ran else value


class CountsItems:
    """Passes on what a call tells, and counts the items."""

    __slots__ = ("_listener", "items")

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self.items = 0

    def __call__(self, event: ToolEvent) -> None:
        if event.kind == "item":
            self.items += 1
        self._listener(event)


def whole(least: int, **numbers: int) -> None:
    """ValueError names the one that is not a whole number from ``least`` on."""
    for name, number in numbers.items():
        if type(number) is not int or number < least:
            raise ValueError(f"{name} must be a whole number from {least} on, not {number!r:.60}")


def seconds_left(context: ToolContext, waited: float) -> float:
    """Of the time that the caller gave, after a layer has ``waited``."""
    return float("inf") if context.timeout_seconds is None else context.timeout_seconds - waited


def after_waiting(context: ToolContext, waited: float) -> ToolContext:
    """The same call with what is left of the time that the caller gave; some must be left."""
    return context if context.timeout_seconds is None else context.within(context.timeout_seconds - waited)


def fingerprint(value: Any) -> bytes | None:
    """The same for equal JSON values, whatever the order of their keys, however large; None for what is not JSON."""
    try:
        return hashlib.sha256(_sorted(check_json(value)).encode()).digest()
    except (TypeError, ValueError, RecursionError):
        return None

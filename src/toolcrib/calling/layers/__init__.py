"""Behaviour around calls without touching tools: one layer a file.

A layer is a function from runner to runner. It sees calls that are allowed and valid, and whatever it raises or returns
takes the way of what the tool itself raises or returns. Layers are put together once, when they are given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any

from toolcrib.core.context import ToolContext
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool

Layer = Callable[[Runner], Runner]


def stacked(layers: Sequence[Layer]) -> Runner:
    """All of them around the tool's own runner; the first is outermost."""
    run: Runner = _own
    for layer in reversed(layers):
        run = layer(run)
    return run


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
    names, wanted = frozenset(tools), frozenset(tags)
    least = None if safety_level is None else SafetyLevel(safety_level).rank
    if not names and not wanted and least is None:
        return None

    def concerns(spec: ToolSpec) -> bool:
        named = not (names or wanted) or spec.name in names or not wanted.isdisjoint(spec.tags)
        return named and (least is None or spec.safety_level.rank >= least)

    return concerns


def _own(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Awaitable[Any]:
    return tool.runner(tool, arguments, context)

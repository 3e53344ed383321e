"""The core's events, as AgentForge's handlers take them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.events import RegistryCleared, ToolUpdated
from toolcrib.core.events import RegistryEvent as CoreEvent
from toolcrib.core.tool import Tool

EventHandler = Callable[..., object]


class RegistryEvent(StrEnum):
    TOOL_REGISTERED = "tool:registered"
    TOOL_UPDATED = "tool:updated"
    TOOL_REMOVED = "tool:removed"
    REGISTRY_CLEARED = "registry:cleared"


@dataclass(frozen=True)
class Updated:
    """What a handler of ``tool:updated`` with one parameter gets; ``update["tool"]`` reads as ``update.tool`` does."""

    name: str
    tool: Tool

    def __getitem__(self, key: str) -> Any:
        if key not in {"name", "tool"}:
            raise KeyError(key)
        return getattr(self, key)


@dataclass(frozen=True)
class _Adapted:
    """Two of them are equal if their handlers are, so that ``off`` finds what ``on`` put there."""

    handler: EventHandler

    def __call__(self, event: CoreEvent) -> None:
        self.handler(*_payload(event, self.handler))


def adapted(handler: EventHandler) -> _Adapted:
    if not callable(handler):
        raise ToolValidationError(f"a handler is a function, not {handler!r:.60}")
    if inspect.iscoroutinefunction(handler):
        raise ToolValidationError(f"handler {handler!r:.60} is async; events call plain functions")
    return _Adapted(handler)


def _payload(event: CoreEvent, handler: EventHandler) -> tuple[Any, ...]:
    if isinstance(event, RegistryCleared):
        return (None,) * _count(handler, 0)
    natural = 2 if isinstance(event, ToolUpdated) else 1
    match _count(handler, natural):
        case 0:
            return ()
        case 1:
            return (Updated(event.name, event.tool) if isinstance(event, ToolUpdated) else event.tool,)
        case _:
            return (event.tool.name, event.tool)


def _count(handler: EventHandler, natural: int) -> int:
    """How many arguments to call with: ``natural`` if the handler takes so many, or the nearest that it takes."""
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (ValueError, TypeError):  # some built-in functions do not tell
        return natural
    positional = [each for each in parameters if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]
    least = sum(each.default is each.empty for each in positional)
    most = 2 if any(each.kind is each.VAR_POSITIONAL for each in parameters) else len(positional)
    return max(least, min(natural, most))

"""The core's events, as AgentForge's handlers take them: with one payload, sync or async."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from toolcrib.calling.sync import run_sync
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.events import RegistryCleared, ToolUpdated
from toolcrib.core.events import RegistryEvent as CoreEvent
from toolcrib.core.tool import Tool

EventHandler = Callable[..., object]

_log = logging.getLogger("toolcrib")
_under_way: set[asyncio.Task[None]] = set()
"""A loop alone does not hold its tasks."""


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
        answer = self.handler(*_payload(event, self.handler))
        if inspect.isawaitable(answer):
            _schedule(_finished(answer, event))


def adapted(handler: EventHandler) -> _Adapted:
    if not callable(handler):
        raise ToolValidationError(f"a handler is a function, not {handler!r:.60}")
    return _Adapted(handler)


def _schedule(work: Coroutine[Any, Any, None]) -> None:
    """On the loop that runs here; to its end at once if none does."""
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        run_sync(work)
        return
    task = loop.create_task(work)
    _under_way.add(task)
    task.add_done_callback(_under_way.discard)


async def _finished(answer: Awaitable[object], event: CoreEvent) -> None:
    try:
        await answer
    except Exception:  # noqa: BLE001 - a handler is somebody else's code: it must not harm the registry
        _log.exception("a handler of %r raised", event.event)


def _payload(event: CoreEvent, handler: EventHandler) -> tuple[Any, ...]:
    natural = 0 if isinstance(event, RegistryCleared) else 2 if isinstance(event, ToolUpdated) else 1
    count = _count(handler, natural)
    if isinstance(event, RegistryCleared):
        return (None,) * count
    match count:
        case 0:
            return ()
        case 1:
            return (Updated(event.name, event.tool) if isinstance(event, ToolUpdated) else event.tool,)
        case _:
            return (event.tool.name, event.tool)


def _count(handler: EventHandler, natural: int) -> int:
    """How many arguments to call with: as many as the handler must have.

    One that must have none gets one if it can, and ``natural`` of them if it takes whatever comes. Beyond that a
    parameter with a default is the handler's own: ``lambda payload, name=name: ...`` keeps what it was made with.
    """
    try:
        parameters = inspect.signature(handler).parameters.values()
    except (ValueError, TypeError):  # some built-in functions do not tell
        return natural
    positional = [each for each in parameters if each.kind in {each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD}]
    if needed := sum(each.default is each.empty for each in positional):
        return needed
    if positional:
        return min(1, natural)
    return natural if any(each.kind is each.VAR_POSITIONAL for each in parameters) else 0

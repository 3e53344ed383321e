"""A call as a stream of what it tells: progress, items, and at last its result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any

from toolcrib.core.context import ToolContext
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult

MOST_WAITING = 10_000
"""Events that nobody has taken yet. Beyond them progress is dropped, which the next makes old anyway; items are not."""
ITEMS_LEFT_OUT = "items_left_out"
"""The fact, in the metadata of a stream's result, that so many items were not told. They are in the result."""


async def stream(
    execute: Callable[[ToolContext], Coroutine[Any, Any, ToolResult]],
    context: ToolContext,
    *,
    every_item: bool = True,
) -> AsyncGenerator[ToolEvent, None]:
    """What the call tells, as it comes. Whoever stops listening cancels it.

    Without ``every_item`` items too are left out if too many wait: for a listener who may be slow for ever.
    """
    events: asyncio.Queue[ToolEvent | None] = asyncio.Queue()
    loop, thread = asyncio.get_running_loop(), threading.get_ident()

    left_out = 0

    def hear(event: ToolEvent) -> None:
        nonlocal left_out
        if events.qsize() >= MOST_WAITING and (event.kind == "progress" or not every_item):
            left_out += event.kind == "item"
            return
        if threading.get_ident() == thread:
            events.put_nowait(event)
        else:
            with suppress(RuntimeError):  # the loop is closed: a thread of the tool's goes on and tells nobody
                loop.call_soon_threadsafe(events.put_nowait, event)

    call = asyncio.create_task(execute(context.heard_by(hear)))
    call.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        result = await call
        if left_out:
            result.metadata[ITEMS_LEFT_OUT] = left_out
        yield ToolEvent("result", result=result)
    finally:
        if not call.done():
            call.cancel()
            await asyncio.wait([call])

"""A call as a stream of what it tells: progress, items, and at last its result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any

from toolcrib.core.context import ToolContext
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult

MOST_WAITING = 10_000
"""Events that nobody has taken yet. Beyond them progress is dropped, which the next makes old anyway; items are not."""


async def stream(
    execute: Callable[[ToolContext], Coroutine[Any, Any, ToolResult]], context: ToolContext
) -> AsyncGenerator[ToolEvent, None]:
    """What the call tells, as it comes. Whoever stops listening cancels it."""
    events: asyncio.Queue[ToolEvent | None] = asyncio.Queue()
    loop, thread = asyncio.get_running_loop(), threading.get_ident()

    def hear(event: ToolEvent) -> None:
        if event.kind == "progress" and events.qsize() >= MOST_WAITING:
            return
        if threading.get_ident() == thread:
            events.put_nowait(event)
        else:
            loop.call_soon_threadsafe(events.put_nowait, event)

    call = asyncio.create_task(execute(context.heard_by(hear)))
    call.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield ToolEvent("result", result=await call)
    finally:
        if not call.done():
            call.cancel()
            await asyncio.wait([call])

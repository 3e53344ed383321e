"""Work as a stream of what it tells: a call's progress and items, and at last its result."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from toolcrib.core.context import ToolContext
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult

MOST_WAITING = 10_000
"""Events that nobody has taken yet. Beyond them progress is dropped, which the next makes old anyway; items are not."""
ITEMS_LEFT_OUT = "items_left_out"
"""The fact, in the metadata of a stream's result, that so many items were not told. They are in the result."""

E = TypeVar("E")
R = TypeVar("R")


def stream(
    execute: Callable[[ToolContext], Coroutine[Any, Any, ToolResult]],
    context: ToolContext,
    *,
    every_item: bool = True,
) -> AsyncGenerator[ToolEvent, None]:
    """What the call tells, as it comes. Whoever stops listening cancels it.

    Without ``every_item`` items too are left out if too many wait: for a listener who may be slow for ever.
    """
    left_out = 0

    def leaves_out(event: ToolEvent) -> bool:
        nonlocal left_out
        if event.kind == "item" and not every_item:
            left_out += 1
            return True
        return event.kind == "progress"

    def last(result: ToolResult) -> ToolEvent:
        if left_out:
            result.metadata[ITEMS_LEFT_OUT] = left_out
        return ToolEvent("result", result=result)

    return events_of(lambda hear: execute(context.heard_by(hear)), leaves_out, last)


async def events_of(
    work: Callable[[Callable[[E], None]], Coroutine[Any, Any, R]],
    leaves_out: Callable[[E], bool],
    last: Callable[[R], E],
) -> AsyncGenerator[E, None]:
    """What ``work`` tells, from whatever thread, and then what ``last`` makes of what it comes to.

    Whoever stops listening cancels it. If too many events wait, ``leaves_out`` is asked of each that comes.
    """
    events: asyncio.Queue[E | None] = asyncio.Queue()
    loop, thread = asyncio.get_running_loop(), threading.get_ident()

    def hear(event: E) -> None:
        if events.qsize() >= MOST_WAITING and leaves_out(event):
            return
        if threading.get_ident() == thread:
            events.put_nowait(event)
        else:
            with suppress(RuntimeError):  # the loop is closed: a thread of the tool's goes on and tells nobody
                loop.call_soon_threadsafe(events.put_nowait, event)

    working = asyncio.create_task(work(hear))
    working.add_done_callback(lambda _: events.put_nowait(None))
    try:
        while (event := await events.get()) is not None:
            yield event
        yield last(await working)
    finally:
        if not working.done():
            working.cancel()
            await asyncio.wait([working])

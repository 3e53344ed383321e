"""So many calls in so much time, and no more.

Use it where somebody else counts: a service with a quota, a database that others need too. Inside of ``retry``, so that
attempts count, or with ``wait=True``, so that calls take their turn.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import Any

from toolcrib.calling.layers import Layer, Per, above_zero, after_waiting, counted_by, seconds_left
from toolcrib.core.buckets import Buckets
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import RateLimitedError
from toolcrib.core.tool import Runner, Tool


def rate_limit(
    calls: float,
    seconds: float = 1.0,
    *,
    per: Per = "tool",
    wait: bool = False,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
) -> Layer:
    """A layer that lets ``calls`` through in ``seconds``, for each tool, each principal, or whatever ``per`` makes.

    It is a bucket: ``calls`` may come at once, and then one as each ``seconds / calls`` go by. What is too much is a
    RateLimitedError that says how long to wait; with ``wait`` it waits its turn, unless that lies beyond the time that
    the caller gave.
    """
    above_zero(calls=calls, seconds=seconds)
    if not 0 < calls / seconds < float("inf"):
        raise ValueError(f"calls and seconds make no rate: {calls!r:.60} in {seconds!r:.60}")
    key_of = counted_by(per)
    buckets, lock = Buckets(calls / seconds, calls, clock), threading.Lock()

    def too_much(tool: Tool, pause: float) -> RateLimitedError:
        had = f"the tool {tool.spec.name!r} has had its {calls:g} calls in {seconds:g} s"
        return RateLimitedError(f"{had}; call it again in {pause:.3g} s", pause)

    async def in_turn(key: str, pause: float, tool: Tool, context: ToolContext) -> ToolContext:
        """The call when its turn has come; who leaves before that gives the turn back."""
        started = clock()
        try:
            await sleep(pause)
            if seconds_left(context, waited := clock() - started) <= 0:
                raise too_much(tool, pause)
        except BaseException:
            with lock:
                buckets.give_back(key)
            raise
        return after_waiting(context, waited)

    def layer(run: Runner) -> Runner:
        async def limited(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            key = key_of(tool, context)
            patience = seconds_left(context, 0.0) if wait else 0.0
            with lock:
                pause = buckets.take(key, patience)
            if pause > 0:
                if pause >= patience:
                    raise too_much(tool, pause)
                context = await in_turn(key, pause, tool, context)
            return await run(tool, arguments, context)

        return limited

    return layer

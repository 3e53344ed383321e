"""So many calls at the same time, and no more.

Use it where each call takes much: a browser, a large model, a database connection.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from toolcrib.calling.layers import Layer, Per, after_waiting, counted_by, seconds_left, whole
from toolcrib.calling.places import Places
from toolcrib.calling.sharing import in_place
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import OverloadedError, ToolBusyError
from toolcrib.core.tool import Runner, Tool


def concurrency_limit(
    most: int, *, waiting: int = 0, per: Per = "tool", clock: Callable[[], float] = time.monotonic
) -> Layer:
    """A layer that lets ``most`` calls go on at once, for each tool, each principal, or whatever ``per`` makes.

    ``waiting`` more may wait for a place, within the time that the caller gave; their deadline counts from when they
    came. Any other is a ToolBusyError. A thread that goes on past its deadline keeps its place until it has ended,
    and a tool keeps its own while it calls others: if those need a place of the same kind, give them a deadline.
    """
    whole(1, most=most)
    whole(0, waiting=waiting)
    key_of = counted_by(per)
    everywhere: dict[str, Places] = {}
    lock = threading.Lock()

    def take(key: str) -> tuple[Places, bool]:
        """Where calls of this kind have their places, and whether this one has got one."""
        with lock:
            places = everywhere.get(key)
            if places is None:
                if len(everywhere) >= _MANY:
                    for idle in [kind for kind, one in everywhere.items() if not one.busy and not one.waiting]:
                        del everywhere[idle]
                places = everywhere[key] = Places("places", most, waiting=waiting)
            return places, places.try_take("")

    async def enter(places: Places, tool: Tool, context: ToolContext) -> ToolContext:
        """The call once it has a place."""
        started = clock()
        try:
            await places.take_within("", context.timeout_seconds)
        except OverloadedError:
            queue = f" and {waiting} wait" if waiting else ""
            raise ToolBusyError(
                f"{most} calls of the tool {tool.spec.name!r} go on at the same time{queue}, which is the limit; "
                "call it again when one of them has ended"
            ) from None
        if seconds_left(context, waited := clock() - started) <= 0:
            places.give_back("")
            raise ToolBusyError(f"the tool {tool.spec.name!r} had no free place before the deadline of this call")
        return after_waiting(context, waited)

    def layer(run: Runner) -> Runner:
        async def limited(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            places, taken = take(key_of(tool, context))
            if not taken:
                context = await enter(places, tool, context)
            return await in_place(places, "", run, tool, arguments, context)

        return limited

    return layer


_MANY = 1000
"""Kinds of calls that are remembered before those without any call are forgotten."""

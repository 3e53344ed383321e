"""Stop a model that makes the same call again and again.

Use it around an agent's loop: a model that is stuck spends money and changes nothing. It is told what to do instead.
Outside of ``cache`` and ``retry``: kept answers are repeats too, and attempts are none of the model's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from toolcrib.calling.layers import Layer, Per, above_zero, counted_by, fingerprint, whole
from toolcrib.calling.layers.agent_run import AgentRun, current_run
from toolcrib.calling.remembered import Remembered
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import RepeatedCallError
from toolcrib.core.tool import Runner, Tool

_MANY = 10_000
"""Callers whose last call is remembered."""


def repeat_breaker(
    same: int = 3,
    *,
    within: float = 600.0,
    per: Per = "principal",
    clock: Callable[[], float] = time.monotonic,
) -> Layer:
    """A layer that lets the same call, of one tool with equal arguments, through ``same`` times in a row.

    The next is a RepeatedCallError, until another call comes in between or ``within`` seconds go by without one. In a
    row are the calls of one :func:`agent_run` and one principal, or whatever ``per`` makes. Tools that may well be
    asked the same again, such as for the time, are left out with ``registry.use(..., tools=)``.
    """
    whole(1, same=same)
    above_zero(within=within)
    key_of = counted_by(per)
    lock = threading.Lock()
    alone = AgentRun()
    this = object()

    def times(key: str, call: tuple[str, bytes]) -> int:
        """How often the call has been made in a row, with this time."""
        rows: Remembered[str, tuple[tuple[str, bytes], int]]
        with lock:
            rows = (current_run() or alone).kept_by(this, lambda: Remembered(_MANY, clock=clock))
            last, count = rows.get(key) or (call, 0)
            count = count + 1 if last == call else 1
            rows.put(key, (call, count), seconds=within)
        return count

    def layer(run: Runner) -> Runner:
        async def counted(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            given = fingerprint(arguments)
            if given is not None and times(key_of(tool, context), (tool.spec.name, given)) > same:
                raise RepeatedCallError(
                    f"the tool {tool.spec.name!r} has been called {same} times in a row with these very arguments, and "
                    "once more brings nothing new; change the arguments, use another tool, or answer with what you have"
                )
            return await run(tool, arguments, context)

        return counted

    return layer

"""Run in a thread: for plain functions, which may hold state of this process and may block.

Nobody can stop a thread. So a call past its deadline is answered, its thread is counted for as long as it goes on, and
a tool with too many of those refuses new calls. Threads are daemons: a stuck one does not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from toolcrib.calling.failures import as_failure
from toolcrib.calling.sharing import keep_place
from toolcrib.calling.threads import Job
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolBusyError, ToolTimeoutError
from toolcrib.core.tool import Tool

MAX_ABANDONED = 16
"""How many calls of one tool may go on past their deadlines before it refuses new ones."""


class ThreadRunner:
    def __init__(self, max_abandoned: int = MAX_ABANDONED) -> None:
        self._max_abandoned = max_abandoned
        self._abandoned: WeakKeyDictionary[Tool, int] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def abandoned(self, tool: Tool) -> int:
        """How many calls of the tool go on past their deadlines."""
        return self._abandoned.get(tool, 0)

    async def __call__(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        if self._abandoned and self.abandoned(tool) >= self._max_abandoned:
            raise ToolBusyError(
                f"tool {tool.name!r} has {self._max_abandoned} calls still running past their deadlines; "
                "wait for them, or give it isolation 'process', where they can be killed"
            )
        job = Job(partial(_call, tool.function, tool.keywords(arguments, context)))
        seconds = tool.spec.timeout_seconds
        try:
            if seconds is None:
                succeeded, value = await job.outcome
            else:
                async with asyncio.timeout(seconds):
                    succeeded, value = await job.outcome
        except TimeoutError:
            self._abandon(tool, job)
            raise ToolTimeoutError(tool.name, seconds or 0.0, still_running=True) from None
        except asyncio.CancelledError:
            self._abandon(tool, job)
            raise
        if succeeded:
            return value
        raise as_failure(tool.name, value)

    def _abandon(self, tool: Tool, job: Job) -> None:
        self._count(tool, +1)
        give_back = keep_place()

        def ended() -> None:
            self._count(tool, -1)
            give_back()

        job.when_done(ended)

    def _count(self, tool: Tool, change: int) -> None:
        with self._lock:
            left = self._abandoned.get(tool, 0) + change
            if left:
                self._abandoned[tool] = left
            else:
                self._abandoned.pop(tool, None)

    def __reduce__(self) -> str:
        return "run_in_thread"


def _call(function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
    value = function(**keywords)
    return asyncio.run(_awaited(value)) if inspect.isawaitable(value) else value


async def _awaited(value: Any) -> Any:
    return await value


run_in_thread = ThreadRunner()

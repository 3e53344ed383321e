"""Run in a thread: for plain functions, which may hold state of this process and may block.

Nobody can stop a thread. So a call past its deadline is answered, its thread is counted for as long as it goes on, and
a tool with too many of those refuses new calls. What the thread runs ends early if it can: an async function is
cancelled, and what tells of its progress, or yields, is stopped where it does. Threads are daemons: a stuck one does
not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

from toolcrib.calling.failures import as_failure
from toolcrib.calling.items import awaited, collected, is_incomplete, is_lazy
from toolcrib.calling.sharing import keep_place
from toolcrib.calling.threads import Job
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolBusyError, ToolTimeoutError
from toolcrib.core.progress import Listener, ToolEvent
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
        caller = _Caller(context.listener)
        keywords = tool.keywords(arguments, context.heard_by(caller) if tool.context_parameter else context)
        job = Job(partial(caller.run, tool.function, keywords))
        seconds = context.seconds_for(tool.spec.timeout_seconds)
        try:
            if seconds is None:
                succeeded, value = await job.outcome
            else:
                async with asyncio.timeout(seconds):
                    succeeded, value = await job.outcome
        except TimeoutError:
            self._abandon(tool, job)
            caller.leave()
            raise ToolTimeoutError(tool.name, seconds or 0.0, still_running=True) from None
        except asyncio.CancelledError:
            self._abandon(tool, job)
            caller.leave()
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


class _Caller:
    """Who called a function that runs in a thread: hears what it tells, until nobody waits for it any more."""

    def __init__(self, listener: Listener | None) -> None:
        self._listener = listener
        self._gone = False
        self._cancel: Callable[[], object] | None = None

    def __call__(self, event: ToolEvent) -> None:
        if self._gone:
            raise asyncio.CancelledError("nobody waits for this call any more")
        if self._listener is not None:
            self._listener(event)

    def leave(self) -> None:
        self._gone = True
        if self._cancel is not None:
            with contextlib.suppress(RuntimeError):  # its loop has ended meanwhile
                self._cancel()

    def run(self, function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
        value = function(**keywords)
        if is_lazy(value):
            return collected(value, self)
        return asyncio.run(self._awaited(value)) if is_incomplete(value) else value

    async def _awaited(self, value: Any) -> Any:
        task = asyncio.current_task()
        assert task is not None
        loop = asyncio.get_running_loop()
        self._cancel = lambda: loop.call_soon_threadsafe(task.cancel)
        if self._gone:
            task.cancel()
        return await awaited(value, self)


run_in_thread = ThreadRunner()

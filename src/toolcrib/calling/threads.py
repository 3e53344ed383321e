"""Daemon threads that work for an event loop.

The loop's own executor will not do: it has few threads, which stuck tools would use up, and it waits for them at exit.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from toolcrib.calling.forks import in_forked_child

_MAX_IDLE = 32
_idle: deque[SimpleQueue[Callable[[], None]]] = deque()
in_forked_child(_idle.clear)


class Job:
    """One function on its way through a thread. ``await job.outcome`` gives (True, value) or (False, exception)."""

    __slots__ = ("_done", "_function", "_lock", "_loop", "_then", "_variables", "outcome")

    def __init__(self, function: Callable[[], Any]) -> None:
        self._loop = asyncio.get_running_loop()
        self.outcome: asyncio.Future[tuple[bool, Any]] = self._loop.create_future()
        self._function = function
        self._variables = contextvars.copy_context()
        self._lock = threading.Lock()
        self._done = False
        self._then: Callable[[], None] | None = None
        _submit(self._run)

    def when_done(self, then: Callable[[], None]) -> None:
        """Call ``then`` when the thread has finished, at once if it has already."""
        with self._lock:
            if not self._done:
                self._then = then
                return
        then()

    def _run(self) -> None:
        try:
            outcome = (True, self._variables.run(self._function))
        except BaseException as error:  # a thread is a boundary: everything goes back to the caller
            outcome = (False, error)
        try:
            self._loop.call_soon_threadsafe(self._deliver, outcome)
        except RuntimeError:
            pass  # the loop is closed: nobody waits any more
        with self._lock:
            self._done = True
            then = self._then
        if then is not None:
            then()

    def _deliver(self, outcome: tuple[bool, Any]) -> None:
        if not self.outcome.done():
            self.outcome.set_result(outcome)


def _submit(job: Callable[[], None]) -> None:
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = SimpleQueue()
        threading.Thread(target=_work, args=(inbox,), name="toolcrib-tool", daemon=True).start()
    inbox.put(job)


def _work(inbox: SimpleQueue[Callable[[], None]]) -> None:
    while True:
        inbox.get()()
        if len(_idle) >= _MAX_IDLE:
            return
        _idle.append(inbox)

"""From sync to async: the one way for code without an event loop to run what needs one.

All of it runs on one loop in a thread of its own, so what a tool keeps that belongs to a loop, such as a client's
connections, serves the next call too. A tool that blocks that loop, and waits for calls made in other threads, would
wait for ever: they run on a loop of their own.
"""

from __future__ import annotations

import asyncio
import contextvars
import logging
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from contextvars import ContextVar
from functools import partial
from typing import Any, TypeVar

from toolcrib.calling.forks import in_forked_child
from toolcrib.core.errors import ToolcribError

T = TypeVar("T")

_NAME = "toolcrib-sync"
_PATIENCE = 1.0
"""Seconds that a loop has to say that it is not blocked."""
_log = logging.getLogger("toolcrib")
_starting = threading.Lock()
_loops: list[asyncio.AbstractEventLoop] = []
"""One for everybody, and one more for each that a tool blocks while it waits for what it calls."""
_LEVEL: ContextVar[int | None] = ContextVar("toolcrib_sync_level", default=None)
"""Which of the loops the running call is on; None if on none of them."""


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns; an interrupt cancels it. It sees the caller's context variables.

    A loop that runs in this thread stands still meanwhile.
    """
    if threading.current_thread().name == _NAME:
        coroutine.close()
        raise ToolcribError("this would wait for itself: inside of a tool that was called without a loop, use 'await'")
    level = _level()
    loop = _loop_of(level)
    done: Future[T] = Future()
    started: list[asyncio.Task[None]] = []
    context = contextvars.copy_context()
    context.run(_LEVEL.set, level)
    loop.call_soon_threadsafe(partial(_start, coroutine, done, started), context=context)
    try:
        return done.result()
    except BaseException:
        if not done.done():
            loop.call_soon_threadsafe(_cancel, started)
        raise


def _start(coroutine: Coroutine[Any, Any, T], done: Future[T], started: list[asyncio.Task[None]]) -> None:
    task = asyncio.get_running_loop().create_task(_told(coroutine, done))
    task.add_done_callback(lambda _: coroutine.close())  # it may have been cancelled before it began
    started.append(task)


def _cancel(started: list[asyncio.Task[None]]) -> None:
    started[0].cancel()


async def _told(coroutine: Coroutine[Any, Any, T], done: Future[T]) -> None:
    try:
        done.set_result(await coroutine)
    except asyncio.CancelledError:
        done.cancel()
    except BaseException as error:  # what ends a program ends the caller's: the loop is everybody's and goes on
        done.set_exception(error)


def _level() -> int:
    """The loop of the call that this one is made by, or the next if that one is blocked."""
    level = _LEVEL.get()
    if level is None:
        return 0
    answered = threading.Event()
    _loop_of(level).call_soon_threadsafe(answered.set)
    if answered.wait(_PATIENCE):
        return level
    _log.warning("a tool that was called without an event loop blocks the one it runs on; make it a plain function")
    return level + 1


def _loop_of(level: int) -> asyncio.AbstractEventLoop:
    with _starting:
        while len(_loops) <= level:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name=_NAME, daemon=True).start()
            _loops.append(loop)
        return _loops[level]


def _forget() -> None:
    """In a forked child the threads are gone, and their loops with them."""
    global _starting  # noqa: PLW0603 - one for the process
    _starting = threading.Lock()
    _loops.clear()


in_forked_child(_forget)

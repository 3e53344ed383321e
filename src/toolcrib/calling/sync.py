"""From sync to async: the one way for code without an event loop to run what needs one.

All of it runs on one loop in a thread of its own, so what a tool keeps that belongs to a loop, such as a client's
connections, serves the next call too.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

from toolcrib.calling.forks import in_forked_child
from toolcrib.core.errors import ToolcribError

T = TypeVar("T")

_starting = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None


def run_sync(coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns; an interrupt cancels it. It sees the caller's context variables.

    A loop that runs in this thread stands still meanwhile.
    """
    loop = _background()
    if threading.current_thread().name == _NAME:
        coroutine.close()
        raise ToolcribError("this would wait for itself: inside of a tool that was called without a loop, use 'await'")
    done: Future[T] = Future()
    started: list[asyncio.Task[None]] = []
    context = contextvars.copy_context()
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


_NAME = "toolcrib-sync"


def _background() -> asyncio.AbstractEventLoop:
    global _loop  # noqa: PLW0603 - one for the process
    with _starting:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name=_NAME, daemon=True).start()
        return _loop


def _forget() -> None:
    """In a forked child the thread is gone, and its loop with it."""
    global _loop, _starting
    _loop, _starting = None, threading.Lock()


in_forked_child(_forget)

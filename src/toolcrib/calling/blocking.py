"""From async to sync: the one way for async code to call what blocks.

What leaves the process, or may take long, is called in a thread of our own pool: no tool can use those threads up.
The thread sees the caller's context variables, so the address rules in force there hold here too. Toolsets, which see
public names alone, use ``asyncio.to_thread``: it does the same with the loop's own threads.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import cache, partial
from typing import Any, ParamSpec, Protocol, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MAX_THREADS = 32


class Port(Protocol):
    @property
    def remote(self) -> bool: ...


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What ``function`` returns, called in a thread with the caller's context variables."""
    return await in_thread_of(None, function, *args, **kwargs)


async def in_thread_of(threads: Executor | None, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The same in one of ``threads``, for work that must not share ours."""
    work: Callable[[], Any] = partial(contextvars.copy_context().run, function, *args, **kwargs)
    result: T = await asyncio.get_running_loop().run_in_executor(threads or _threads(), work)
    return result


async def ask(port: Port, method: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What a port's method returns: called here if the port is local, in a thread if it is remote."""
    if port.remote:
        return await in_thread(method, *args, **kwargs)
    return method(*args, **kwargs)


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MAX_THREADS, "toolcrib-blocking")

"""From async to sync: the one way for async code to call what blocks.

What leaves the process, or may take long, is called in a thread of a pool. There is a pool for each kind of work, so
that what one kind waits for holds up no other: a policy service that hangs fills ``WRITES`` and ``OUTSIDE``, and reads
do not notice. Within a pool the threads are shared fairly by caller (:mod:`toolcrib.calling.places`). No tool runs in
them; those have threads of their own (:mod:`toolcrib.calling.threads`).

The thread sees the caller's context variables, so the address rules in force there hold here too. Toolsets, which see
public names alone, use ``asyncio.to_thread``: it does the same with the loop's own threads.
"""

from __future__ import annotations

import asyncio
import contextvars
import socket
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from functools import cached_property, partial
from typing import Any, ParamSpec, Protocol, TypeVar

from toolcrib.calling.forks import in_forked_child
from toolcrib.calling.places import CALLER, Places
from toolcrib.core.query.budget import BUDGET, LIMITS, QueryBudget

P = ParamSpec("P")
T = TypeVar("T")

_NO_REFUSAL = 1_000_000


class Port(Protocol):
    @property
    def remote(self) -> bool: ...


class Pool:
    """Threads for one kind of work; half of them for one caller at most.

    Where no caller is named (a library, our own work) there is nobody to share with: nothing waits in line then.
    """

    def __init__(self, what: str, threads: int, *, waiting: int = 1000, queued: int = 200) -> None:
        self._make_places = partial(Places, what, threads, each=threads // 2, waiting=waiting, queued=queued)
        self.places = self._make_places()

    def forget(self) -> None:
        """Begin anew, without the threads: they are another process's."""
        self.places = self._make_places()
        vars(self).pop("_threads", None)

    @cached_property
    def _threads(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self.places.most, f"toolcrib-{self.places.what.replace(' ', '-')}")

    async def run(self, work: Callable[[], T]) -> T:
        """What ``work`` returns, called in one of the threads once its caller's turn has come."""
        caller = CALLER.get()
        if not caller:
            return await asyncio.wrap_future(self._threads.submit(work))
        await self.places.take(caller)
        future: Future[T] = self._threads.submit(work)
        # The place is given back when the thread is free again, which a cancelled caller does not wait for.
        future.add_done_callback(lambda _: self.places.give_back(caller))
        try:
            return await asyncio.wrap_future(future)
        finally:
            del future  # an error holds this frame, and would be held by it: all that failed would live on for long


READS = Pool("reads", 16)
"""Reading the catalogue and the audit, by an index. Each piece of work is one query, within the door's limits."""
SCANS = Pool("large reads", 2)
"""Reads that may look at every tool: what holds an expression, a search, GraphQL. Python computes one thing at a time,
so more threads would only make the short reads beside them wait."""
WRITES = Pool("writes", 16)
"""Changing the catalogue, with all that a change waits for: a policy service, the audit, the disk."""
OUTSIDE = Pool("outside calls", 16)
"""Asking those whom nobody here answers for: a policy service about a run, a bucket."""
LOOKUPS = Pool("looking up names", 16)
"""Finding the addresses of names that tools ask for: whoever made a name up may let its answer take long."""
HOUSEKEEPING = Pool("housekeeping", 8, waiting=_NO_REFUSAL, queued=_NO_REFUSAL)
"""What is ours, short and never refused: the record of a call, a folder to be removed, the end of the service."""


def _forget() -> None:
    for pool in (READS, SCANS, WRITES, OUTSIDE, LOOKUPS, HOUSEKEEPING):
        pool.forget()


in_forked_child(_forget)


async def in_thread(pool: Pool, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What ``function`` returns, called in a thread of ``pool`` with the caller's context variables.

    Raises OverloadedError if too many wait for that pool already.
    """
    limits = LIMITS.get() if pool in (READS, SCANS) else None
    if limits is None:
        return await pool.run(_in_context(function, *args, **kwargs))
    budget = QueryBudget(limits, time.thread_time)
    try:
        return await pool.run(_in_context(_budgeted, budget, partial(function, *args, **kwargs)))
    except asyncio.CancelledError:
        budget.stop()  # nobody waits for the answer any more
        raise


async def look_up(host: str, port: int) -> list[Any]:
    """As the event loop's ``getaddrinfo``, whose threads one caller could take all."""
    return await in_thread(LOOKUPS, socket.getaddrinfo, host, port)


async def in_thread_of(threads: Executor, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The same in one of the caller's own ``threads``, for work that must not share any of these pools."""
    return await asyncio.wrap_future(threads.submit(_in_context(function, *args, **kwargs)))


async def ask(pool: Pool, port: Port, method: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """What a port's method returns: called here if the port is local, in a thread of ``pool`` if it is remote."""
    if port.remote:
        return await in_thread(pool, method, *args, **kwargs)
    return method(*args, **kwargs)


def _in_context(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Callable[[], T]:
    context = contextvars.copy_context()
    return lambda: context.run(function, *args, **kwargs)


def _budgeted(budget: QueryBudget, work: Callable[[], Any]) -> Any:
    BUDGET.set(budget)
    budget.start()
    return work()

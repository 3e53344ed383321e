"""So many at once, shared fairly: nobody who asks for much makes the others wait.

Threads, runs, bundles, browsers: whatever there is only so much of has places. Who finds none waits, and those who wait
are served by turns, caller by caller, so that a hundred requests of one caller stand behind each other and not in front
of everybody else. Who may wait is bounded too, for each caller and in all: past that the answer is OverloadedError, at
once. Any event loop and any thread may take a place.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from toolcrib.core.errors import OverloadedError

CALLER: ContextVar[str] = ContextVar("toolcrib_caller", default="")
"""Whose turn it is that counts: a door sets it to the key of whoever it let in."""


class _Ticket:
    """One who waits. ``granted`` under the lock; the future only wakes the waiter."""

    __slots__ = ("granted", "loop", "turn")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.turn: asyncio.Future[None] = self.loop.create_future()
        self.granted = False

    def wake(self) -> bool:
        """False if the waiter's event loop is closed."""
        try:
            self.loop.call_soon_threadsafe(self._set)
        except RuntimeError:
            return False
        return True

    def _set(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)


class Places:
    """``most`` at once in all and ``each`` for one caller; ``waiting`` may wait in all, and ``queued`` of one caller.

    ``what`` names the places in a refusal, as in "too many requests wait for reads already".
    """

    def __init__(
        self, what: str, most: int, *, each: int | None = None, waiting: int = 1000, queued: int | None = None
    ) -> None:
        self.what = what
        self.most = most
        self._each = most if each is None else max(1, min(each, most))
        self._waiting_limit = waiting
        self._queued_limit = waiting if queued is None else queued
        self._lock = threading.Lock()
        self._held: Counter[str] = Counter()
        self._queues: OrderedDict[str, deque[_Ticket]] = OrderedDict()
        self._busy = 0
        self._waiting = 0

    @property
    def busy(self) -> int:
        """How many places are taken."""
        return self._busy

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return self._waiting

    @asynccontextmanager
    async def taken(self, caller: str | None = None) -> AsyncIterator[None]:
        """A place for as long as the block lasts, for ``caller`` or for whoever is CALLER."""
        who = CALLER.get() if caller is None else caller
        await self.take(who)
        try:
            yield
        finally:
            self.give_back(who)

    async def take(self, caller: str) -> None:
        """Wait for a place; every ``take`` that returns needs one ``give_back`` with the same caller."""
        with self._lock:
            if self._busy < self.most and self._held[caller] < self._each and caller not in self._queues:
                self._occupy(caller)
                return
            ticket = self._queue(caller)
        try:
            await ticket.turn
        except BaseException:
            with self._lock:
                if not ticket.granted:
                    self._leave(caller, ticket)
                    raise
            self.give_back(caller)
            raise

    async def take_within(self, caller: str, seconds: float | None) -> None:
        """As ``take``, but who has waited for so many seconds gets OverloadedError; None waits for ever."""
        if self.try_take(caller):
            return
        try:
            async with asyncio.timeout(seconds):
                await self.take(caller)
        except TimeoutError:
            raise OverloadedError(
                f"none of the {self.most} {self.what} was free within {seconds:g} s, the deadline; try again later"
            ) from None

    def try_take(self, caller: str) -> bool:
        """A place now, or False: for those who would rather refuse than wait."""
        with self._lock:
            if self._busy >= self.most or self._held[caller] >= self._each:
                return False
            self._occupy(caller)
            return True

    def give_back(self, caller: str) -> None:
        with self._lock:
            self._vacate(caller)
            self._serve()

    def _occupy(self, caller: str) -> None:
        self._busy += 1
        self._held[caller] += 1

    def _vacate(self, caller: str) -> None:
        self._busy -= 1
        self._held[caller] -= 1
        if not self._held[caller]:
            del self._held[caller]

    def _queue(self, caller: str) -> _Ticket:
        queue = self._queues.get(caller, ())
        if len(queue) >= self._queued_limit:
            raise OverloadedError(f"too many of your requests wait for {self.what} already; try again in a moment")
        if self._waiting >= self._waiting_limit:
            raise OverloadedError(f"too many requests wait for {self.what} already; try again in a moment")
        ticket = _Ticket()
        self._queues.setdefault(caller, deque()).append(ticket)
        self._waiting += 1
        return ticket

    def _leave(self, caller: str, ticket: _Ticket) -> None:
        self._queues[caller].remove(ticket)
        self._waiting -= 1
        if not self._queues[caller]:
            del self._queues[caller]

    def _serve(self) -> None:
        """Give free places to those who wait, one to each caller in turn."""
        while self._busy < self.most:
            caller = next((caller for caller in self._queues if self._held[caller] < self._each), None)
            if caller is None:
                return
            ticket = self._queues[caller].popleft()
            self._waiting -= 1
            if self._queues[caller]:
                self._queues.move_to_end(caller)
            else:
                del self._queues[caller]
            ticket.granted = True
            self._occupy(caller)
            if not ticket.wake():
                self._vacate(caller)

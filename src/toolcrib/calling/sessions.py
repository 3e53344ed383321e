"""Sessions: what calls of one principal share under a name that they give it, such as a browser with its tabs.

The first call of a name opens the session, further ones find it as the last one left it. They run one after the other.
It is closed when nobody has used it for a while, when its principal ends it, and with whoever keeps it. All of that
happens on a loop of its own, so a session serves callers of every loop, and outlives them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Generic, Protocol, TypeVar

from toolcrib.calling.own_loop import OwnLoop
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import (
    RETRY_AFTER,
    MissingConfigError,
    OverloadedError,
    SessionEndedError,
    SessionLimitError,
    SessionNotFoundError,
    ToolcribError,
    ToolTimeoutError,
)

_log = logging.getLogger("toolcrib")
_MOST_CALLS = 32
"""Of one session, at once: one that runs, and those that wait for it."""


class Kept(Protocol):
    """What a session keeps."""

    async def close(self) -> None: ...

    def about(self) -> dict[str, Any]:
        """Facts for whom the session belongs to; any thread may ask."""
        ...


K = TypeVar("K", bound=Kept)
R = TypeVar("R")


@dataclass(eq=False, slots=True)
class Session(Generic[K]):
    """``kept`` may be touched on the loop of the sessions alone. ``users`` are calls that run or wait."""

    principal: str
    name: str
    kept: K
    opened_at: float
    used_at: float
    calls: int = 0
    users: int = 0
    ended: bool = False
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)
    running: asyncio.Task[Any] | None = None
    closing: asyncio.Task[None] | None = None
    idling: asyncio.TimerHandle | None = None


class Sessions(Generic[K]):
    """``open_`` makes what a session of that name keeps; it may start when it is first used.

    ``most`` at once in all and ``each`` for one principal; a session that has been idle for ``idle_seconds`` is closed.
    With several ``processes`` there are none: a session lives in one of them, and a call may come to any.
    """

    def __init__(
        self,
        open_: Callable[[str], K],
        *,
        most: int,
        each: int,
        idle_seconds: float,
        processes: int = 1,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._open = open_
        self._most = most
        self._each = each
        self._idle_seconds = idle_seconds
        self._processes = processes
        self._clock = clock
        self._loop = OwnLoop("toolcrib-sessions")
        self._sessions: dict[tuple[str, str], Session[K]] = {}
        self._pid = os.getpid()
        self._closed = False

    @property
    def refusal(self) -> str:
        """Why no call may name a session here; empty if it may."""
        if self._processes > 1:
            return (
                f"sessions need one process, and {self._processes} answer here: start the service with --workers 1, "
                "or call without a session"
            )
        return "" if self._most and self._each else "this service keeps no sessions: call without one"

    async def use(self, context: ToolContext, seconds: float | None, work: Callable[[K, bool], Awaitable[R]]) -> R:
        """What ``work`` returns of what the session of the call keeps; it is told whether the session is new.

        Waits for calls before it at most ``seconds``. Who cancels ends the work, not the session.
        """
        if self.refusal:
            raise MissingConfigError(self.refusal)
        if self._closed:
            raise OverloadedError("the service is about to stop, and takes no more calls of sessions")
        if self._pid != os.getpid():  # a forked child: the sessions are its parent's
            self._pid, self._sessions = os.getpid(), {}
        return await asyncio.wrap_future(self._loop.submit(self._use(context, seconds, work)))

    def open_ones(self) -> list[Session[K]]:
        """Those that are open, the oldest first; any thread may ask."""
        return list(self._sessions.values())

    async def end(self, principal: str, name: str) -> None:
        """Close a session. A call of it that runs is told so. SessionNotFoundError if there is none."""
        session = self._sessions.get((principal, name))
        if session is None:
            raise SessionNotFoundError(f"no session is called {name!r:.100}; it may have ended by itself")
        await asyncio.wrap_future(self._loop.submit(self._end(session)))

    def close(self) -> None:
        """Close every session, for good."""
        self._closed = True
        self._loop.close(self._end_all)

    # What follows runs on the loop of the sessions.

    async def _use(self, context: ToolContext, seconds: float | None, work: Callable[[K, bool], Awaitable[R]]) -> R:
        session = await self._joined(context)
        session.users += 1
        if session.idling is not None:
            session.idling.cancel()
        try:
            return await self._in_turn(session, seconds, work)
        finally:
            session.users -= 1
            session.used_at = self._clock()
            if not (session.users or session.ended):
                loop = asyncio.get_running_loop()
                session.idling = loop.call_later(self._idle_seconds, self._start_ending, session)

    async def _joined(self, context: ToolContext) -> Session[K]:
        key = context.principal, context.session
        while (session := self._sessions.get(key)) is not None and session.closing is not None:
            await asyncio.shield(session.closing)
        if session is None:
            self._check_room(context.principal)
            now = self._clock()
            session = self._sessions[key] = Session(*key, self._open(context.session), now, now)
        elif session.users >= _MOST_CALLS:
            raise OverloadedError(f"{_MOST_CALLS} calls of the session {session.name!r} are under way already")
        return session

    def _check_room(self, principal: str) -> None:
        own = [session for session in self._sessions.values() if session.principal == principal]
        if len(own) >= self._each:
            names = ", ".join(repr(session.name) for session in own[:20])
            raise SessionLimitError(
                f"you have as many sessions as a caller may have ({len(own)}): {names}; end one of them, or call in it",
                self._until_room(own),
            )
        if len(self._sessions) >= self._most:
            error = OverloadedError(f"all {self._most} sessions of this service are taken; try again later")
            error.facts = {RETRY_AFTER: self._until_room(self.open_ones())}
            raise error

    def _until_room(self, sessions: list[Session[K]]) -> float:
        """Seconds until the first of them is closed for being idle, if nobody uses it."""
        first = min(session.used_at for session in sessions)
        return max(1.0, min(self._idle_seconds, first + self._idle_seconds - self._clock()))

    async def _in_turn(self, session: Session[K], seconds: float | None, work: Callable[[K, bool], Awaitable[R]]) -> R:
        try:
            async with asyncio.timeout(seconds):
                await session.turn.acquire()
        except TimeoutError:
            raise OverloadedError(
                f"the session {session.name!r} was busy with another call for {seconds:g} s, the deadline"
            ) from None
        try:
            if session.ended:
                raise _ended(session)
            return await self._run(session, work)
        finally:
            session.turn.release()

    async def _run(self, session: Session[K], work: Callable[[K, bool], Awaitable[R]]) -> R:
        session.running = asyncio.current_task()
        session.calls += 1
        is_new = session.calls == 1
        try:
            return await work(session.kept, is_new)
        except (asyncio.CancelledError, ToolcribError) as error:
            if session.ended:
                raise _ended(session) from None
            if is_new and not isinstance(error, asyncio.CancelledError | ToolTimeoutError):  # it could not be opened
                self._start_ending(session)
            raise
        finally:
            session.running = None

    def _start_ending(self, session: Session[K]) -> asyncio.Task[None]:
        """What runs is cancelled, and what is kept closed; until that is done the session still counts."""
        if session.closing is None:
            session.ended = True
            if session.idling is not None:
                session.idling.cancel()
            if session.running is not None and session.running is not asyncio.current_task():
                session.running.cancel()
            session.closing = asyncio.ensure_future(self._close(session))
        return session.closing

    async def _close(self, session: Session[K]) -> None:
        try:
            await session.kept.close()
        except Exception:
            _log.exception("the session %r of %r could not be closed", session.name, session.principal)
        finally:
            del self._sessions[session.principal, session.name]

    async def _end(self, session: Session[K]) -> None:
        await asyncio.shield(self._start_ending(session))

    async def _end_all(self) -> None:
        await asyncio.gather(*map(self._start_ending, self.open_ones()))


def _ended(session: Session[Any]) -> SessionEndedError:
    return SessionEndedError(f"the session {session.name!r} was ended; the next call of it opens a new, empty one")

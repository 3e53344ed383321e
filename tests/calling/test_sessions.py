"""Sessions: shared by the calls of one principal that name them, one call at a time, and bounded."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.support.waiting import PATIENCE, until

from toolcrib import (
    InvalidArgumentsError,
    MissingConfigError,
    MissingDependencyError,
    OverloadedError,
    SessionEndedError,
    SessionLimitError,
    SessionNotFoundError,
    ToolContext,
)
from toolcrib.calling.sessions import Sessions
from toolcrib.core.errors import RETRY_AFTER


class Notes:
    """What calls write, kept for the next."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lines: list[str] = []
        self.closed = False

    def about(self) -> dict[str, Any]:
        return {"lines": len(self.lines)}

    async def close(self) -> None:
        self.closed = True


def call(principal: str, session: str) -> ToolContext:
    return ToolContext(principal, session=session)


ADA = call("ada", "shop")


def writing(line: str) -> Callable[[Notes, bool], Awaitable[list[str]]]:
    async def write(notes: Notes, is_new: bool) -> list[str]:
        assert is_new is not bool(notes.lines)
        notes.lines.append(line)
        return list(notes.lines)

    return write


class Held:
    """Work that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun, self.free = threading.Event(), threading.Event()
        self.cancelled = False

    async def __call__(self, notes: Notes, is_new: bool) -> str:
        self.begun.set()
        try:
            while not self.free.is_set():
                await asyncio.sleep(0.005)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        notes.lines.append("held")
        return "done"


@asynccontextmanager
async def sessions_of(
    *, most: int = 8, each: int = 4, idle: float = PATIENCE, processes: int = 1
) -> AsyncIterator[Sessions[Notes]]:
    sessions = Sessions(Notes, most=most, each=each, idle_seconds=idle, processes=processes)
    try:
        yield sessions
    finally:
        await asyncio.to_thread(sessions.close)
        assert sessions.open_ones() == []


@pytest.mark.parametrize("wrong", ["", "a b", "-a", "a/b", "ä", "x" * 65, "a\n", 5, None, ["a"]])
def test_what_is_no_name(wrong: object) -> None:
    with pytest.raises(InvalidArgumentsError, match="session must be a name"):
        ToolContext().in_session(wrong)
    if isinstance(wrong, str) and wrong:
        with pytest.raises(InvalidArgumentsError, match="session must be a name"):
            ToolContext(session=wrong)


async def test_calls_of_one_principal_share_what_they_name() -> None:
    async with sessions_of() as sessions:
        assert await sessions.use(ADA, None, writing("one")) == ["one"]
        assert await sessions.use(ADA, None, writing("two")) == ["one", "two"]
        assert await sessions.use(call("ada", "other"), None, writing("x")) == ["x"]
        assert await sessions.use(call("bob", "shop"), None, writing("y")) == ["y"]
        shown = [(each.principal, each.name, each.calls, each.users) for each in sessions.open_ones()]
        assert shown == [("ada", "shop", 2, 0), ("ada", "other", 1, 0), ("bob", "shop", 1, 0)]


async def test_a_session_serves_callers_of_every_loop() -> None:
    async with sessions_of() as sessions:
        await sessions.use(ADA, None, writing("here"))
        elsewhere = asyncio.to_thread(lambda: asyncio.run(sessions.use(ADA, None, writing("there"))))
        assert await elsewhere == ["here", "there"]


async def test_calls_of_a_session_run_one_after_the_other() -> None:
    async with sessions_of() as sessions:
        held = Held()
        first = asyncio.create_task(sessions.use(ADA, None, held))
        await until(held.begun.is_set)
        second = asyncio.create_task(sessions.use(ADA, None, writing("second")))
        with pytest.raises(OverloadedError, match=r"'shop' was busy with another call for 0\.05 s"):
            await sessions.use(ADA, 0.05, writing("late"))
        assert await sessions.use(call("ada", "free"), None, writing("x")) == ["x"]
        assert not second.done()
        held.free.set()
        assert await first == "done" and await second == ["held", "second"]


async def test_only_so_many_calls_wait() -> None:
    async with sessions_of() as sessions:
        held = Held()
        under_way = [asyncio.create_task(sessions.use(ADA, None, held)) for _ in range(32)]
        await until(lambda: sessions.open_ones() and sessions.open_ones()[0].users == 32)
        with pytest.raises(OverloadedError, match="32 calls of the session 'shop' are under way"):
            await sessions.use(ADA, None, held)
        held.free.set()
        assert set(await asyncio.gather(*under_way)) == {"done"}


async def test_an_idle_session_is_closed_and_a_busy_one_is_not() -> None:
    async with sessions_of(idle=0.05) as sessions:
        held = Held()
        running = asyncio.create_task(sessions.use(call("ada", "busy"), None, held))
        await until(held.begun.is_set)
        await sessions.use(ADA, None, writing("one"))
        notes = next(each.kept for each in sessions.open_ones() if each.name == "shop")
        await until(lambda: notes.closed)
        await until(lambda: [each.name for each in sessions.open_ones()] == ["busy"])
        assert await sessions.use(ADA, None, writing("anew")) == ["anew"]
        held.free.set()
        assert await running == "done"
        await until(lambda: not sessions.open_ones())


async def test_a_caller_has_only_so_many() -> None:
    async with sessions_of(each=2) as sessions:
        for name in ("a", "b"):
            await sessions.use(call("ada", name), None, writing("x"))
        with pytest.raises(
            SessionLimitError, match=r"as many sessions as a caller may have \(2\): 'a', 'b'; end one"
        ) as refused:
            await sessions.use(call("ada", "c"), None, writing("x"))
        assert 0 < refused.value.seconds <= PATIENCE and refused.value.answer.http == 429
        await sessions.use(call("bob", "c"), None, writing("x"))
        await sessions.end("ada", "a")
        await sessions.use(call("ada", "c"), None, writing("x"))


async def test_all_together_have_only_so_many() -> None:
    async with sessions_of(most=2) as sessions:
        await sessions.use(call("ada", "a"), None, writing("x"))
        await sessions.use(call("bob", "a"), None, writing("x"))
        with pytest.raises(OverloadedError, match="all 2 sessions of this service are taken") as refused:
            await sessions.use(call("eve", "a"), None, writing("x"))
        assert refused.value.facts[RETRY_AFTER] <= PATIENCE and "ada" not in str(refused.value)


async def test_ended_on_request() -> None:
    async with sessions_of() as sessions:
        await sessions.use(ADA, None, writing("one"))
        notes = sessions.open_ones()[0].kept
        with pytest.raises(SessionNotFoundError, match="no session is called 'shop'"):
            await sessions.end("bob", "shop")
        await sessions.end("ada", "shop")
        assert notes.closed and sessions.open_ones() == []
        with pytest.raises(SessionNotFoundError):
            await sessions.end("ada", "shop")
        assert await sessions.use(ADA, None, writing("anew")) == ["anew"]


async def test_calls_of_a_session_that_is_ended_are_told() -> None:
    async with sessions_of() as sessions:
        held = Held()
        calls = [asyncio.create_task(sessions.use(ADA, None, held)) for _ in range(2)]
        await until(held.begun.is_set)
        await until(lambda: sessions.open_ones()[0].users == 2)
        await sessions.end("ada", "shop")
        for each in calls:
            with pytest.raises(SessionEndedError, match="'shop' was ended; the next call of it opens a new, empty one"):
                await each
        assert held.cancelled
        assert await sessions.use(ADA, None, writing("anew")) == ["anew"]


async def test_who_leaves_ends_the_call_and_not_the_session() -> None:
    async with sessions_of() as sessions:
        await sessions.use(ADA, None, writing("one"))
        held = Held()
        leaving = asyncio.create_task(sessions.use(ADA, None, held))
        await until(held.begun.is_set)
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        assert await sessions.use(ADA, None, writing("two")) == ["one", "two"]
        assert held.cancelled


async def test_what_could_not_be_opened_is_not_kept() -> None:
    async def no_browser(notes: Notes, is_new: bool) -> None:
        raise MissingDependencyError("Chromium")

    async with sessions_of(each=1) as sessions:
        with pytest.raises(MissingDependencyError):
            await sessions.use(ADA, None, no_browser)
        await sessions.use(call("ada", "other"), None, writing("x"))
        await until(lambda: [each.name for each in sessions.open_ones()] == ["other"])


async def test_where_there_are_none() -> None:
    async with sessions_of(processes=2) as several, sessions_of(most=0) as none:
        with pytest.raises(MissingConfigError, match="2 answer here: start the service with --workers 1"):
            await several.use(ADA, None, writing("x"))
        with pytest.raises(MissingConfigError, match="keeps no sessions: call without one"):
            await none.use(ADA, None, writing("x"))


async def test_a_close_ends_all_of_them_and_lets_none_in() -> None:
    sessions = Sessions(Notes, most=8, each=4, idle_seconds=PATIENCE)
    await sessions.use(ADA, None, writing("one"))
    notes = sessions.open_ones()[0].kept
    held = Held()
    running = asyncio.create_task(sessions.use(call("bob", "a"), None, held))
    await until(held.begun.is_set)
    await asyncio.to_thread(sessions.close)
    with pytest.raises(SessionEndedError):
        await running
    assert notes.closed and sessions.open_ones() == []
    with pytest.raises(OverloadedError, match="about to stop"):
        await sessions.use(ADA, None, writing("x"))
    await asyncio.to_thread(sessions.close)

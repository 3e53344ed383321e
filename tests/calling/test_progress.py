"""What a call tells while it runs, its own deadline, and its end when nobody waits any more, in every isolation."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import wait_until

from toolcrib import InvalidArgumentsError, Tool, ToolContext, ToolEvent, ToolRegistry, tool
from toolcrib.core.spec import Isolation
from toolcrib.define import make_tool


def in_steps(n: int, context: ToolContext) -> str:
    """Work in steps, telling each."""
    for step in range(n):
        context.progress(step / n, f"step {step}")
    return "done"


async def in_steps_async(n: int, context: ToolContext) -> str:
    """Work in steps, telling each."""
    return in_steps(n, context)


def numbers(n: int) -> Iterator[int]:
    """Count."""
    yield from range(n)


async def numbers_async(n: int) -> AsyncIterator[int]:
    """Count."""
    for number in range(n):
        yield number


def made(function: Any, isolation: Isolation) -> Tool:
    return make_tool(function, name="counted", isolation=isolation)


WAYS = [
    (plain if isolation != "inline" else asynchronous, isolation)
    for plain, asynchronous in ((in_steps, in_steps_async), (numbers, numbers_async))
    for isolation in ("inline", "thread", "process")
]
ASYNC_ELSEWHERE = [(function, where) for function in (in_steps_async, numbers_async) for where in ("thread", "process")]


@pytest.mark.parametrize(("function", "isolation"), [*WAYS, *ASYNC_ELSEWHERE])
async def test_progress_and_items_come_in_order_and_then_the_result(function: Any, isolation: Isolation) -> None:
    registry = ToolRegistry([made(function, isolation)])
    events = [event async for event in registry.stream("counted", {"n": 3})]
    *told, last = events
    assert last.kind == "result" and last.result is not None and last.result.success
    if function in (in_steps, in_steps_async):
        assert [(event.kind, event.message) for event in told] == [("progress", f"step {n}") for n in range(3)]
        assert told[1].fraction == pytest.approx(1 / 3)
        assert last.result.data == "done"
    else:
        assert [(event.kind, event.item) for event in told] == [("item", n) for n in range(3)]
        assert last.result.data == [0, 1, 2]
    unheard = await registry.execute("counted", {"n": 2})
    assert unheard.data == ("done" if function in (in_steps, in_steps_async) else [0, 1])


async def test_a_plain_generator_may_run_inline() -> None:
    registry = ToolRegistry([made(numbers, "inline")])
    assert [event.item async for event in registry.stream("counted", {"n": 2})] == [0, 1, None]


async def test_what_lies_outside_is_the_nearest_and_no_number_is_none() -> None:
    heard: list[ToolEvent] = []
    context = ToolContext(listener=heard.append)
    for fraction in (-1, 2, float("nan"), None, 1):
        context.progress(fraction, "here")
    assert [event.fraction for event in heard] == [0, 1, None, None, 1]


async def test_a_stream_of_what_fails_ends_with_that() -> None:
    events = [event async for event in ToolRegistry().stream("nothing")]
    [last] = events
    assert last.result is not None and last.result.error_code == "tool_not_found"


def wait_for_long() -> None:
    """Wait."""
    time.sleep(600)


async def wait_for_long_async() -> None:
    """Wait."""
    await asyncio.sleep(600)


@pytest.mark.parametrize(
    ("function", "isolation"),
    [(wait_for_long_async, "inline"), (wait_for_long_async, "thread"), (wait_for_long, "thread")]
    + [(function, "process") for function in (wait_for_long, wait_for_long_async)],
)
async def test_a_deadline_of_the_call_holds_in_every_isolation(function: Any, isolation: Isolation) -> None:
    result = await ToolRegistry([tool("long", isolation=isolation)(function)]).execute("long", timeout_seconds=0.05)
    assert result.error_code == "timeout"
    assert "0.05 s" in str(result.error)


def test_a_tool_sees_the_deadline_of_its_call() -> None:
    @tool
    async def seen(context: ToolContext) -> float | None:
        """Tell the deadline."""
        return context.timeout_seconds

    registry = ToolRegistry([seen])
    assert registry.execute_sync("seen", timeout_seconds=7).data == 7
    context = ToolContext(timeout_seconds=3)
    assert registry.execute_sync("seen", timeout_seconds=7, context=context).data == 3


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf"), 10**400, True, "5", [5]])
async def test_a_deadline_that_is_none_is_refused_wherever_it_is_given(seconds: Any) -> None:
    result = await ToolRegistry([made(numbers, "thread")]).execute("counted", {"n": 1}, timeout_seconds=seconds)
    assert result.error_code == "invalid_arguments" and result.metadata["tool"] == "counted"
    assert str(result.error).startswith("timeout_seconds must be a number of seconds above 0, not ")
    with pytest.raises(InvalidArgumentsError, match="timeout_seconds must be a number of seconds above 0"):
        ToolContext(timeout_seconds=seconds)


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
@pytest.mark.parametrize("listens", [True, False])
async def test_progress_that_is_no_number_is_told_whoever_listens(isolation: Isolation, listens: bool) -> None:
    def wrong(context: ToolContext) -> None:
        """Tell the page, but no fraction."""
        context.progress("page 3")  # type: ignore[arg-type]

    registry = ToolRegistry([made(wrong, isolation)])
    if listens:
        result = [event async for event in registry.stream("counted")][-1].result
    else:
        result = await registry.execute("counted")
    assert result is not None
    assert result.error == "tool 'counted' failed: TypeError: progress is a number from 0 to 1, or None, not 'page 3'"


def test_a_thread_that_outlives_its_loop_tells_nobody() -> None:
    over = threading.Event()
    threads: list[threading.Thread] = []
    told: list[str] = []

    @tool
    def leaves_a_thread(context: ToolContext) -> None:
        """Start what tells of itself later."""

        def later() -> None:
            over.wait(60)
            context.progress(1, "too late")
            told.append("nothing was raised")

        threads.append(threading.Thread(target=later))
        threads[0].start()

    async def listen() -> list[str]:
        return [event.kind async for event in ToolRegistry([leaves_a_thread]).stream("leaves_a_thread")]

    assert asyncio.run(listen()) == ["result"]
    over.set()
    threads[0].join()
    assert told == ["nothing was raised"]


async def test_who_stops_listening_ends_an_inline_tool() -> None:
    ended = asyncio.Event()

    @tool
    async def endless() -> AsyncIterator[int]:
        """Count for ever."""
        number = 0
        try:
            while True:
                yield number
                number += 1
                await asyncio.sleep(0)
        finally:
            ended.set()

    stream = ToolRegistry([endless]).stream("endless")
    async for event in stream:
        if event.item == 2:
            break
    await stream.aclose()
    await ended.wait()


@pytest.mark.parametrize("kind", ["progress", "items", "awaiting"])
async def test_what_runs_in_a_thread_ends_where_it_tells_or_waits(kind: str) -> None:
    started, ended = threading.Event(), threading.Event()

    def telling(context: ToolContext) -> None:
        """Tell for ever."""
        try:
            while True:
                context.progress(None, "going on")
                started.set()
        finally:
            ended.set()

    def yielding() -> Iterator[int]:
        """Yield for ever."""
        try:
            while True:
                yield 1
                started.set()
        finally:
            ended.set()

    async def awaiting() -> None:
        """Wait for ever."""
        started.set()
        try:
            await asyncio.sleep(600)
        finally:
            ended.set()

    function: Any = {"progress": telling, "items": yielding, "awaiting": awaiting}[kind]
    registry = ToolRegistry([tool("endless", isolation="thread")(function)])
    call = asyncio.create_task(registry.execute("endless"))
    await asyncio.to_thread(started.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(ended.wait, 60)


def leave_a_sign_and_wait(folder: str) -> None:
    """Leave a sign, then wait."""
    import os

    (Path(folder) / "pid").write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(600)


async def test_cancelling_the_caller_ends_the_process_of_its_tool(tmp_path: Path) -> None:
    registry = ToolRegistry([tool("long", isolation="process")(leave_a_sign_and_wait)])
    call = asyncio.create_task(registry.execute("long", {"folder": str(tmp_path)}))
    sign = tmp_path / "pid"
    await asyncio.to_thread(wait_until, lambda: sign.exists() and bool(sign.read_text(encoding="utf-8")))
    process = Path("/proc") / sign.read_text(encoding="utf-8")
    assert process.exists()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await asyncio.to_thread(wait_until, lambda: not process.exists())

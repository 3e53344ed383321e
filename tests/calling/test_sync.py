"""Calls without an event loop, from any thread and in any process."""

import asyncio
import contextvars
import inspect
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from tests.support.waiting import until

from toolcrib import ToolRegistry, tool
from toolcrib.calling import sync


@tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


def in_a_thread(work: Callable[[], Any]) -> list[Any]:
    """What it returned or raised; AssertionError if it did not end."""
    came: list[Any] = []

    def run() -> None:
        try:
            came.append(work())
        except BaseException as error:
            came.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(60)
    assert came, "it did not end"
    return came


@pytest.mark.parametrize("end", [SystemExit, KeyboardInterrupt])
def test_what_ends_a_program_reaches_the_caller_and_no_other(end: type[BaseException]) -> None:
    @tool
    async def interrupt() -> None:
        """Interrupt the program."""
        raise KeyboardInterrupt

    def leave(*_: Any) -> bool:
        raise SystemExit

    registry = ToolRegistry([add, interrupt, tool(name="asked", safety_level="dangerous")(add.function)], approve=leave)
    name = "asked" if end is SystemExit else "interrupt"
    [raised] = in_a_thread(lambda: registry.execute_sync(name))
    assert type(raised) is end
    [result] = in_a_thread(lambda: registry.execute_sync("add", {"a": 1, "b": 2}))
    assert result.data == 3


@pytest.mark.parametrize("has_begun", [True, False])
async def test_an_interrupt_cancels_the_call(monkeypatch: pytest.MonkeyPatch, has_begun: bool) -> None:
    begun, ended = threading.Event(), threading.Event()

    class Interrupted(Future[Any]):
        """Whoever waits for it is interrupted."""

        def result(self, timeout: float | None = None) -> Any:
            if has_begun:
                begun.wait(60)
            raise KeyboardInterrupt

    async def endless() -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    monkeypatch.setattr(sync, "Future", Interrupted)
    coroutine = endless()
    with pytest.raises(KeyboardInterrupt):
        sync.run_sync(coroutine)
    await until(lambda: inspect.getcoroutinestate(coroutine) == inspect.CORO_CLOSED)
    assert ended.is_set() or not begun.is_set()


FORKED = """
import asyncio, os, sys
from toolcrib import ToolRegistry, tool

@tool
async def here(n: int) -> int:
    "Say it again."
    return n

@tool
def in_a_thread(n: int) -> int:
    "Say it again."
    return n

@tool(isolation="process")
def in_a_process(n: int) -> int:
    "Say it again."
    return n

class Audit:
    remote = True
    def record(self, *events): pass

registry = ToolRegistry([here, in_a_thread, in_a_process], audit=Audit())

def all_of_them(who):
    for name in registry.names():
        print(who, name, registry.execute_sync(name, {"n": 1}).data, flush=True)
        print(who, name, asyncio.run(registry.execute(name, {"n": 2})).data, flush=True)

all_of_them("parent")
child = os.fork()
if not child:
    all_of_them("child")
    sys.exit()
assert os.waitpid(child, 0)[1] == 0
all_of_them("parent")
"""


def test_a_forked_child_calls_as_its_parent_does() -> None:
    """It has neither the threads nor the workers that the parent keeps for the next call, and leaves those alone."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, timeout=100, check=True)
    told = done.stdout.splitlines()
    ways = [f"{name} {n}" for name in ("here", "in_a_thread", "in_a_process") for n in (1, 2)]
    assert told == [f"{who} {way}" for who in ("parent", "child", "parent") for way in ways]


def test_a_tool_that_blocks_waits_for_the_calls_of_its_own_threads(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As an async tool does that runs another agent without 'await': its calls come from threads of that agent."""
    monkeypatch.setattr(sync, "_PATIENCE", 0.05)

    @tool
    async def delegate(depth: int) -> int:
        """Have it done by others."""
        name, arguments = ("delegate", {"depth": depth - 1}) if depth else ("add", {"a": 1, "b": 2})
        in_context = contextvars.copy_context().run
        with ThreadPoolExecutor(1) as threads:
            result: int = threads.submit(in_context, registry.execute_sync, name, arguments).result().data
        return result

    registry = ToolRegistry([add, delegate])
    [result] = in_a_thread(lambda: registry.execute_sync("delegate", {"depth": 2}))
    assert result.data == 3
    assert "blocks the one it runs on" in caplog.text
    [result] = in_a_thread(lambda: registry.execute_sync("add", {"a": 2, "b": 2}))
    assert result.data == 4

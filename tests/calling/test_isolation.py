"""Deadlines under every isolation: cancelled, told of, or killed."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import cloudpickle
import pytest
from tests.support.clocks import Clock
from tests.support.waiting import until, wait_until

from toolcrib import AddressRules, ToolBusyError, ToolContext, ToolFailedError, ToolRegistry, ToolTimeoutError, tool
from toolcrib.calling import process, wire
from toolcrib.calling.process import ProcessRunner, run_in_process
from toolcrib.calling.thread import MAX_ABANDONED, ThreadRunner
from toolcrib.calling.wire import GaveUpError, Patience, Wire
from toolcrib.core.addresses import fence
from toolcrib.core.spec import Isolation
from toolcrib.core.tool import Tool


def spin() -> None:
    """Never end."""
    while True:
        pass


def keeper() -> int:
    """Say below which process this runs."""
    return os.getppid()


def gone(process: int) -> bool:
    """No such process, or nothing of it but the number that nobody has asked about."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_inline_is_cancelled_and_may_clean_up() -> None:
    cleaned = asyncio.Event()

    @tool(timeout_seconds=0.05)
    async def wait() -> None:
        """Wait."""
        try:
            await asyncio.sleep(10)
        finally:
            cleaned.set()

    with pytest.raises(ToolTimeoutError, match=r"'wait' passed its deadline of 0\.05 s; it was stopped"):
        await wait.execute()
    assert cleaned.is_set()


async def test_inline_tells_a_tools_own_timeout_from_its_deadline() -> None:
    @tool(timeout_seconds=60)
    async def impatient() -> None:
        """Give up."""
        async with asyncio.timeout(0.01):
            await asyncio.sleep(1)

    with pytest.raises(ToolFailedError, match="TimeoutError"):
        await impatient.execute()


async def test_a_value_that_comes_too_late_is_a_timeout() -> None:
    @tool(timeout_seconds=0.05)
    async def stubborn() -> str:
        """Ignore being cancelled."""
        try:
            await asyncio.sleep(1)
        except asyncio.CancelledError:
            return "late"
        return "never"

    with pytest.raises(ToolTimeoutError):
        await stubborn.execute()


async def test_a_caller_that_is_cancelled_cancels_the_tool() -> None:
    state: list[str] = []

    @tool(timeout_seconds=60)
    async def wait() -> None:
        """Wait."""
        state.append("begun")
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            state.append("cancelled")
            raise

    task = asyncio.create_task(wait.execute())
    await until(lambda: state)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert state == ["begun", "cancelled"]


async def test_many_waiting_tools_share_the_loop() -> None:
    @tool(timeout_seconds=60)
    async def nap(n: int) -> int:
        """Nap."""
        for _ in range(3):
            await asyncio.sleep(0)
        return n

    assert await asyncio.gather(*(nap.execute({"n": n}) for n in range(100))) == list(range(100))


async def test_a_thread_past_its_deadline_is_counted_and_then_refused() -> None:
    release = threading.Event()

    def hold() -> None:
        """Hold."""
        release.wait()

    runner = ThreadRunner(max_abandoned=2)
    made = tool(timeout_seconds=0.05)(hold)
    held = Tool(made.spec, hold, runner)
    for _ in range(2):
        with pytest.raises(ToolTimeoutError, match="still running") as caught:
            await held.execute()
        assert caught.value.still_running
    assert runner.abandoned(held) == 2
    with pytest.raises(ToolBusyError, match="'hold' has 2 calls still running"):
        await held.execute()
    release.set()
    await until(lambda: runner.abandoned(held) == 0)
    held.spec = made.spec.with_changes(timeout_seconds=60)
    await held.execute()
    assert MAX_ABANDONED > 2


async def test_an_endless_loop_in_a_process_is_dead_at_its_deadline_and_its_worker_replaced() -> None:
    deadline, runner = 0.3, ProcessRunner()
    loop = Tool(tool(isolation="process", timeout_seconds=deadline)(spin).spec, spin, runner)
    ask = Tool(tool(isolation="process", timeout_seconds=60)(keeper).spec, keeper, runner)
    worker = await ask.execute()
    began = time.monotonic()
    with pytest.raises(ToolTimeoutError, match="it was stopped"):
        await loop.execute()
    assert time.monotonic() - began >= deadline
    assert gone(worker)
    [ready] = runner.workers()
    assert await ask.execute() == ready not in (worker, os.getpid())
    runner.close()


async def test_a_cancelled_caller_kills_the_process_and_what_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pids"

    @tool(isolation="process", timeout_seconds=60)
    def breed(path: str) -> None:
        """Start a program and wait for it."""
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
        half = Path(f"{path}.half")
        half.write_text(f"{os.getppid()} {os.getpid()} {child.pid}", encoding="utf-8")
        half.rename(path)
        child.wait()

    task = asyncio.create_task(breed.execute({"path": str(note)}))
    await until(note.exists)
    kept, worker, child = map(int, note.read_text().split())
    assert kept in run_in_process.workers()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: gone(kept) and gone(worker) and gone(child))
    await until(lambda: kept not in run_in_process.workers())


def test_a_worker_is_not_asked_for_who_has_gone_already() -> None:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    cancelled = threading.Event()
    cancelled.set()
    with pytest.raises(GaveUpError):
        Wire(ours, 100).ask(b"question", Patience.of(None, cancelled))
    with pytest.raises(BlockingIOError):
        theirs.recv(1)
    ours.close()
    theirs.close()


async def test_waiting_for_a_worker_is_part_of_the_callers_time_and_not_of_the_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runner, deadlines = ProcessRunner(), []
    clock = Clock()

    async def wait(caller: str, seconds: float | None) -> None:
        clock.now += 20

    def begin(message: bytes, patience: Patience, listener: Any) -> Any:
        deadlines.append(patience.deadline - clock.now)
        return ("value", 1), True

    monkeypatch.setattr(process, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(wire, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(runner, "_places", SimpleNamespace(take_within=wait, give_back=lambda caller: None))
    monkeypatch.setattr(runner, "_take", lambda: SimpleNamespace(ask=begin))
    monkeypatch.setattr(runner, "_give_back", lambda worker: None)
    asked = Tool(tool(isolation="process", timeout_seconds=60)(keeper).spec, keeper, runner)
    for given in (None, 70, 1000):
        await asked.execute(context=ToolContext(timeout_seconds=given))
    assert deadlines == [60, 50, 60]


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
async def test_a_plain_function_may_return_what_is_still_to_come(isolation: Isolation) -> None:
    async def later(n: int) -> int:
        await asyncio.sleep(0)
        return n

    async def items(n: int) -> AsyncIterator[int]:
        for number in range(n):
            yield number

    def wrapped(n: int) -> Any:
        """Say it again, later."""
        return later(n)

    def counted(n: int) -> Any:
        """Count."""
        return items(n)

    registry = ToolRegistry([tool(isolation=isolation)(wrapped), tool(isolation=isolation)(counted)])
    for seconds in (None, 60):
        assert (await registry.execute("wrapped", {"n": 3}, timeout_seconds=seconds)).data == 3
        events = [event async for event in registry.stream("counted", {"n": 2}, timeout_seconds=seconds)]
        assert [event.item for event in events[:-1]] == [0, 1]


async def test_what_is_still_to_come_is_cancelled_at_the_deadline_and_with_its_caller() -> None:
    ended: list[str] = []

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    @tool(isolation="inline")
    def wrapped() -> Any:
        """Wait."""
        return for_ever()

    registry = ToolRegistry([wrapped])
    assert (await registry.execute("wrapped", timeout_seconds=0.01)).error_code == "timeout"
    call = asyncio.create_task(registry.execute("wrapped"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert ended == ["cancelled"] * 2


async def test_a_process_runs_local_functions_async_functions_and_tools_with_a_context() -> None:
    offset = 10

    @tool(isolation="process", timeout_seconds=60)
    def local(n: int, context: ToolContext) -> list[Any]:
        """Add."""
        return [n + offset, context.principal]

    @tool(isolation="process", timeout_seconds=60)
    async def waits(n: int) -> int:
        """Wait, then answer."""
        await asyncio.sleep(0)
        return n

    assert await local.execute({"n": 1}, context=ToolContext("ann")) == [11, "ann"]
    assert await waits.execute({"n": 2}) == 2


async def test_a_process_that_dies_is_a_failure_and_the_next_call_works() -> None:
    @tool(isolation="process", timeout_seconds=60)
    def die(now: bool) -> str:
        """Die."""
        if now:
            os._exit(3)
        return "alive"

    with pytest.raises(ToolFailedError, match="its process ended"):
        await die.execute({"now": True})
    assert await die.execute({"now": False}) == "alive"


async def test_a_function_of_no_module_runs_in_a_process() -> None:
    namespace: dict[str, Any] = {}
    exec("def typed(n: int) -> int:\n    'Typed in.'\n    return n + len('x')", namespace)
    assert namespace["typed"].__module__ is None
    assert await tool(isolation="process")(namespace["typed"]).execute({"n": 1}) == 2


async def test_a_builtin_function_runs_in_a_process_and_leaves_others_as_they_are() -> None:
    made = tool("absolute", description="Without its sign.", isolation="process")(abs)
    assert await made.execute({"x": -3}) == 3
    assert "builtins" not in cloudpickle.list_registry_pickle_by_value()


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
async def test_what_a_tool_raises_is_a_failure_with_its_cause(isolation: Isolation) -> None:
    class Odd(Exception):
        def __init__(self, a: int, b: int) -> None:
            super().__init__(f"{a} and {b}")

    @tool(isolation=isolation)
    def fail(how: str) -> None:
        """Fail."""
        if how == "exit":
            sys.exit(4)
        if how == "odd":
            raise Odd(1, 2)
        if how == "stop":
            raise StopIteration
        raise KeyError("k")

    for how, says in [
        ("key", "KeyError: 'k'"),
        ("odd", "1 and 2"),
        ("exit", "SystemExit: 4"),
        ("stop", "StopIteration"),
    ]:
        with pytest.raises(ToolFailedError, match=says) as caught:
            await fail.execute({"how": how})
        if isolation != "process":
            assert caught.value.__cause__ is not None


async def test_what_cannot_travel_to_a_process_is_said() -> None:
    lock = threading.Lock()

    @tool(isolation="process", timeout_seconds=60)
    def closes_over_a_lock() -> bool:
        """Look."""
        return lock.locked()

    with pytest.raises(ValueError, match="cannot be sent to another process"):
        await closes_over_a_lock.execute()


def test_workers_and_stuck_threads_do_not_outlive_the_program() -> None:
    program = """
import asyncio, os, time
from toolcrib import tool, ToolRegistry
from toolcrib.calling.process import run_in_process
def pid(): "P."; return os.getpid()
def stuck(): "S."; time.sleep(600)
registry = ToolRegistry([tool(isolation="process", timeout_seconds=60)(pid), tool(timeout_seconds=0.05)(stuck)])
async def main():
    print((await registry.execute("pid")).data)
    print((await registry.execute("stuck")).error_code)
asyncio.run(main())
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True)
    worker, code = answer.stdout.split()
    assert code == "timeout"
    wait_until(lambda: gone(int(worker)))


def test_a_busy_worker_dies_when_its_program_is_killed() -> None:
    program = """
import asyncio, os, sys
from toolcrib import tool
def spin():
    "S."
    print(os.getpid(), file=sys.stderr, flush=True)
    while True: pass
asyncio.run(tool(isolation="process", timeout_seconds=60)(spin).execute())
"""
    parent = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE, text=True)
    assert parent.stderr is not None
    worker = int(parent.stderr.readline())
    parent.kill()
    parent.wait()
    parent.stderr.close()
    wait_until(lambda: gone(worker))


@pytest.mark.parametrize("pauses", [0, 1])
@pytest.mark.parametrize("fate", ["returns", "raises"])
async def test_an_async_tool_that_blocks_past_its_deadline_is_late_although_it_ended(pauses: int, fate: str) -> None:
    @tool(timeout_seconds=0.05)
    async def stubborn() -> str:
        """Keeps the loop to itself."""
        for _ in range(pauses):
            await asyncio.sleep(0)
        time.sleep(0.1)
        if fate == "raises":
            raise ValueError("no luck")
        return "done"

    result = await ToolRegistry([stubborn]).execute("stubborn")
    assert (result.success, result.error_code, result.metadata["still_running"]) == (False, "timeout", False)
    assert "it could not be stopped and ended by itself after" in (result.error or "")


@pytest.mark.parametrize("fate", ["returns", "raises"])
async def test_a_tool_that_catches_its_cancellation_was_not_stopped(fate: str) -> None:
    @tool(timeout_seconds=0.05)
    async def stubborn() -> str:
        """Goes on when it is told to stop."""
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep(0.05)
        if fate == "raises":
            raise ValueError("no luck")
        return "done"

    result = await ToolRegistry([stubborn]).execute("stubborn")
    assert (result.success, result.error_code) == (False, "timeout")
    assert "it could not be stopped and ended by itself after" in (result.error or "")


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
async def test_the_address_rules_in_force_go_with_the_call(isolation: Isolation) -> None:
    def judged(url: str) -> str:
        """Ask."""
        return AddressRules.in_force().refusal_of_url(url)

    async def judged_here(url: str) -> str:
        """Ask."""
        return judged(url)

    asked = tool(isolation=isolation)(judged_here if isolation == "inline" else judged)
    with fence(AddressRules(public_only=True)):
        assert "not a public address" in await asked.execute({"url": "http://127.0.0.1/"})
    assert await asked.execute({"url": "http://127.0.0.1/"}) == ""

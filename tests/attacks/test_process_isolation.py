"""Row 13: a tool in a process of its own cannot make its caller wait past the deadline, nor leave anything behind."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.misbehaving import (
    come_back_twice,
    die_in_the_middle,
    fill,
    keeper,
    start_a_daemon,
    write_and_end,
    write_and_wait,
)
from tests.support.waiting import until, wait_until

from toolcrib import OverloadedError, Tool, ToolFailedError, ToolTimeoutError, tool
from toolcrib.calling.places import CALLER
from toolcrib.calling.process import ProcessRunner
from toolcrib.calling.wire import GarbledError, GaveUpError, Patience, Wire
from toolcrib.calling.worker import HEADER

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux brings orphans back to their keeper")


@pytest.fixture
def runner() -> Iterator[ProcessRunner]:
    made = ProcessRunner(max_bytes=1_000_000)
    yield made
    made.close()


def in_process(runner: ProcessRunner, function: Any, seconds: float = 60) -> Tool:
    return Tool(tool(isolation="process", timeout_seconds=seconds)(function).spec, function, runner)


def gone(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


async def test_half_a_message_does_not_make_the_caller_wait_past_the_deadline(runner: ProcessRunner) -> None:
    with pytest.raises(ToolTimeoutError, match="it was stopped"):
        await in_process(runner, write_and_wait, 0.5).execute({"text": "half"})
    assert await in_process(runner, keeper).execute() in runner.workers()


@pytest.mark.parametrize("text", ["x", "x" * 17, "\0" * 64, "x" * 100_000], ids=["short", "header", "zeros", "long"])
async def test_what_a_tool_writes_into_the_channel_fails_it_and_its_worker_is_replaced(
    runner: ProcessRunner, text: str
) -> None:
    before = await in_process(runner, keeper).execute()
    with pytest.raises(ToolFailedError, match="something else than the answer came from its process"):
        await in_process(runner, write_and_end).execute({"text": text})
    assert gone(before)
    assert await in_process(runner, keeper).execute() != before


async def test_a_process_that_dies_half_way_through_its_answer_is_a_failure(runner: ProcessRunner) -> None:
    with pytest.raises(ToolFailedError, match="its process ended before it answered"):
        await in_process(runner, die_in_the_middle).execute()


async def test_an_answer_has_a_limit(runner: ProcessRunner) -> None:
    filling = in_process(runner, fill)
    assert len(await filling.execute({"size": 900_000})) == 900_000
    with pytest.raises(ToolFailedError, match="1,000,000 are allowed"):
        await filling.execute({"size": 1_100_000})
    assert len(await filling.execute({"size": 9})) == 9


async def test_a_daemon_is_dead_at_the_deadline(runner: ProcessRunner, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    breeding = in_process(runner, start_a_daemon)
    task = asyncio.create_task(breeding.execute({"note": str(note), "wait": True}))
    await until(note.exists)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: gone(int(note.read_text())))


async def test_what_a_finished_call_leaves_running_is_ended(runner: ProcessRunner, tmp_path: Path) -> None:
    note = tmp_path / "pid"
    before = await in_process(runner, keeper).execute()
    assert await in_process(runner, start_a_daemon).execute({"note": str(note)}) == "started"
    assert before not in runner.workers()
    assert not note.exists() or gone(int(note.read_text()))
    assert await in_process(runner, keeper).execute() != before


async def test_a_worker_with_nothing_left_running_is_kept(runner: ProcessRunner) -> None:
    def run_a_program() -> int:
        """Start a program and wait for it."""
        subprocess.run(["/bin/true"], check=True)
        return os.getppid()

    running = in_process(runner, run_a_program)
    assert await running.execute() == await running.execute()


async def test_a_tool_that_returns_twice_answers_once(runner: ProcessRunner) -> None:
    asked = in_process(runner, come_back_twice)
    for _ in range(3):
        await asked.execute()
    assert await in_process(runner, keeper).execute() in runner.workers()


def test_a_daemon_dies_with_the_program_that_was_killed(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    program = f"""
import asyncio, sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from toolcrib import tool
from tests.support.misbehaving import start_a_daemon
breeding = tool(isolation="process", timeout_seconds=60)(start_a_daemon)
asyncio.run(breeding.execute({{"note": {str(note)!r}, "wait": True}}))
"""
    parent = subprocess.Popen([sys.executable, "-c", program])
    wait_until(note.exists)
    parent.kill()
    parent.wait()
    wait_until(lambda: gone(int(note.read_text())))


def test_a_worker_dies_with_its_keeper(tmp_path: Path) -> None:
    runner, note = ProcessRunner(), tmp_path / "pid"

    def wait(note: str) -> None:
        """Never end."""
        Path(note).write_text(str(os.getpid()), encoding="utf-8")
        threading.Event().wait()

    async def call() -> None:
        task = asyncio.create_task(in_process(runner, wait).execute({"note": str(note)}))
        await until(lambda: note.exists() and note.read_text())
        [kept] = runner.workers()
        os.kill(kept, signal.SIGKILL)
        with pytest.raises(ToolFailedError, match="its process ended"):
            await task

    asyncio.run(call())
    wait_until(lambda: gone(int(note.read_text())))
    runner.close()


async def test_who_waits_for_a_process_longer_than_the_tool_may_take_is_told(tmp_path: Path) -> None:
    runner, note = ProcessRunner(max_workers=1), tmp_path / "begun"

    def hold(note: str) -> None:
        """Never end."""
        Path(note).touch()
        threading.Event().wait()

    task = asyncio.create_task(in_process(runner, hold).execute({"note": str(note)}))
    await until(note.exists)
    with pytest.raises(OverloadedError, match=r"none of the 1 worker processes was free within 0\.1 s"):
        await in_process(runner, keeper, 0.1).execute()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await in_process(runner, keeper).execute() in runner.workers()
    runner.close()


@pytest.mark.parametrize("name", ["eve", ""], ids=["a caller", "nobody"])
async def test_one_caller_leaves_half_of_the_processes_to_others(tmp_path: Path, name: str) -> None:
    """Where nobody is named, in a program of its own, there is nobody to leave any to."""
    runner = ProcessRunner(max_workers=4)

    def hold(note: str) -> None:
        """Never end."""
        Path(note).touch()
        threading.Event().wait()

    CALLER.set(name)
    notes = [tmp_path / str(n) for n in range(4)]
    tasks = [asyncio.create_task(in_process(runner, hold).execute({"note": str(note)})) for note in notes]
    CALLER.set("ada")
    begun = 2 if name else 4
    await until(lambda: sum(note.exists() for note in notes) == begun)
    if name:
        assert await in_process(runner, keeper).execute() in runner.workers()
    assert sum(note.exists() for note in notes) == begun
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    runner.close()


@pytest.fixture
def many_files() -> Iterator[None]:
    """More files are open than ``select`` knows, as with that many connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = max(soft, 4096)
    if hard != resource.RLIM_INFINITY and hard < wanted:
        pytest.skip(f"only {hard} files may be open here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    with ExitStack() as files:
        for _ in range(1100):
            files.enter_context(Path(os.devnull).open("rb"))
        yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.usefixtures("many_files")
async def test_a_caller_with_many_open_files_still_gets_its_answer(runner: ProcessRunner) -> None:
    assert await in_process(runner, keeper).execute() in runner.workers()


def test_nobody_who_reads_nothing_makes_the_sender_wait() -> None:
    ours, theirs = socket.socketpair()
    wire = Wire(ours, 100)
    with theirs, pytest.raises(GaveUpError):
        wire.ask(bytes(10_000_000), Patience.of(0.1, threading.Event()))
    wire.close()


@given(st.binary(max_size=200), st.booleans())
def test_whatever_comes_over_the_wire_is_an_answer_or_refused(garbage: bytes, numbered: bool) -> None:
    ours, theirs = socket.socketpair()
    wire = Wire(ours, 100)
    wire.tell(b"", Patience.of(60, threading.Event()))
    number = HEADER.unpack(theirs.recv(HEADER.size))[0]
    theirs.sendall((number + 1).to_bytes(8) + garbage if numbered else garbage)
    theirs.shutdown(socket.SHUT_WR)
    try:
        body, _ = wire.ask(b"", Patience.of(60, threading.Event()))
        assert len(body) <= 100
    except (GarbledError, EOFError):
        pass
    wire.close()
    theirs.close()

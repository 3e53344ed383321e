"""What isolation costs: calls a second inline, in a thread and in a process, beside what the machine allows; how long
after its deadline a tool in an endless loop is dead; and what a bundle behind its walls costs, cold and kept.

The limit for a process is one byte there and back over a pipe between two processes; the peer is the standard library's
ProcessPoolExecutor, which cannot stop what it runs. For a bundle the limit is a pipe of multiprocessing and the peer a
call of its Pool; the aim for a bundle that is kept is twice that.

Run: .venv-bench/bin/python benchmarks/bench_isolation.py
"""

from __future__ import annotations

import asyncio
import hashlib
import io
import multiprocessing
import os
import statistics
import tempfile
import time
import zipfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from table import print_table

from toolcrib import Binding, Tool, ToolRegistry, ToolSpec, tool
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.runners.bound import bound_tool
from toolcrib.adapters.runners.bundle import BundleRunner
from toolcrib.adapters.runners.sandbox import Sandbox
from toolcrib.adapters.runners.unpacking import BundleCache
from toolcrib.calling.process import run_in_process
from toolcrib.core.spec import Isolation
from toolcrib.formats.bundle import blob_key, bundle_link

SECONDS = 1.5
DEADLINE = 0.2


def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def spin() -> None:
    """Never end."""
    while True:
        pass


def _echo(pipe: Any) -> None:
    while (got := os.read(pipe[0], 1)) != b"":
        os.write(pipe[1], got)


def pipe_trips() -> float:
    there, back = os.pipe(), os.pipe()
    child = multiprocessing.get_context("fork").Process(target=_echo, args=((there[0], back[1]),), daemon=True)
    child.start()
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        os.write(there[1], b"x")
        os.read(back[0], 1)
        count += 1
    child.kill()
    return count / SECONDS


async def pool_calls() -> float:
    loop = asyncio.get_running_loop()
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        await loop.run_in_executor(pool, add, 1, 2)
        return await _rate(lambda: loop.run_in_executor(pool, add, 1, 2))


async def _rate(call: Callable[[], Any]) -> float:
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < SECONDS:
        await call()
        count += 1
    return count / SECONDS


async def tool_calls(isolation: Isolation) -> float:
    timeout = None if isolation == "inline" else 30
    registry = ToolRegistry([tool(isolation=isolation, timeout_seconds=timeout)(add)])
    await registry.execute("add", {"a": 1, "b": 2})
    return await _rate(lambda: registry.execute("add", {"a": 1, "b": 2}))


async def deaths(count: int) -> list[float]:
    """Milliseconds from the deadline until the worker's process is gone."""
    registry = ToolRegistry([tool(isolation="process", timeout_seconds=DEADLINE)(spin)])
    await registry.execute("spin")
    late = []
    for _ in range(count):
        before = set(run_in_process.workers())
        started = time.perf_counter()
        await registry.execute("spin")
        late.append((time.perf_counter() - started - DEADLINE) * 1000)
        assert before - set(run_in_process.workers()), "the worker that ran the loop is still there"
    return late


def _answer(pipe: Connection) -> None:
    while True:
        pipe.send(pipe.recv()["a"])


def _median(call: Callable[[], Any], count: int) -> float:
    """Microseconds of a call."""
    times = []
    for _ in range(count):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return statistics.median(times) * 1e6


def pipe_calls(count: int) -> float:
    """Over a ``multiprocessing.Pipe``."""
    ours, theirs = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=_answer, args=(theirs,), daemon=True)
    child.start()

    def call() -> None:
        ours.send({"a": 1})
        ours.recv()

    try:
        return _median(call, count)
    finally:
        child.kill()


def multiprocessing_calls(count: int) -> float:
    """Of a function in a ``multiprocessing.Pool``."""
    with multiprocessing.get_context("fork").Pool(1) as pool:
        return _median(lambda: pool.apply(dict.get, ({"a": 1}, "a")), count)


def _bundle(folder: Path, kept: int) -> tuple[BundleRunner, Tool]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as written:
        written.writestr(
            "code/function.py",
            "class AgentSpaceV1Tool:\n    def __init__(self, tool_id, tool_data): ...\n"
            "    def execute(self, data):\n        return data['a']\n",
        )
    blobs, digest = open_blobs(f"file://{folder}/blobs"), hashlib.sha256(archive.getvalue()).hexdigest()
    blobs.put(blob_key(digest), io.BytesIO(archive.getvalue()))
    runner = BundleRunner(BundleCache(blobs, folder / "cache"), Sandbox(hidden=[folder]), kept=kept)
    binding = Binding(source_code_link=bundle_link("http://127.0.0.1", digest))
    spec = ToolSpec(name="echo", description="Say it again.", parameters={"type": "object"}, binding=binding)
    return runner, bound_tool(spec, runner)


async def bundle_calls(kept: int, count: int) -> float:
    """Microseconds of a call, median."""
    with tempfile.TemporaryDirectory() as folder:
        runner, tool = _bundle(Path(folder), kept)
        times = []
        for number in range(count + 2):  # the first two find out about the walls, unpack the bundle and start a process
            started = time.perf_counter()
            await tool.execute({"a": 1})
            if number >= 2:
                times.append(time.perf_counter() - started)
        runner.close()
        return statistics.median(times) * 1e6


async def main() -> None:
    limit, peer = pipe_calls(5000), multiprocessing_calls(5000)
    rates = {
        "one byte over a pipe and back (the limit)": pipe_trips(),
        "ProcessPoolExecutor, one worker": await pool_calls(),
        "toolcrib, process": await tool_calls("process"),
        "toolcrib, thread": await tool_calls("thread"),
        "toolcrib, inline": await tool_calls("inline"),
    }
    ours = rates["toolcrib, process"]
    print_table(
        "Calls a second of a plain function, one after the other",
        ("way", "calls a second", "times toolcrib, process"),
        [(name, f"{rate:,.0f}", f"{rate / ours:.2f}") for name, rate in rates.items()],
    )
    late = await deaths(15)
    print_table(
        "An endless loop under 'process': from its deadline to a dead process",
        ("median ms", "worst ms"),
        [(f"{statistics.median(late):.0f}", f"{max(late):.0f}")],
    )
    rows = {
        "a value over multiprocessing.Pipe and back (the limit)": limit,
        "multiprocessing.Pool.apply": peer,
        "a bundle, kept": await bundle_calls(1, 5000),
        "a bundle, cold": await bundle_calls(0, 20),
    }
    print_table(
        "A call of a bundle, median",
        ("way", "ms", "times multiprocessing"),
        [(name, f"{micros / 1000:.3f}", f"{micros / peer:.1f}") for name, micros in rows.items()],
    )


if __name__ == "__main__":
    asyncio.run(main())

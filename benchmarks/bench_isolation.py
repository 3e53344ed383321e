"""What isolation costs: calls a second inline, in a thread and in a process, beside what the machine allows; and how
long after its deadline a tool in an endless loop is dead.

The limit for a process is one byte there and back over a pipe between two processes; the peer is the standard library's
ProcessPoolExecutor, which cannot stop what it runs. Run: .venv-bench/bin/python benchmarks/bench_isolation.py
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from table import print_table

from toolcrib import ToolRegistry, tool
from toolcrib.calling.process import run_in_process

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


async def tool_calls(isolation: str) -> float:
    registry = ToolRegistry(
        [tool(isolation=isolation, **({} if isolation == "inline" else {"timeout_seconds": 30}))(add)]
    )
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


async def main() -> None:
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


if __name__ == "__main__":
    asyncio.run(main())

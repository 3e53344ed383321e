"""One validated call of a trivial async tool, everything on (deadline and audit for Toolcrib), beside five libraries;
with layers around it; and a hundred calls of a model's message, answered at once.

The limit is awaiting the function itself. Every way is called in turn in every round; CPU time is counted, and the
median of the rounds is shown. Libraries that are not installed are left out.
Run: make bench, or .venv-bench/bin/python benchmarks/bench_calls.py
"""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import statistics
import time
import warnings
from collections.abc import Iterable
from typing import Any

from peers import ARGUMENTS, PEERS, Call
from table import print_table

from toolcrib import ToolRegistry, tool
from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.layers import Layer, Runner, budget, circuit_breaker, rate_limit

ROUNDS = 7
SECONDS_A_ROUND = 0.15
PLENTY = 10**9
A_MESSAGE = 100


async def add(a: int, b: int) -> int:
    """Add two numbers.

    Args:
        a: The first number.
        b: The second number.
    """
    return a + b


async def _microseconds(call: Call, count: int) -> float:
    started = time.process_time()
    for _ in range(count):
        await call()
    return (time.process_time() - started) / count * 1e6


async def _medians(calls: dict[str, Call]) -> dict[str, float]:
    counts = {
        name: max(20, int(SECONDS_A_ROUND / (await _microseconds(call, 200) / 1e6))) for name, call in calls.items()
    }
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.freeze()  # or whoever keeps something, as an audit does, pays for going through all that the others have loaded
    for _ in range(ROUNDS):
        for name, call in calls.items():
            rounds[name].append(await _microseconds(call, counts[name]))
    return {name: statistics.median(times) for name, times in rounds.items()}


def _print(title: str, medians: dict[str, float], base: str) -> None:
    print_table(
        title,
        ("way", "CPU us a call", f"times {base}"),
        [
            (name, f"{time_:.2f}", f"{time_ / medians[base]:.2f}")
            for name, time_ in sorted(medians.items(), key=lambda row: row[1])
        ],
    )


async def beside_others() -> None:
    calls: dict[str, Call] = {"direct await": lambda: add(**ARGUMENTS)}
    missing = []
    for name, make in PEERS.items():
        try:
            peer = make()
        except ImportError:
            missing.append(name)
            continue
        calls[peer.name] = await peer.caller(peer.define_all([add]), "add")
    _print("One call of a trivial async tool", await _medians(calls), "toolcrib")
    if missing:
        print(f"Not installed here, so not measured: {', '.join(missing)}.")


def _registry(layers: Iterable[Layer] = ()) -> ToolRegistry:
    return ToolRegistry([tool(timeout_seconds=30)(add)], audit=MemoryAudit(), layers=layers)


def _empty(run: Runner) -> Runner:
    async def nothing(tool: Any, arguments: dict[str, Any], context: Any) -> Any:
        return await run(tool, arguments, context)

    return nothing


def _message(calls: int) -> dict[str, Any]:
    function = {"name": "add", "arguments": json.dumps(ARGUMENTS)}
    return {
        "role": "assistant",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function} for number in range(calls)],
    }


async def with_layers() -> None:
    """The limits of the layers are never reached: what they cost is measured, not what they do."""
    bare, empty = _registry(), _registry([_empty])
    three = _registry([rate_limit(PLENTY), circuit_breaker(), budget(calls=PLENTY, seconds=PLENTY, tokens=PLENTY)])
    calls: dict[str, Call] = {
        "no layer": lambda: bare.execute("add", ARGUMENTS),
        "one empty layer": lambda: empty.execute("add", ARGUMENTS),
        "rate limit, circuit breaker, budget": lambda: three.execute("add", ARGUMENTS),
    }
    _print("One call, with layers", await _medians(calls), "no layer")


async def at_once() -> None:
    bare = _registry()
    message = _message(A_MESSAGE)
    medians = await _medians(
        {
            "execute": lambda: bare.execute("add", ARGUMENTS),
            f"execute_calls of {A_MESSAGE}": lambda: bare.execute_calls(message),
        }
    )
    medians[f"execute_calls of {A_MESSAGE}"] /= A_MESSAGE
    _print("Calls of a model's message", medians, "execute")


async def main() -> None:
    await beside_others()
    await with_layers()
    await at_once()


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    asyncio.run(main())

"""One validated call of a trivial async tool, everything on (deadline and audit for Toolcrib), beside five libraries.

The limit is awaiting the function itself. Every library is called in turn in every round; CPU time is counted, and the
median of the rounds is shown. Run: make bench, or .venv-bench/bin/python benchmarks/bench_calls.py
"""

from __future__ import annotations

import asyncio
import logging
import statistics
import time
import warnings

from peers import ARGUMENTS, PEERS, Call
from table import print_table

ROUNDS = 7
SECONDS_A_ROUND = 0.15


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


async def main() -> None:
    calls: dict[str, Call] = {"direct await": lambda: add(**ARGUMENTS)}
    for make in PEERS.values():
        peer = make()
        calls[peer.name] = await peer.caller(peer.define_all([add]), "add")
    counts = {
        name: max(20, int(SECONDS_A_ROUND / (await _microseconds(call, 200) / 1e6))) for name, call in calls.items()
    }
    rounds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(ROUNDS):
        for name, call in calls.items():
            rounds[name].append(await _microseconds(call, counts[name]))
    medians = {name: statistics.median(times) for name, times in rounds.items()}
    ours = medians["toolcrib"]
    print_table(
        "One call of a trivial async tool",
        ("way", "CPU us a call", "times toolcrib"),
        [
            (name, f"{time_:.2f}", f"{time_ / ours:.2f}")
            for name, time_ in sorted(medians.items(), key=lambda row: row[1])
        ],
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    asyncio.run(main())

"""Registering 10,000 decorated functions and exporting all their OpenAI definitions, beside five libraries.

An agent exports them again for each request, so the second time is told too, alone and with making the JSON of it.
Each library does it in a process of its own, so that none pays for another's garbage; CPU time is counted.
Run: make bench, or .venv-bench/bin/python benchmarks/bench_definitions.py [number of functions]
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

from peers import PEERS
from table import print_table

AGAIN = 3
_SOURCE = '''
async def tool_{n}(query: str, limit: int = {n}, tags: list[str] | None = None, exact: bool = False) -> str:
    """Search the collection number {n}.

    Args:
        query: What to look for.
        limit: How many to return.
        tags: Only those with all of these tags.
        exact: Whether every word must match.
    """
    return query
'''


def functions(count: int) -> list[Callable[..., Any]]:
    space: dict[str, Any] = {}
    source = "".join(_SOURCE.format(n=n) for n in range(count))
    exec(compile(source, "generated", "exec", dont_inherit=True), space)
    return [space[f"tool_{n}"] for n in range(count)]


def measure(name: str, count: int) -> dict[str, float]:
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    peer = PEERS[name]()
    peer.export(peer.define_all(functions(10)))
    made = functions(count)
    started = time.process_time()
    tools = peer.define_all(made)
    defined = time.process_time()
    assert len(peer.export(tools)) == count
    exported = time.process_time()
    again = min(timed(lambda: peer.export(tools)) for _ in range(AGAIN))
    sent = min(timed(lambda: json.dumps(peer.export(tools))) for _ in range(AGAIN))
    return {"define": defined - started, "export": exported - defined, "again": again, "sent": sent}


def timed(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def first(measured: dict[str, float]) -> float:
    return measured["define"] + measured["export"]


def main(count: int) -> None:
    results = {}
    for name in PEERS:
        print(f"{name} ...", file=sys.stderr, flush=True)
        answer = subprocess.run(
            [sys.executable, __file__, "--one", name, str(count)], check=False, capture_output=True, text=True
        )
        if answer.returncode:
            print(f"{name} left out: {answer.stderr.splitlines()[-1]}", file=sys.stderr, flush=True)
            continue
        results[name] = json.loads(answer.stdout.splitlines()[-1])
    ours = first(results["toolcrib"])
    print_table(
        f"{count:,} functions made into tools, and all OpenAI definitions of them",
        ("library", "define, CPU s", "export, CPU s", "times toolcrib", "again, ms", "again and as JSON, ms"),
        [
            (
                name,
                f"{r['define']:.2f}",
                f"{r['export']:.2f}",
                f"{first(r) / ours:.2f}",
                f"{r['again'] * 1e3:.2f}",
                f"{r['sent'] * 1e3:.0f}",
            )
            for name, r in sorted(results.items(), key=lambda row: first(row[1]))
        ],
    )


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
    else:
        main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000)

"""Stacking: what fits, which stack, and how fast pages flow.

Prints how the time to find compatible tools and to plan grows with the catalogue and with the answer, and the
throughput of a pipeline beside a plain asyncio program that does the same with the same client and parser.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
from selectolax.lexbor import LexborHTMLParser

from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import judge
from toolcrib.stacking import Planner, StackingIndex
from toolcrib.toolsets.scraping import make_pipeline

TYPES = [f"type{number}" for number in range(20)]
CAPABILITIES = [f"can{number}" for number in range(60)]
PAGES = 1500
CONCURRENCY = 16


def catalogue(size: int, *, seed: int = 1) -> list[ToolSpec]:
    """Tools of 20 types with 3 of 60 capabilities; each accepts two types, refuses two tools, one in five a type."""
    chance = random.Random(seed)
    specs = []
    for number in range(size):
        refused = [f"tool{chance.randrange(size):06}" for _ in range(2)]
        if chance.random() < 0.2:
            refused.append(f"type:{chance.choice(TYPES)}")
        specs.append(
            ToolSpec(
                name=f"tool{number:06}",
                description="a tool",
                tool_type=chance.choice(TYPES),
                capabilities=tuple(chance.sample(CAPABILITIES, 3)),
                compatibilities=tuple(f"type:{one}" for one in chance.sample(TYPES, 2)),
                incompatible_with=tuple(refused),
                required_config=("KEY",) if chance.random() < 0.3 else (),
            )
        )
    return specs


def milliseconds(function: Callable[[], Any], repeat: int) -> float:
    times = []
    for _ in range(repeat):
        begun = time.perf_counter()
        function()
        times.append(time.perf_counter() - begun)
    return statistics.median(times) * 1000


def compatible(specs: list[ToolSpec]) -> None:
    index = StackingIndex(specs)
    one = specs[len(specs) // 2]
    for target in (None, TYPES[3], "no such type"):
        answer = index.find(one.name, target_type=target)
        took = milliseconds(lambda target=target: index.find(one.name, target_type=target), 15)
        line = f"  {len(specs):>7} tools  type {target or 'any':<12} answer {len(answer):>6}  {took:9.3f} ms"
        if target is None:
            scan = milliseconds(lambda: [other for other in specs if judge(one, other).compatible], 3)
            line += f"   scan of all pairs {scan:9.1f} ms   ratio {scan / took:5.1f}"
        print(line)


def planning(specs: list[ToolSpec]) -> None:
    planner = Planner(specs)
    for count in (2, 4, 6):
        wanted = CAPABILITIES[:count]
        offering = sum(any(each in spec.capabilities for each in wanted) for spec in specs)
        took = milliseconds(lambda wanted=wanted: planner.plan(wanted), 5)
        sizes = [len(stack.tools) for stack in planner.plan(wanted)]
        print(f"  {len(specs):>7} tools  {count} wanted  {offering:>5} have one  stacks of {sizes}  {took:9.2f} ms")


def parse(body: bytes) -> str:
    node = LexborHTMLParser(body.decode()).css_first(".n")
    return "" if node is None else node.text()


async def plain(addresses: list[str], path: Path) -> None:
    """What somebody would write by hand: a queue of addresses, some workers, a file."""
    waiting = iter(addresses)
    with path.open("w", encoding="utf-8") as file:
        async with httpx.AsyncClient(trust_env=False) as client:

            async def work() -> None:
                for address in waiting:
                    response = await client.get(address)
                    file.write(json.dumps({"n": parse(response.content)}) + "\n")

            await asyncio.gather(*(work() for _ in range(CONCURRENCY)))


async def piped(addresses: list[str], path: Path, journal: Path | None) -> None:
    pipeline = make_pipeline(
        "httpx",
        ("selectolax", {"selectors": {"n": ".n"}}),
        ("jsonlines", {"path": str(path)}),
        concurrency=CONCURRENCY,
    )
    report = await pipeline.run(addresses, journal=journal)
    assert report.ok


def throughput(url: str) -> None:
    addresses = [f"{url}/many/{number}" for number in range(PAGES)]
    seen: dict[str, list[tuple[float, float]]] = {}
    for turn in range(3):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            runs = {
                "plain asyncio": lambda folder=folder: plain(addresses, folder / "plain"),
                "pipeline": lambda folder=folder: piped(addresses, folder / "piped", None),
                "pipeline + journal": lambda folder=folder: piped(addresses, folder / "noted", folder / "journal"),
            }
            for label, run in runs.items():
                gc.collect()
                begun, worked = time.perf_counter(), time.process_time()
                asyncio.run(run())
                if turn:
                    took = time.perf_counter() - begun, time.process_time() - worked
                    seen.setdefault(label, []).append(took)
    base = min(worked for _, worked in seen["plain asyncio"])
    for label, times in seen.items():
        rate = PAGES / min(took for took, _ in times)
        worked = min(worked for _, worked in times)
        print(
            f"  {label:<20} {rate:7.0f} pages/s   {worked / PAGES * 1e6:6.0f} us CPU a page"
            f"   {worked / base:5.2f} times plain asyncio"
        )


def main() -> None:
    print(f"find what stacks with one tool (median; {os.cpu_count()} cores)")
    sizes = (1_000, 10_000, 100_000)
    for size in sizes:
        compatible(catalogue(size))
    print("plan the best five stacks")
    for size in (100, 1_000, 10_000):
        planning(catalogue(size))
    print(f"fetch, parse and store {PAGES} pages of a local site, {CONCURRENCY} at once, same client and parser")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "toolcrib.toolsets.scraping.practice", "--hidden", "--port", str(port)]
    server = subprocess.Popen(command)
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            try:
                httpx.get(url, trust_env=False)
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        throughput(url)
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()

"""Bad days: how long an honest client waits while somebody attacks, and what single attacks cost.

The real service on SQLite with 10,000 tools. One client reads at a steady pace, with a JWT, and every wait counts from
when the request was due: who is held up by the request before waits too. First it is quiet, then each attack goes on
beside it, in a process of its own and against a fresh service, then all at once. The aim is a p99 under attack of at
most three times the quiet one. Then single things: one request, or one race a hundred times.

Run: make bench, or .venv-bench/bin/python benchmarks/bench_bad_days.py [--tools N] [--seconds N] [--only TEXT]
"""

from __future__ import annotations

import argparse
import multiprocessing
import shutil
import statistics
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from bad_days import ALL_AT_ONCE, ATTACKS, Attack, begin
from bad_days_races import RACES, THINGS
from bad_days_service import Client, Service, filled
from table import print_table

PACE = 0.05
PATIENCE = 60.0


@dataclass
class Waits:
    """What the honest client saw: milliseconds from when each read was due, and the reads that failed."""

    milliseconds: list[float] = field(default_factory=list)
    failed: int = 0
    unready: int = 0
    ready: list[float] = field(default_factory=list)

    def p(self, share: float) -> float:
        ordered = sorted(self.milliseconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def read_steadily(service: Service, waits: Waits, ended: threading.Event, paths: list[str]) -> None:
    """One read after the other, each when it is due; reads that became due while one was under way are late."""
    with Client(service.port, service.jwt(), PATIENCE) as client:
        due, number = time.monotonic(), 0
        while not ended.is_set():
            if client.status("GET", paths[number % len(paths)]) != 200:
                waits.failed += 1
            waits.milliseconds.append((time.monotonic() - due) * 1000)
            number += 1
            due += PACE
            ended.wait(max(0.0, due - time.monotonic()))


def ask_ready(service: Service, waits: Waits, ended: threading.Event) -> None:
    """As a load balancer does: a new connection each time."""
    while not ended.wait(0.25):
        began = time.monotonic()
        with Client(service.port, "", PATIENCE) as client:
            waits.unready += client.status("GET", "/readyz") != 200
        waits.ready.append((time.monotonic() - began) * 1000)


def measured(service: Service, seconds: float, tools: int) -> Waits:
    """Three kinds of reads, each on a connection of its own, for so many seconds and until the last is answered."""
    waits, ended = Waits(), threading.Event()
    kinds = (
        [f"/tools/tool-{number * 7919 % tools}" for number in range(997)],
        ["/tools?limit=20"],
        [f"/tools/query/by-tag?limit=20&tag={tag}" for tag in ("image", "text", "table")],
    )
    threads = [threading.Thread(target=read_steadily, args=(service, waits, ended, paths)) for paths in kinds]
    threads.append(threading.Thread(target=ask_ready, args=(service, waits, ended)))
    for thread in threads:
        thread.start()
    time.sleep(seconds)
    ended.set()
    for thread in threads:
        thread.join()
    return waits


@contextmanager
def attacking(service: Service, attacks: list[Attack]) -> Iterator[None]:
    """Each attack in a process of its own, so that it takes nothing from the client that measures."""
    spawn = multiprocessing.get_context("spawn")
    begun = [spawn.Event() for _ in attacks]
    processes = [
        spawn.Process(target=begin, args=(attack.work, service.port, service.tokens, event), daemon=True)
        for attack, event in zip(attacks, begun, strict=True)
    ]
    service.hang(any(attack.hangs for attack in attacks))
    try:
        for process in processes:
            process.start()
        for event in begun:
            event.wait(PATIENCE)
        time.sleep(2)  # it is an attack only once it is under way
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()
        service.hang(False)


def under_attack(folder: Path, attacks: list[Attack], seconds: float, tools: int) -> tuple[Waits, Waits]:
    """The same service quiet and attacked."""
    settings = {name: value for attack in attacks for name, value in attack.settings.items()}
    files = min((attack.files for attack in attacks if attack.files), default=0)
    with Service(folder, settings, files if len(attacks) == 1 else 0) as service:
        measured(service, 1, tools)  # so that nothing is done for the first time
        quiet = measured(service, seconds / 2, tools)
        time.sleep(max(attack.after for attack in attacks))
        with attacking(service, attacks):
            return quiet, measured(service, seconds, tools)


def reads(folder: Path, wanted: list[tuple[str, str, list[Attack]]], seconds: float, tools: int) -> None:
    rows, all_quiet = [], []
    for number, (title, before, attacks) in enumerate(wanted):
        quiet, waits = under_attack(filled(folder, number, tools), attacks, seconds, tools)
        all_quiet.append(quiet.p(0.99))
        rows.append(
            [
                title,
                before, f"{waits.p(0.5):,.0f}", f"{waits.p(0.99):,.0f}", f"{waits.p(0.99) / quiet.p(0.99):,.1f} x",
                f"{waits.p(1):,.0f}", len(waits.milliseconds), waits.failed,
                f"{max(waits.ready, default=0):,.0f}", waits.unready,
            ]
        )  # fmt: skip
        print(f"  {title}: done", flush=True)
    print_table(
        f"Reads while somebody attacks, {tools:,} tools on SQLite, {3 / PACE:.0f} reads a second for {seconds:g} s; "
        f"quiet, p99 is {statistics.median(all_quiet):,.0f} ms. 'before' is what the first release did",
        [
            "attack",
            "before",
            "p50 ms",
            "p99 ms",
            "to quiet",
            "longest ms",
            "reads",
            "not 200",
            "/readyz, longest ms",
            "not ready",
        ],
        rows,
    )


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--tools", type=int, default=10_000)
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--races", type=int, default=100)
    options.add_argument("--only", default="", help="part of the title of what to run")
    given = options.parse_args()
    wanted = [(attack.title, attack.before, [attack]) for attack in ATTACKS]
    wanted.append(("all of them at once", "–", ALL_AT_ONCE))
    chosen = [row for row in wanted if given.only in row[0]]
    folder = Path(tempfile.mkdtemp(prefix="bench-bad-days-"))
    with ExitStack() as undone:
        undone.callback(shutil.rmtree, folder, ignore_errors=True)
        if chosen:
            reads(folder, chosen, given.seconds, given.tools)
        things = [thing for thing in THINGS if given.only in thing.title]
        races = [race for race in RACES if given.only in race.title]
        rows = []
        if things:
            with Service(filled(folder, 98, given.tools), {}) as service:
                rows = [thing.row(service) for thing in things]
        rows += [race.row(filled(folder, 99, 0), given.races) for race in races]
        if rows:
            print_table("Single things, and acknowledged uploads without their code", ["what", "before", "now"], rows)


if __name__ == "__main__":
    main()

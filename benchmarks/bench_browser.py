"""The browser: tools beside raw Playwright calls, the size of a snapshot, and twenty sessions at once.

Raw and tool calls take turns in the same browser, each in its own context, so that the machine's moods hit both alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import statistics
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from table import print_table

from toolcrib import AddressRules
from toolcrib.toolsets.browser import BrowserSession, BrowserSessions, Chromium, browser_registry

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "100"))
BLOCK = 10
SESSIONS = 20
ACTIONS = 10
TOKEN = 4
"""Characters in a token, about: a rule of thumb for English and markup, the same for both snapshots."""

PAGE = (
    "<!doctype html><title>Page</title><nav>"
    + "".join(f"<a href='/{n}'>Section {n}</a> " for n in range(20))
    + "</nav><h1>A page</h1><button id='b' onclick='this.dataset.n=1'>Count</button>"
    + "".join(f"<p>Paragraph {n}, with enough words in it to be one.</p>" for n in range(60))
)
LARGE = (
    "<!doctype html><title>Large</title><main><table><tr><th>Id</th><th>Name</th><th>Link</th></tr>"
    + "".join(f"<tr><td>{n}</td><td>Product {n}</td><td><a href='/p/{n}'>Open {n}</a></td></tr>" for n in range(4000))
    + "</table>"
    + "".join(
        f"<article><h3>Card {n}</h3><p>Words about card {n}.</p><button>Buy {n}</button></article>" for n in range(1000)
    )
)


class Pages(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        body = (LARGE if self.path == "/large" else PAGE).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        with contextlib.suppress(OSError):  # the browser went elsewhere in the meantime
            super().handle()

    def log_message(self, format: str, *args: Any) -> None:
        pass


async def turns(*calls: Callable[[], Awaitable[Any]]) -> list[list[float]]:
    """The milliseconds of each call. They take turns in blocks: a browser is slower just after it changed the page.

    A random pause before each call keeps it out of step with the browser's frames: a click waits for two of them, and
    in step with them a millisecond more or less would count for nothing, or for sixteen.
    """
    chance = random.Random(1)
    times: list[list[float]] = [[] for _ in calls]
    gc.disable()
    for block in range(max(ROUNDS // BLOCK, 1)):
        for at in range(len(calls)):
            which = (at + block) % len(calls)
            await calls[which]()
            for _ in range(BLOCK):
                await asyncio.sleep(chance.uniform(0, 2 / 60))
                start = time.perf_counter()
                await calls[which]()
                times[which].append((time.perf_counter() - start) * 1000)
    gc.enable()
    return times


async def against_raw(chromium: Chromium, url: str) -> None:
    browser = await chromium.browser()
    raw = await (await browser.new_context(viewport={"width": 1280, "height": 800})).new_page()
    guarded_rules = AddressRules(allow=("127.0.0.1",))
    async with (
        BrowserSession(chromium=chromium) as session,
        BrowserSession(chromium=chromium, addresses=guarded_rules) as guarded,
    ):
        run, run_guarded = browser_registry(session).execute, browser_registry(guarded).execute

        async def ours(execute: Any, name: str, arguments: dict[str, Any]) -> None:
            result = await execute(name, arguments)
            assert result.success, result.error

        pairs = [
            ("goto", lambda: raw.goto(url), {"url": url}),
            ("click, by selector", lambda: raw.click("#b"), {"selector": "#b"}),
            ("click, by words", lambda: raw.get_by_role("button", name="Count").click(), {"selector": "Count"}),
            ("extract_text", lambda: raw.inner_text("body"), {}),
        ]
        rows = []
        for what, call, arguments in pairs:
            name = what.partition(",")[0]
            plain, tool, behind = await turns(
                call,
                lambda name=name, arguments=arguments: ours(run, name, arguments),  # type: ignore[misc]
                lambda name=name, arguments=arguments: ours(run_guarded, name, arguments),  # type: ignore[misc]
            )
            base, mine, guard = statistics.median(plain), statistics.median(tool), statistics.median(behind)
            rows.append(
                [what, f"{base:.2f}", f"{mine:.2f}", f"{mine / base:.2f}", f"{guard:.2f}", f"{guard / base:.2f}"]
            )
        title = (
            f"Median of {ROUNDS}, in ms; the guarded session has address rules, so its connections go through the guard"
        )
        print_table(title, ["call", "Playwright", "tool", "ratio", "guarded tool", "ratio"], rows)


async def snapshot_size(chromium: Chromium, url: str) -> None:
    async with BrowserSession(chromium=chromium) as session:
        registry = browser_registry(session)
        await registry.execute("goto", {"url": f"{url}/large"})
        rows = []
        for name, call in (
            ("Playwright aria_snapshot()", session.page.aria_snapshot),
            ("Playwright aria_snapshot(mode='ai')", partial(session.page.aria_snapshot, mode="ai")),
        ):
            start = time.perf_counter()
            text = await call()
            rows.append(
                [name, f"{len(text):,}", f"{len(text) // TOKEN:,}", f"{(time.perf_counter() - start) * 1000:.0f}"]
            )
        start = time.perf_counter()
        mine = (await registry.execute("snapshot", {})).data
        taken = (time.perf_counter() - start) * 1000
        size = len(mine["snapshot"])
        rows.append([f"snapshot(), page 1 of {mine['pages']}", f"{size:,}", f"{size // TOKEN:,}", f"{taken:.0f}"])
        assert size // TOKEN <= 6000
    title = f"Snapshot of a page of 4,000 rows and 1,000 cards; a token is taken for {TOKEN} characters"
    print_table(title, ["snapshot", "characters", "tokens", "ms"], rows)


def memory_mb() -> float:
    """The proportional memory of this process's descendants."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    todo, total = [os.getpid()], 0
    while todo:
        pid = todo.pop()
        for child in [child for child, parent in parents.items() if parent == pid]:
            todo.append(child)
            try:
                rollup = Path(f"/proc/{child}/smaps_rollup").read_text(encoding="utf-8")
            except OSError:
                continue
            total += int(next(line for line in rollup.splitlines() if line.startswith("Pss:")).split()[1])
    return total / 1024


async def in_parallel(url: str) -> None:
    actions: list[tuple[str, dict[str, Any]]] = [
        ("goto", {"url": url}),
        ("click", {"selector": "#b", "timeout": 30000}),
        ("extract_text", {}),
    ]

    async def work(session: BrowserSession) -> list[float]:
        execute, times = browser_registry(session).execute, []
        for number in range(ACTIONS):
            name, arguments = actions[number % 3]
            start = time.perf_counter()
            result = await execute(name, arguments)
            assert result.success, result.error
            times.append((time.perf_counter() - start) * 1000)
        return times

    rows = []
    for count in (1, SESSIONS):
        async with BrowserSessions() as sessions:
            await sessions.open("first")
            start = time.perf_counter()
            opened = await asyncio.gather(*(sessions.open(f"s{number}") for number in range(count)))
            opening = time.perf_counter() - start
            start = time.perf_counter()
            times = [one for some in await asyncio.gather(*map(work, opened)) for one in some]
            wall = time.perf_counter() - start
            memory = memory_mb()
            rows.append([
                count, f"{opening * 1000 / count:.0f}", f"{memory:.0f}", f"{statistics.median(times):.0f}",
                f"{wall * 1000 / len(times):.1f}",
            ])  # fmt: skip
    title = f"Sessions at once in one browser, {ACTIONS} actions each (goto, click, extract_text in turn)"
    header = ["sessions", "ms to open one", "memory of all, MB", "median ms an action", "ms an action, all together"]
    print_table(title, header, rows)


async def main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    async with Chromium() as chromium:
        await against_raw(chromium, url)
        await snapshot_size(chromium, url)
    await in_parallel(url)
    server.shutdown()


if __name__ == "__main__":
    asyncio.run(main())

"""The brick on Scrapy: its engine on our own event loop. What it shares with the others is in test_fetching."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import suppress
from typing import Any

import pytest
from tests.support.waiting import until

from toolcrib.toolsets.scraping import make_pipeline
from toolcrib.toolsets.scraping.practice import TITLES, Site

BOOKS = {"rows": "article.book", "selectors": {"title": "h3 a"}, "follow": "a.next@href"}


async def test_it_stacks_with_parsel_to_the_stored_row(site: Site, tmp_path: Any) -> None:
    path = tmp_path / "books.csv"
    pipeline = make_pipeline("scrapy", ("parsel", BOOKS), ("csv", {"path": str(path), "key": "title"}), strict=True)
    report = await pipeline.run([f"{site.url}/books/1"])
    assert (report.ok, report.items) == (True, len(TITLES))
    assert path.read_text().splitlines() == ["title", *TITLES]


async def test_its_own_retries_are_off_unless_they_are_wanted(site: Site) -> None:
    [failed] = (await make_pipeline("scrapy").run([f"{site.url}/flaky/a"])).failures
    assert failed.kind == "503_error"
    assert (await make_pipeline(("scrapy", {"retries": 2})).run([f"{site.url}/flaky/b"])).ok
    assert (site.hits["/flaky/a"], site.hits["/flaky/b"]) == (1, 2)


async def test_cookies_are_kept_and_nobody_is_asked_for_public_suffixes(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetched: list[object] = []
    monkeypatch.setattr("requests.Session.request", lambda *arguments, **_: fetched.append(arguments))
    cookies: dict[str, str | None] = {}

    class Sets(site.RequestHandlerClass):  # type: ignore[name-defined,misc]
        def end_headers(self) -> None:
            self.send_header("Set-Cookie", "given=1; Domain=127.0.0.1; Path=/")
            cookies[self.path] = self.headers.get("Cookie")
            super().end_headers()

    site.RequestHandlerClass = Sets
    addresses = [f"{site.url}/book/{number}" for number in range(2)]
    assert (await make_pipeline("scrapy", host_concurrency=1).run(addresses)).ok
    assert cookies["/book/1"] == "given=1"
    assert fetched == []


async def test_a_cancelled_run_ends_and_another_begins(site: Site) -> None:
    task = asyncio.create_task(make_pipeline("scrapy").run([f"{site.url}/slow?seconds=30"]))
    await until(lambda: site.hits["/slow"])
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert (await make_pipeline("scrapy").run([f"{site.url}/book/1"])).ok


PROGRAM = """
import asyncio, logging, sys
from toolcrib.toolsets.scraping import make_pipeline
from toolcrib.toolsets.scraping.practice import Site
import threading
site = Site()
threading.Thread(target=site.serve_forever, daemon=True).start()
for _ in range(2):  # each run has a loop of its own
    assert asyncio.run(make_pipeline("scrapy").run([site.url + "/book/1"])).ok
assert "twisted.internet.reactor" not in sys.modules
from twisted.internet import asyncioreactor
loop = asyncio.new_event_loop()
asyncioreactor.install(loop)
try:
    asyncio.run(make_pipeline("scrapy").run([site.url + "/book/1"]))
except Exception as error:
    print(type(error).__name__, error)
loop.close()
"""


def test_it_needs_no_reactor_prints_nothing_and_says_so_beside_somebody_elses() -> None:
    done = subprocess.run([sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("UnavailableError 'scrapy' cannot run in this program: ")
    assert "reactor" in done.stdout

"""Whole pipelines of real bricks over the test site, and over its death."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.support.waiting import until, wait_until
from tests.support.website import served
from tests.toolsets.scraping.services import ForwardProxy

from toolcrib.core.errors import IncompatibleError, ToolValidationError
from toolcrib.stacking import Record
from toolcrib.toolsets.scraping import BRICKS, load_pipeline, make_pipeline
from toolcrib.toolsets.scraping.practice import TITLES, Site

BOOKS = {
    "rows": "article.book",
    "selectors": {"title": "h3 a", "price": ".price", "link": "h3 a@href"},
    "follow": "a.next@href",
}


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("client", ["httpx", "requests", "curl_cffi", "playwright"])
@pytest.mark.parametrize("parser", ["beautifulsoup4", "selectolax", "parsel"])
async def test_any_client_with_any_parser_gets_the_same_rows(
    client: str, parser: str, site: Site, tmp_path: Path, chromium_path: str
) -> None:
    path = tmp_path / "books.jsonl"
    pipeline = make_pipeline(client, (parser, BOOKS), ("jsonlines", {"path": str(path)}))
    report = await pipeline.run([f"{site.url}/books/1"])
    assert report.ok, report.failures
    assert (report.done, report.items) == (3, len(TITLES))
    assert [row["title"] for row in rows(path)] == list(TITLES)
    assert rows(path)[0]["link"] == f"{site.url}/book/0"


async def test_a_pipeline_file_in_the_words_of_the_brain(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.json"
    out = tmp_path / "guarded.csv"
    path.write_text(
        json.dumps(
            {
                "steps": [
                    {"step": 2, "tool": "beautifulsoup4", "config": {"selectors": {"heading": "h1"}}},
                    {"step": 1, "tool": "httpx", "config": {"timeout": 60}},
                    {"step": 3, "tool": "csv", "config": {"path": str(out), "key": "heading"}},
                ],
                "error_handling": {
                    "403_error": {"retry_with_actor": "curl_cffi"},
                    "503_error": {"retry_count": 2, "delay_seconds": 0},
                },
                "start": [f"{site.url}/guarded", f"{site.url}/flaky/a"],
            }
        )
    )
    pipeline = load_pipeline(path)
    assert pipeline.check().ok
    report = await pipeline.run()
    assert report.ok, report.failures
    assert sorted(out.read_text().splitlines()) == ["For browsers only", "Up", "heading"]
    assert (site.hits["/guarded"], site.hits["/flaky/a"]) == (2, 2)
    assert report.steps[0].substituted == 1


async def test_a_pipeline_file_says_how_often_a_timeout_is_tried_again(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.json"
    path.write_text(
        json.dumps(
            {
                "steps": [{"tool": "httpx", "config": {"timeout": 0.5}}],
                "error_handling": {"timeout": {"retry_count": 1, "delay_seconds": 0}},
                "start": f"{site.url}/slow?seconds=60",
            }
        )
    )
    report = await load_pipeline(path).run()
    assert [(failure.kind, failure.tool) for failure in report.failures] == [("timeout", "httpx")]
    assert (report.steps[0].taken, report.steps[0].retries) == (2, 1)


async def test_a_pipeline_file_in_toml(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "pipeline.toml"
    path.write_text(
        f"""
        name = "headings"
        start = "{site.url}/"
        allow_hosts = ["127.0.0.1"]

        [[steps]]
        tool = "requests"

        [[steps]]
        tool = "selectolax"
        config.selectors = {{ heading = "h1" }}

        [error_handling.timeout]
        retry_count = 2
        """
    )
    items = await load_pipeline(path).collect()
    assert [item.data for item in items if isinstance(item, Record)] == [{"heading": "Bookshop"}]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.json", "{", "is not JSON"),
        ("a.toml", "= 1", "is not TOML"),
        ("a.json", '"x"', "an object or a list of steps"),
        ("a.json", "[]", "at least 1"),
        ("a.json", '[{"tool": "httpx", "confg": {}}]', "'steps.0.confg' that does not exist"),
        ("a.json", '[{"tool": "httpx", "step": 1}, {"tool": "csv", "step": 1}]', "number every step once"),
        ("none.json", None, "cannot be read"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(name: str, text: str | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / name
    if text is not None:
        path.write_text(text)
    with pytest.raises(ToolValidationError, match=message) as raised:
        load_pipeline(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    ("handling", "message"),
    [
        ({"430": {}}, "kind '430' that does not exist"),
        ({"timeout": {"retry_cuont": 2}}, "'retry_cuont' that does not exist"),
        ({"timeout": 2}, "must be an object"),
        ({"timeout": {"retry_count": -1}}, "'retry_count'"),
    ],
)
def test_wrong_error_handling_is_named(handling: dict[str, Any], message: str) -> None:
    with pytest.raises(ToolValidationError, match=message):
        make_pipeline("httpx", error_handling=handling)


async def test_two_clients_do_not_stack_and_nothing_is_fetched(site: Site) -> None:
    with pytest.raises(IncompatibleError, match="'httpx' and 'requests' do not stack"):
        await make_pipeline("httpx", "requests").run([f"{site.url}/"])
    assert not site.hits


@pytest.mark.parametrize("name", [name for name, brick in BRICKS.items() if brick.spec.tool_type == "data_storage"])
async def test_strict_pipelines_of_what_we_ship_are_allowed(name: str, tmp_path: Path) -> None:
    storage = (name, {"path": str(tmp_path / "out")})
    for client in ("httpx", "requests", "playwright"):
        for parser in ("beautifulsoup4", "selectolax", "parsel"):
            proxies = ("proxy-list", {"proxies": ["http://p:1"]})
            assert make_pipeline(proxies, client, (parser, BOOKS), storage, strict=True).check().ok


async def test_a_broken_proxy_is_left_for_the_next(site: Site, two_proxies: tuple[ForwardProxy, ForwardProxy]) -> None:
    two_proxies[0].broken = True
    pipeline = make_pipeline(
        ("proxy-list", {"proxies": [proxy.url for proxy in two_proxies], "failures": 1, "rest_seconds": 600}),
        "httpx",
        ("parsel", {"selectors": {"n": ".n"}}),
        error_handling={"502_error": {"retry_count": 1, "delay_seconds": 0}},
        concurrency=1,
    )
    items = await pipeline.collect([f"{site.url}/many/{number}" for number in range(5)])
    assert sorted(item.data["n"] for item in items if isinstance(item, Record)) == list("01234")
    assert len(two_proxies[0].calls) == 1
    assert len(two_proxies[1].calls) == 1 + 5  # robots.txt goes the same way


async def test_a_browser_stands_in_where_the_plain_client_is_turned_away(site: Site, chromium_path: str) -> None:
    pipeline = make_pipeline(
        "httpx",
        ("selectolax", {"selectors": {"heading": "h1"}}),
        error_handling={"403_error": {"retry_with": {"tool": "playwright", "config": {"timeout": 20}}}},
    )
    items = await pipeline.collect([f"{site.url}/guarded"])
    assert [item.data for item in items if isinstance(item, Record)] == [{"heading": "For browsers only"}]


async def test_many_rows_from_several_pages_at_once_are_kept_once(site: Site, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    pipeline = make_pipeline("httpx", ("selectolax", {"selectors": {"n": ".n"}}), ("jsonlines", {"path": str(path)}))
    report = await pipeline.run(f"{site.url}/many/{number}" for number in range(300))
    assert report.ok
    assert sorted(int(row["n"]) for row in rows(path)) == list(range(300))


class PatientSite(Site):
    """Lets its visitors wait after so many hits, until they are gone."""

    patience = 0

    def __init__(self) -> None:
        super().__init__()
        self.gone = threading.Event()

    def count(self, path: str) -> int:
        times = super().count(path)
        if self.patience and self.hits.total() >= self.patience:
            self.gone.wait()
        return times


PROGRAM = """
import asyncio, sys
from toolcrib.toolsets.scraping import load_pipeline
print(asyncio.run(load_pipeline(sys.argv[1]).run()).done, flush=True)
"""


@pytest.mark.parametrize("storage", ["jsonlines", "csv", "sqlite", "parquet"])
def test_a_run_that_is_killed_goes_on_without_fetching_or_storing_twice(storage: str, tmp_path: Path) -> None:
    pages, concurrency = 150, 4
    with served(PatientSite()) as site:
        definition = tmp_path / "pipeline.json"
        definition.write_text(
            json.dumps(
                {
                    "steps": [
                        {"tool": "httpx"},
                        {"tool": "selectolax", "config": {"selectors": {"n": ".n"}}},
                        {"tool": storage, "config": {"path": str(tmp_path / "out")}},
                    ],
                    "start": [f"{site.url}/many/{number}" for number in range(pages)],
                    "concurrency": concurrency,
                    "journal": str(tmp_path / "run.journal"),
                }
            )
        )
        in_flight = 0
        for wanted in (40, 90):
            site.patience = wanted
            site.gone.clear()
            process = subprocess.Popen([sys.executable, "-c", PROGRAM, str(definition)])
            try:
                wait_until(lambda: site.hits.total() >= wanted or process.poll() is not None)  # noqa: B023
                assert process.poll() is None
            finally:
                os.kill(process.pid, signal.SIGKILL)
                process.wait()
                site.gone.set()
            in_flight += concurrency
        site.patience = 0
        subprocess.run([sys.executable, "-c", PROGRAM, str(definition)], check=True, timeout=100)
        hits = Counter(site.hits)
    assert hits.pop("/robots.txt") == 3  # once in each run
    assert len(hits) == pages
    assert max(hits.values()) <= 3
    assert sum(hits.values()) - pages <= in_flight  # only what was under way when it died
    assert sorted(numbers(storage, tmp_path / "out")) == list(range(pages))


def numbers(storage: str, path: Path) -> list[int]:
    from tests.toolsets.scraping.test_storage import read

    return [int(row["n"]) for row in read(storage, path)]


async def test_cancelling_a_real_run_leaves_what_is_stored_whole(site: Site, tmp_path: Path) -> None:
    site.delay = 0.01
    path = tmp_path / "many.jsonl"
    pipeline = make_pipeline("requests", ("parsel", {"selectors": {"n": ".n"}}), ("jsonlines", {"path": str(path)}))
    task = asyncio.create_task(pipeline.run(f"{site.url}/many/{number}" for number in range(10_000)))
    await until(lambda: sum(site.hits.values()) >= 30)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    kept = rows(path)
    assert 0 < len(kept) < 200
    assert len({row["n"] for row in kept}) == len(kept)

"""The brick on Selenium, with the system's ChromeDriver and a real Chromium."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import running
from tests.support.waiting import until, wait_until
from tests.toolsets.scraping.services import ForwardProxy

from toolcrib.core.addresses import AddressRules, fence
from toolcrib.core.errors import MissingDependencyError
from toolcrib.stacking import Page, Record, Request
from toolcrib.toolsets.scraping import BRICKS, make_pipeline
from toolcrib.toolsets.scraping.practice import Site

PROFILE = "--user-data-dir={}/toolcrib-chromium-"
"""How a browser of the brick can be told from others, and a test's own by its folder."""


@pytest.fixture(autouse=True)
def profiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chromium_path: str) -> Iterator[Path]:
    """A folder for the browsers' profiles. When a test is over no process of theirs is left, and no folder."""
    if shutil.which("chromedriver") is None:
        pytest.skip("no chromedriver: run make parts")
    folder = tmp_path / "profiles"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.setenv("SE_OFFLINE", "false")
    monkeypatch.setattr("selenium.webdriver.common.selenium_manager.SeleniumManager.binary_paths", _no_download)
    yield folder
    assert running(PROFILE.format(folder)) == []
    assert list(folder.glob("toolcrib-chromium-*")) == []


def _no_download(*_: object) -> dict[str, str]:
    raise AssertionError("Selenium looked for a driver itself")


async def pages(*requests: Request | str, **config: Any) -> tuple[Any, dict[str, Page]]:
    found: dict[str, Page] = {}

    def keep(page: Any) -> None:
        found[page.request.url] = page

    report = await make_pipeline(("selenium", config)).run(requests, on_item=keep)
    return report, found


async def test_pages_come_as_the_browser_shows_them(site: Site) -> None:
    form = b"state=s1&g-recaptcha-response=the-solved-token"
    paths = ["/books/1", "/js", "/guarded", "/books/99"]
    posted = Request(f"{site.url}/captcha", "POST", {"Content-Type": "application/x-www-form-urlencoded"}, form)
    put = Request(f"{site.url}/", "PUT")
    report, found = await pages(*(f"{site.url}{path}" for path in paths), posted, put, browsers=2)
    first = found[f"{site.url}/books/1"]
    assert (first.status, first.url, first.fetched_by) == (200, f"{site.url}/books/1", "selenium")
    assert first.headers["content-type"].startswith("text/html")
    assert "The Dispossessed" in first.text
    assert "For browsers only" in found[f"{site.url}/guarded"].text
    assert "You are not a robot" in found[f"{site.url}/captcha"].text
    assert {failure.kind for failure in report.failures} == {"404_error", "error"}
    assert any("use 'playwright'" in failure.reason for failure in report.failures)


async def test_it_waits_clicks_and_stacks_with_a_parser(site: Site) -> None:
    config = {"interactions": [{"scroll": True}, {"click": "a.next"}, {"wait_for": "#b4"}], "headers": {"X-A": "b"}}
    books = {"rows": "article.book", "selectors": {"title": "h3 a"}}
    pipeline = make_pipeline(("selenium", config), ("parsel", books), strict=True)
    items = await pipeline.collect([f"{site.url}/books/1"])
    assert isinstance(items[0], Record)
    assert items[0].data["title"] == "Parable of the Sower"


async def test_a_slow_page_is_a_timeout_and_the_next_gets_another_browser(site: Site, profiles: Path) -> None:
    slow, quick = f"{site.url}/slow?seconds=60", f"{site.url}/book/1"
    report, found = await pages(slow, quick, timeout=6, browsers=1)
    assert [(failure.url, failure.kind) for failure in report.failures] == [(slow, "timeout")]
    assert "A Wizard of Earthsea" in found[quick].text


async def test_a_browser_that_hangs_is_ended_with_its_deadline(site: Site) -> None:
    """Its page never gives the browser back, so ChromeDriver waits for an answer that does not come."""
    config = {"interactions": [{"click": "h1"}], "timeout": 5}

    class Hangs(site.RequestHandlerClass):  # type: ignore[name-defined,misc]
        def answer(self, *_: object) -> tuple[int, str]:
            return 200, "<h1 onclick='while (true) {}'>Stay</h1>"

    site.RequestHandlerClass = Hangs
    report, _ = await pages(f"{site.url}/", **config)
    assert [failure.kind for failure in report.failures] == ["timeout"]


async def test_there_are_never_more_browsers_than_said_and_none_after_a_cancelled_run(
    site: Site, profiles: Path
) -> None:
    addresses = [f"{site.url}/slow?seconds=60&n={number}" for number in range(6)]
    task = asyncio.create_task(make_pipeline(("selenium", {"browsers": 1})).run(addresses))
    await until(lambda: site.hits["/slow"] >= 1)
    browsers = [line for line in running(PROFILE.format(profiles)) if "--type=" not in line]
    assert len(browsers) == 1
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    wait_until(lambda: not running(PROFILE.format(profiles)))
    wait_until(lambda: not list(profiles.iterdir()))


async def test_behind_rules_it_does_not_get_out(site: Site) -> None:
    by_name = f"http://localhost:{site.server_address[1]}/"
    tunnelled = by_name.replace("http:", "https:")
    with fence(AddressRules(public_only=True)):
        report = await make_pipeline("selenium", obey_robots=False).run([by_name, tunnelled])
    assert {failure.kind for failure in report.failures} == {"refused"}
    assert len(report.failures) == 2
    assert all("is not a public address" in failure.reason for failure in report.failures)
    assert not site.hits


async def test_a_proxy_is_used_and_one_with_a_password_refused(
    two_proxies: tuple[ForwardProxy, ForwardProxy],
) -> None:
    proxy = two_proxies[0]
    proxy.broken = True
    guarded = proxy.url.replace("//", "//me:secret@")
    requests = [Request("http://bookshop.test/", proxy=proxy.url), Request("http://bookshop.test/b", proxy=guarded)]
    report = await make_pipeline("selenium", obey_robots=False).run(requests)
    assert sorted(failure.kind for failure in report.failures) == ["502_error", "error"]
    assert "http://bookshop.test/" in proxy.calls
    assert any("user name and password" in failure.reason for failure in report.failures)
    assert "secret" not in str(report.failures)


async def test_cookies_headers_and_robots_txt(site: Site) -> None:
    seen: list[dict[str, str]] = []

    class Listens(site.RequestHandlerClass):  # type: ignore[name-defined,misc]
        def answer(self, path: str, *_: object) -> tuple[int, str]:
            seen.append({"path": path, **{name.lower(): value for name, value in self.headers.items()}})
            return 200, "User-agent: *\nDisallow: /staff" if path == "/robots.txt" else "<h1>Hello</h1>"

    site.RequestHandlerClass = Listens
    config = {"cookies": {"session": "s1"}, "headers": {"X-Team": "books"}, "user_agent": "ShopBot/1.0"}
    report, _ = await pages(f"{site.url}/a", f"{site.url}/staff", **config)
    assert [failure.kind for failure in report.failures] == ["robots"]
    [asked] = [each for each in seen if each["path"] == "/a"]
    assert (asked["cookie"], asked["x-team"], asked["user-agent"]) == ("session=s1", "books", "ShopBot/1.0")


def test_what_is_not_there_is_said_before_anything_runs(tmp_path: Path) -> None:
    [error] = BRICKS["selenium"]({"driver": str(tmp_path / "none")}).missing()
    assert isinstance(error, MissingDependencyError)
    assert "apt install chromium-driver" in str(error)
    [error] = BRICKS["selenium"]({"executable": str(tmp_path / "none")}).missing()
    assert "apt install chromium" in str(error)


async def test_a_driver_that_does_not_start_says_so(tmp_path: Path) -> None:
    program = tmp_path / "chromedriver"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    report = await make_pipeline(("selenium", {"driver": str(program)}), obey_robots=False).run(["http://127.0.0.1:1/"])
    assert [failure.kind for failure in report.failures] == ["connection_error"]
    assert "did not start" in report.failures[0].reason

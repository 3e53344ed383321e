"""Every brick that fetches, against the same site."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.website import served
from tests.toolsets.scraping.services import SCRAPER_KEY, ForwardProxy, ScraperService

from toolcrib.core.addresses import AddressRules, fence
from toolcrib.core.errors import (
    DeniedError,
    MissingConfigError,
    MissingDependencyError,
    ToolFailedError,
    ToolTimeoutError,
    ToolValidationError,
    UnavailableError,
)
from toolcrib.stacking import Page, Request
from toolcrib.stacking.step import Step
from toolcrib.toolsets.scraping import BRICKS, make_pipeline
from toolcrib.toolsets.scraping.practice import Site

CLIENTS = ["httpx", "requests", "curl_cffi", "scrapy"]
FETCHERS = [*CLIENTS, "playwright"]


@asynccontextmanager
async def fetching(name: str, config: Mapping[str, Any] | None = None, **secrets: str) -> AsyncIterator[Any]:
    brick = BRICKS[name](config, secrets=secrets.get)
    assert brick.missing() == []
    step = Step(brick, 4, lambda: False)

    async def fetch(request: Request | str) -> Page:
        given, _ = await step(Request(request) if isinstance(request, str) else request)
        assert len(given) == 1
        page = given[0]
        assert isinstance(page, Page)
        return page

    await step.open()
    try:
        yield fetch
    finally:
        await step.close()


@pytest.mark.parametrize("name", FETCHERS)
async def test_a_page_comes_with_its_status_and_text(name: str, site: Site, chromium_path: str) -> None:
    async with fetching(name) as fetch:
        page = await fetch(f"{site.url}/books/1")
        assert (page.status, page.url, page.fetched_by) == (200, f"{site.url}/books/1", name)
        assert "The Dispossessed" in page.text
        assert page.headers["content-type"].startswith("text/html")
        assert (await fetch(f"{site.url}/books/99")).status == 404


@pytest.mark.parametrize("name", FETCHERS)
async def test_many_pages_at_once(name: str, site: Site, chromium_path: str) -> None:
    async with fetching(name) as fetch:
        pages = await asyncio.gather(*(fetch(f"{site.url}/many/{number}") for number in range(12)))
        assert [f">{number}</p>" in page.text for number, page in enumerate(pages)] == [True] * 12


@pytest.mark.parametrize("name", FETCHERS)
async def test_a_slow_page_is_a_timeout(name: str, site: Site, chromium_path: str) -> None:
    async with fetching(name, {"timeout": 0.5}) as fetch:
        with pytest.raises(ToolTimeoutError, match=r"0\.5 s"):
            await fetch(f"{site.url}/slow?seconds=60")


@pytest.mark.parametrize("name", FETCHERS)
async def test_nobody_there_is_unavailable(name: str, chromium_path: str) -> None:
    with socket.socket() as taken:  # so that nobody else comes to listen there
        taken.bind(("127.0.0.1", 0))
        async with fetching(name) as fetch:
            with pytest.raises(UnavailableError, match="did not answer"):
                await fetch(f"http://127.0.0.1:{taken.getsockname()[1]}/")


@pytest.mark.parametrize("name", CLIENTS)
async def test_a_page_that_is_too_large_is_a_failure(name: str, site: Site) -> None:
    async with fetching(name, {"max_bytes": 100}) as fetch:
        with pytest.raises(ToolFailedError, match="100 bytes"):
            await fetch(f"{site.url}/books/1")


@pytest.mark.parametrize("name", FETCHERS)
async def test_a_form_can_be_posted(name: str, site: Site, chromium_path: str) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b"state=s1&g-recaptcha-response=the-solved-token"
    async with fetching(name) as fetch:
        page = await fetch(Request(f"{site.url}/captcha", "POST", headers, body))
        assert "You are not a robot" in page.text


@pytest.mark.parametrize(
    ("name", "status"), [("httpx", 403), ("requests", 403), ("scrapy", 403), ("curl_cffi", 200), ("playwright", 200)]
)
async def test_who_gets_past_the_guard(name: str, status: int, site: Site, chromium_path: str) -> None:
    async with fetching(name) as fetch:
        assert (await fetch(f"{site.url}/guarded")).status == status


@pytest.mark.parametrize("name", FETCHERS)
async def test_only_a_browser_sees_what_javascript_makes(name: str, site: Site, chromium_path: str) -> None:
    config = {"wait_for": "li.made:nth-child(3)"} if name == "playwright" else {}
    async with fetching(name, config) as fetch:
        page = await fetch(f"{site.url}/js")
        assert ('<li class="made">three</li>' in page.text) == (name == "playwright")


async def test_the_browser_clicks_fills_and_scrolls(site: Site, chromium_path: str) -> None:
    interactions = [{"scroll": True}, {"click": "a.next"}, {"wait_for": "#b4"}]
    async with fetching("playwright", {"interactions": interactions}) as fetch:
        page = await fetch(f"{site.url}/books/1")
        assert page.url == f"{site.url}/books/2"
        assert "Parable of the Sower" in page.text
    with pytest.raises(ToolValidationError, match="exactly one"):
        BRICKS["playwright"]({"interactions": [{"click": "a", "scroll": True}]})


def test_a_browser_that_is_nowhere_is_missing_before_anything_runs(tmp_path: Any) -> None:
    secrets = {"PLAYWRIGHT_BROWSERS_PATH": str(tmp_path)}
    brick = BRICKS["playwright"]({"executable": "/nowhere"}, secrets=secrets.get)
    [error] = brick.missing()
    assert isinstance(error, MissingDependencyError)
    assert str(error).startswith("the browser '/nowhere' is not installed; run: apt install chromium")


async def test_a_browser_that_does_not_start_says_so(tmp_path: Any) -> None:
    program = tmp_path / "chromium"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    with pytest.raises(UnavailableError, match="did not start"):
        async with fetching("playwright", {"executable": str(program)}):
            pass


async def test_a_browser_that_crashed_is_started_again(site: Site, chromium_path: str) -> None:
    brick: Any = BRICKS["playwright"]()
    await brick.open()
    try:
        await (await brick.chromium.browser()).close()
        [page] = await brick.process(Request(f"{site.url}/book/3"), None)
        assert "Kindred" in page.text
    finally:
        await brick.close()


async def test_scraperapi_fetches_through_the_service(site: Site, scraper_service: ScraperService) -> None:
    config = {"endpoint": scraper_service.url, "render": True, "country_code": "nl"}
    async with fetching("scraperapi", config, SCRAPERAPI_KEY=SCRAPER_KEY) as fetch:
        page = await fetch(f"{site.url}/guarded")
    assert page.status == 200
    assert page.url == f"{site.url}/guarded"
    assert scraper_service.calls == [
        {"api_key": SCRAPER_KEY, "url": f"{site.url}/guarded", "render": "true", "country_code": "nl"}
    ]


async def test_scraperapi_tells_a_wrong_key_from_a_page_that_says_no(
    site: Site, scraper_service: ScraperService
) -> None:
    config = {"endpoint": scraper_service.url}
    async with fetching("scraperapi", config, SCRAPERAPI_KEY="wrong") as fetch:
        with pytest.raises(DeniedError, match="SCRAPERAPI_KEY"):
            await fetch(f"{site.url}/books/1")
    async with fetching("scraperapi", config, SCRAPERAPI_KEY=SCRAPER_KEY) as fetch:
        assert (await fetch(f"{site.url}/books/77")).status == 404
        scraper_service.credits_used_up = True
        with pytest.raises(DeniedError, match="credits"):
            await fetch(f"{site.url}/books/1")


def test_a_missing_key_is_named() -> None:
    [error] = BRICKS["scraperapi"]().missing()
    assert isinstance(error, MissingConfigError)
    assert "'SCRAPERAPI_KEY'" in str(error)


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(BRICKS["httpx"], "modules", ("httpx", "a_package_nobody_has"))
    [error] = BRICKS["httpx"]().missing()
    assert isinstance(error, MissingDependencyError)
    assert error.install == "pip install 'toolcrib[scraping]'"
    assert "a_package_nobody_has" in str(error)


def test_what_a_setting_needs_is_missing_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("h2", "html5lib"):
        monkeypatch.setitem(sys.modules, module, None)
    [error] = BRICKS["httpx"]({"http2": True}).missing()
    assert "pip install h2" in str(error)
    [error] = BRICKS["beautifulsoup4"]({"selectors": {"a": "b"}, "features": "html5lib"}).missing()
    assert "pip install html5lib" in str(error)
    assert BRICKS["httpx"]().missing() == []


PACKAGES = (
    *("httpx", "requests", "curl_cffi", "playwright", "bs4", "lxml", "selectolax", "parsel", "extruct", "pyarrow"),
    *("selenium", "scrapy"),
)
WITHOUT_PACKAGES = f"""
import sys
for name in {PACKAGES!r}:
    sys.modules[name] = None
from toolcrib.toolsets.scraping import BRICKS, make_pipeline
settings = {{"parser": {{"selectors": {{"a": "b"}}}}, "data_storage": {{"path": "x"}}}}
for name, brick in BRICKS.items():
    config = settings.get(brick.spec.tool_type) if name != "extruct" else None
    config = {{"proxies": ["http://p:1"]}} if name == "proxy-list" else config
    print(name, *(type(error).__name__ for error in brick(config).missing()))
"""


def test_without_any_package_every_brick_can_be_named_and_says_what_it_needs(tmp_path: Any) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_PACKAGES], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    told = dict(line.partition(" ")[::2] for line in done.stdout.splitlines())
    assert set(told) == set(BRICKS)
    nothing_needed = {name for name, errors in told.items() if not errors}
    assert nothing_needed == {"proxy-list", "jsonlines", "csv", "sqlite"}
    assert {told[name] for name in ("selenium", "scrapy")} == {"MissingDependencyError"}
    assert {told[name] for name in ("cloudscraper", "undetected-chromedriver")} == {"ToolValidationError"}
    assert told["scraperapi"] == "MissingDependencyError MissingConfigError"


@pytest.mark.parametrize("name", FETCHERS)
async def test_a_proxy_is_used(
    name: str, site: Site, two_proxies: tuple[ForwardProxy, ForwardProxy], chromium_path: str
) -> None:
    # Chromium does not send loopback addresses through a proxy, so it gets a name that only the proxy knows.
    proxy = two_proxies[0]
    if name == "playwright":
        proxy.broken = True
        async with fetching(name) as fetch:
            assert (await fetch(Request("http://bookshop.test/", proxy=proxy.url))).status == 502
        assert proxy.calls[0] == "http://bookshop.test/"
        return
    async with fetching(name) as fetch:
        page = await fetch(Request(f"{site.url}/books/1", proxy=proxy.url))
    assert page.status == 200
    assert proxy.calls == [f"{site.url}/books/1"]


async def test_proxies_take_turns_and_the_broken_ones_rest() -> None:
    brick: Any = BRICKS["proxy-list"]({"proxies": ["http://a:1", "http://b:1"], "failures": 2, "rest_seconds": 600})
    brick.open()

    def choose() -> str:
        [request] = brick.process(Request("http://x/"), None)
        chosen: str = request.proxy
        return chosen

    assert [choose() for _ in range(4)] == ["http://a:1", "http://b:1"] * 2
    for _ in range(2):
        brick.feedback(Request("http://x/", proxy="http://a:1"), "timeout")
    assert [choose() for _ in range(3)] == ["http://b:1"] * 3
    for _ in range(2):
        brick.feedback(Request("http://x/", proxy="http://b:1"), "502_error")
    with pytest.raises(UnavailableError, match="all 2 proxies"):
        choose()


def test_a_proxy_list_can_be_a_file(tmp_path: Any) -> None:
    listed = tmp_path / "proxies.txt"
    listed.write_text("# ours\nhttp://a:1\n\nhttp://b:1  # slow\n")
    brick: Any = BRICKS["proxy-list"]({"file": str(listed)})
    brick.open()
    chosen = [brick.process(Request("http://x/"), None)[0].proxy for _ in range(3)]
    assert chosen == ["http://a:1", "http://b:1", "http://a:1"]
    with pytest.raises(ToolValidationError, match="'proxies' or a 'file'"):
        BRICKS["proxy-list"]()
    missing: Any = BRICKS["proxy-list"]({"file": str(tmp_path / "none.txt")})
    with pytest.raises(UnavailableError, match=r"none\.txt"):
        missing.open()


@pytest.mark.parametrize("client", [*FETCHERS, "selenium"])
async def test_a_file_of_this_machine_is_no_page(client: str, tmp_path: Path, chromium_path: str) -> None:
    """Whatever its address looks like, and with rules or without; nor is a page of the browser's own."""
    kept = tmp_path / "secret.html"
    kept.write_text("<h1>secret</h1>", encoding="utf-8")
    file = kept.as_uri()
    inside = [file, f"file://localhost{kept}", f" FILE:{kept}", f"view-source:{file}", "chrome://version", "nothing"]
    for rules in (AddressRules(public_only=True), AddressRules()):
        with fence(rules):
            report = await make_pipeline(client).run(inside)
        assert (report.done, [failure.kind for failure in report.failures]) == (0, ["refused"] * len(inside))


@pytest.mark.parametrize("client", FETCHERS)
async def test_behind_rules_no_client_gets_out(client: str, site: Site, chromium_path: str) -> None:
    """By address, by a name that resolves to it, through a tunnel, and at the end of a redirect."""
    port = site.server_address[1]

    class Allowed(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(302 if self.path == "/redirect" else 200)
            self.send_header("Location", f"http://localhost:{port}/")
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None: ...

    with served(ThreadingHTTPServer(("127.0.0.1", 0), Allowed)) as allowed:
        netloc = f"127.0.0.1:{allowed.server_port}"
        hosts = [f"http://127.1:{port}/", f"http://localhost:{port}/", f"https://localhost:{port}/"]
        inside = [*hosts, f"http://{netloc}/redirect"]
        with fence(AddressRules((netloc,), public_only=True)):
            report = await make_pipeline(client).run([*inside, f"http://{netloc}/"])
    assert sorted(failure.url for failure in report.failures) == sorted(inside)
    assert {failure.kind for failure in report.failures} == {"refused"}
    assert all("is not a public address" in failure.reason for failure in report.failures)
    assert report.done == 1
    assert not site.hits


@pytest.mark.parametrize("client", FETCHERS)
async def test_behind_rules_a_proxy_of_ones_own_is_judged(
    client: str, two_proxies: tuple[ForwardProxy, ForwardProxy], chromium_path: str
) -> None:
    denied, allowed = two_proxies
    denied.broken = allowed.broken = True
    by_name = denied.url.replace("127.0.0.1", "localhost")
    with fence(AddressRules((urlsplit(allowed.url).netloc,), public_only=True)):
        async with fetching(client) as fetch:
            for proxy in (denied.url, by_name):
                with pytest.raises(DeniedError, match=r"its proxy '(localhost|127).*not a public address"):
                    await fetch(Request("http://bookshop.test/", proxy=proxy))
            with pytest.raises(DeniedError, match="not an address such as"):
                await fetch(Request("http://bookshop.test/", proxy="gopher://127.0.0.1:70"))
            assert (await fetch(Request("http://bookshop.test/", proxy=allowed.url))).status == 502
    assert denied.calls == []
    assert allowed.calls[0] == "http://bookshop.test/"


async def test_behind_rules_a_proxy_is_asked_at_the_address_that_was_judged() -> None:
    with fence(AddressRules(deny=("10.0.0.0/8",))):
        brick: Any = BRICKS["httpx"]()
    pinned = {
        "http://me:p%40ss@localhost:8080": "http://me:p%40ss@127.0.0.1:8080",
        "socks5://localhost": "socks5://127.0.0.1:1080",
        "http://a\\@localhost": "http://a%5C@127.0.0.1:80",
        "http://[::1]:3128": "http://[::1]:3128",
        "https://localhost:3129": "https://localhost:3129",
    }
    for proxy, used in pinned.items():
        assert await brick.way_out(Request("http://x/", proxy=proxy)) == used
    assert await BRICKS["httpx"]().way_out(Request("http://x/", proxy="http://localhost")) == "http://localhost"  # type: ignore[attr-defined]


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_behind_rules_a_service_is_judged(scheme: str, site: Site, scraper_service: ScraperService) -> None:
    endpoint = scraper_service.url.replace("http", scheme)
    with fence(AddressRules(public_only=True)):
        async with fetching("scraperapi", {"endpoint": endpoint}, SCRAPERAPI_KEY=SCRAPER_KEY) as fetch:
            with pytest.raises(DeniedError, match="is not a public address"):
                await fetch(f"{site.url}/books/1")
    assert scraper_service.calls == []
    with fence(AddressRules(("127.0.0.1",), public_only=True)):
        async with fetching("scraperapi", {"endpoint": scraper_service.url}, SCRAPERAPI_KEY=SCRAPER_KEY) as fetch:
            assert (await fetch(f"{site.url}/books/1")).status == 200

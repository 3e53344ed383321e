"""How a run treats the hosts it asks, on a site that notes how it is asked."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast
from urllib.parse import urlsplit

import pytest
from tests.stacking.bricks import Fetch
from tests.support.waiting import until
from tests.support.website import served
from tests.toolsets.scraping.services import SCRAPER_KEY, ForwardProxy, ScraperService

from toolcrib.core.addresses import AddressRules, fence
from toolcrib.core.errors import ToolFailedError, ToolValidationError
from toolcrib.stacking import Pipeline, Progress
from toolcrib.toolsets.scraping import make_pipeline
from toolcrib.toolsets.scraping.robots import RobotsTxt, name_of

Answer = tuple[int, dict[str, str], str]


class Host(ThreadingHTTPServer):
    """Answers as ``answer`` says, 200 without one; notes who came when, and how many were there at once."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), HostHandler)
        self.robots: Answer = (404, {}, "")
        self.answer: Callable[[str, int], Answer] = lambda path, times: (200, {}, f"<h1>{path}</h1>")
        self.asked: list[tuple[str, float, dict[str, str]]] = []
        self.inside = self.most = 0
        self.stay = 0.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    @property
    def paths(self) -> list[str]:
        return [path for path, _, _ in self.asked]

    @property
    def pages(self) -> list[str]:
        return [path for path in self.paths if path != "/robots.txt"]

    def allow(self, text: str) -> None:
        self.robots = (200, {}, text)


class HostHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        host = cast(Host, self.server)
        headers = {name.lower(): value for name, value in self.headers.items()}
        host.asked.append((self.path, time.monotonic(), headers))
        host.inside += 1
        host.most = max(host.most, host.inside)
        if host.stay:
            time.sleep(host.stay)
        is_robots = self.path == "/robots.txt"
        status, more, text = host.robots if is_robots else host.answer(self.path, host.paths.count(self.path))
        host.inside -= 1
        if not status:
            self.close_connection = True
            return
        body = text.encode()
        self.send_response(status)
        for name, value in {"Content-Type": "text/html", "Content-Length": str(len(body)), **more}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None: ...


@pytest.fixture
def host() -> Iterator[Host]:
    with served(Host()) as running:
        yield running


async def run(host: Host, *paths: str, client: Any = "httpx", **settings: Any) -> Any:
    return await make_pipeline(client, **settings).run([f"{host.url}{path}" for path in paths])


async def test_what_robots_txt_refuses_is_told_by_its_rule_and_the_rest_goes_on(host: Host) -> None:
    host.allow("User-agent: *\nDisallow: /staff/  # ours\nDisallow: /*.pdf$\nAllow: /staff/open\n")
    report = await run(host, "/", "/staff/wages", "/staff/open", "/a.pdf", max_failures=0)
    assert (report.outcome, report.done, report.failed) == ("finished", 2, 2)
    assert {failure.kind for failure in report.failures} == {"robots"}
    told = {urlsplit(failure.url).path: failure.reason for failure in report.failures}
    where = urlsplit(host.url).netloc
    assert told["/staff/wages"] == (
        f"{host.url}/staff/wages was not fetched: the robots.txt of {where} says 'Disallow: /staff/' to 'Toolcrib'"
    )
    assert "'Disallow: /*.pdf$'" in told["/a.pdf"]
    assert sorted(host.pages) == ["/", "/staff/open"]


async def test_robots_txt_is_asked_for_once_a_host_and_run_and_can_be_turned_off(host: Host) -> None:
    host.allow("User-agent: *\nDisallow: /no\n")
    for _ in range(2):
        await run(host, "/1", "/2", "/3", "/no")
    assert host.paths.count("/robots.txt") == 2
    report = await run(host, "/no", obey_robots=False)
    assert report.ok
    assert host.paths.count("/robots.txt") == 2
    assert host.pages.count("/no") == 1


async def test_another_name_may_get_another_answer(host: Host) -> None:
    host.allow("User-agent: *\nDisallow: /\n\nUser-agent: shopbot\nDisallow: /cart\n")
    shopbot = ("httpx", {"user_agent": "ShopBot/2.0 (+https://example.com)"})
    assert (await run(host, "/books", client=shopbot)).ok
    [refused] = (await run(host, "/cart", client=shopbot)).failures
    assert refused.reason.endswith("says 'Disallow: /cart' to 'ShopBot'")
    [refused] = (await run(host, "/books")).failures
    assert refused.reason.endswith("says 'Disallow: /' to 'Toolcrib'")


@pytest.mark.parametrize("status", [401, 403, 404, 410])
async def test_a_robots_txt_that_is_not_there_allows_everything(host: Host, status: int) -> None:
    host.robots = (status, {}, "User-agent: *\nDisallow: /")
    assert (await run(host, "/a")).ok


@pytest.mark.parametrize(
    ("status", "kind"), [(500, "500_error"), (503, "503_error"), (429, "429_error"), (0, "connection_error")]
)
async def test_a_robots_txt_that_cannot_be_read_allows_nothing(host: Host, status: int, kind: str) -> None:
    host.robots = (status, {}, "")
    report = await run(host, "/a")
    assert [failure.kind for failure in report.failures] == [kind]
    assert "/robots.txt" in report.failures[0].reason
    assert report.failures[0].reason.endswith("nothing there may be fetched until it can be read")
    assert host.pages == []


async def test_a_robots_txt_that_cannot_be_read_is_asked_for_again_as_the_error_handling_says(host: Host) -> None:
    host.robots = (503, {}, "")

    def up(path: str, times: int) -> Answer:
        return 200, {}, path

    class Once(HostHandler):
        def do_GET(self) -> None:
            super().do_GET()
            host.robots = (404, {}, "")

    host.answer = up
    host.RequestHandlerClass = Once
    handling = {"5xx_error": {"retry_count": 1, "delay_seconds": 0}}
    assert (await run(host, "/a", error_handling=handling)).ok
    assert host.paths == ["/robots.txt", "/robots.txt", "/a"]


async def test_a_redirected_robots_txt_counts_and_one_that_goes_round_does_not(host: Host) -> None:
    host.robots = (302, {"Location": "/elsewhere"}, "")
    host.answer = lambda path, times: (200, {}, "User-agent: *\nDisallow: /no")
    [refused] = (await run(host, "/no")).failures
    assert refused.kind == "robots"
    host.robots = (302, {"Location": "/robots.txt"}, "")
    assert (await run(host, "/no")).ok


async def test_a_redirect_does_not_lead_past_robots_txt(host: Host) -> None:
    host.allow("User-agent: *\nDisallow: /staff\n")
    host.answer = lambda path, times: (302, {"Location": "/staff"}, "") if path == "/a" else (200, {}, path)
    [refused] = (await run(host, "/a")).failures
    assert (refused.kind, refused.url) == ("robots", f"{host.url}/a")
    assert f"{host.url}/staff was not fetched" in refused.reason


async def test_another_brick_does_not_stand_in_for_one_that_robots_txt_refuses(host: Host) -> None:
    host.allow("User-agent: Toolcrib\nDisallow: /\n")
    other = {"tool": "requests", "config": {"user_agent": "Other/1"}}
    report = await run(host, "/a", error_handling={"error": {"retry_count": 3, "retry_with": other}})
    assert [failure.kind for failure in report.failures] == ["robots"]
    assert host.paths == ["/robots.txt"]


@pytest.mark.parametrize("client", ["requests", "curl_cffi", "scrapy"])
async def test_every_client_obeys(client: str, host: Host) -> None:
    host.allow("User-agent: *\nDisallow: /no\n")
    report = await run(host, "/no", "/yes", client=client)
    assert [(failure.kind, failure.tool) for failure in report.failures] == [("robots", client)]
    assert "/yes" in host.pages
    assert "/no" not in host.pages


async def test_a_service_is_asked_for_robots_txt_too(host: Host, scraper_service: ScraperService) -> None:
    host.allow("User-agent: *\nDisallow: /no\n")
    client = ("scraperapi", {"endpoint": scraper_service.url})
    pipeline = make_pipeline(client, secrets={"SCRAPERAPI_KEY": SCRAPER_KEY})
    report = await pipeline.run([f"{host.url}/no", f"{host.url}/yes"])
    assert [failure.kind for failure in report.failures] == ["robots"]
    assert [call["url"] for call in scraper_service.calls] == [f"{host.url}/robots.txt", f"{host.url}/yes"]


async def test_robots_txt_is_fetched_under_the_same_address_rules_and_through_the_same_proxy(
    host: Host, two_proxies: tuple[ForwardProxy, ForwardProxy]
) -> None:
    by_name = f"http://localhost:{host.server_port}"
    with fence(AddressRules(public_only=True)):
        report = await make_pipeline("httpx").run([f"{by_name}/a"])
    assert [failure.kind for failure in report.failures] == ["refused"]
    assert host.asked == []
    proxied = make_pipeline(("proxy-list", {"proxies": [two_proxies[0].url]}), "httpx")
    assert (await proxied.run([f"{host.url}/a"])).ok
    assert two_proxies[0].calls == [f"{host.url}/robots.txt", f"{host.url}/a"]


def gaps(host: Host) -> list[float]:
    times = [at for path, at, _ in host.asked if path != "/robots.txt"]
    return [later - earlier for earlier, later in itertools.pairwise(times)]


@pytest.mark.parametrize("said_by", ["file", "robots"])
async def test_there_is_a_pause_between_two_requests_to_a_host(host: Host, said_by: str) -> None:
    if said_by == "robots":
        host.allow("User-agent: *\nCrawl-delay: 0.2\n")
    delay = {"host_delay_seconds": 0.2} if said_by == "file" else {}
    assert (await run(host, "/1", "/2", "/3", **delay)).ok
    assert len(gaps(host)) == 2
    assert min(gaps(host)) > 0.1  # they set out 0.2 s apart; the way may be longer for one than for the next
    with served(Host()) as another:  # who need not wait for it
        report = await make_pipeline("httpx", host_delay_seconds=3600).run([f"{host.url}/4", f"{another.url}/4"])
    assert report.done == 2


async def test_a_host_is_asked_so_often_at_once(host: Host) -> None:
    host.stay = 0.05
    paths = [f"/{number}" for number in range(8)]
    assert (await run(host, *paths, host_concurrency=2)).ok
    assert host.most == 2
    await run(host, *paths, concurrency=8)
    assert host.most > 2


@pytest.mark.parametrize(("status", "written"), [(429, "seconds"), (503, "date")])
async def test_a_host_that_says_when_is_asked_again_then(host: Host, status: int, written: str) -> None:
    def busy_once(path: str, times: int) -> Answer:
        later = "1" if written == "seconds" else formatdate(time.time() + 1.5, usegmt=True)
        return (status, {"Retry-After": later}, "") if times == 1 else (200, {}, path)

    host.answer = busy_once
    report = await run(host, "/a")
    assert report.ok
    assert report.steps[0].retries == 1
    assert gaps(host)[0] > 0.4  # a date has no fractions of a second


async def test_while_a_host_wants_to_be_left_alone_nobody_asks_it(host: Host) -> None:
    busy = (429, {"Retry-After": "1"}, "")
    host.answer = lambda path, times: busy if path == "/1" and times == 1 else (200, {}, path)
    report = await run(host, "/1", "/2", "/3", host_concurrency=1)
    assert report.ok
    assert host.pages[0] == "/1"
    assert gaps(host)[0] > 0.9


async def test_a_host_that_asks_for_too_much_patience_is_left_alone(host: Host) -> None:
    host.answer = lambda path, times: (429, {"Retry-After": "3600"}, "")
    report = await run(host, "/1", "/2", "/3", host_concurrency=1, error_handling={"429_error": {"retry_count": 2}})
    assert len(host.pages) == 1
    assert [failure.kind for failure in report.failures] == ["429_error"] * 3
    assert "asks to be left alone for 3600 s; 'max_wait_seconds' is 60" in report.failures[0].reason


async def test_a_host_that_never_gets_ready_is_given_up(host: Host) -> None:
    host.answer = lambda path, times: (503, {"Retry-After": "0"}, "")
    report = await run(host, "/1")
    assert [failure.kind for failure in report.failures] == ["503_error"]
    assert len(host.pages) == 1 + 3
    host.asked.clear()
    assert (await run(host, "/1", max_wait_seconds=0)).failed == 1  # nobody listens to the host then
    assert len(host.pages) == 1


async def waiting(host: Host, **options: Any) -> tuple[asyncio.Task[Any], list[str]]:
    """A run that waits for as long as the host asks."""
    notes: list[str] = []

    def note(progress: Progress) -> None:
        notes.append(progress.note)

    host.answer = lambda path, times: (429, {"Retry-After": "3000"}, "")
    pipeline = make_pipeline("httpx", max_wait_seconds=5000)
    task = asyncio.create_task(pipeline.run([f"{host.url}/a"], on_progress=note, **options))
    await until(lambda: any(notes))
    return task, notes


async def test_a_run_that_waits_tells_so_and_can_be_cancelled(host: Host) -> None:
    task, notes = await waiting(host)
    assert "waiting 3000 s, as the host asks" in notes
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_a_run_that_waits_can_be_stopped_and_goes_on_later(host: Host, tmp_path: Any) -> None:
    stop, journal = asyncio.Event(), tmp_path / "journal"
    task, _ = await waiting(host, stop=stop, journal=journal)
    stop.set()
    report = await task
    assert (report.outcome, report.done, report.failed) == ("stopped", 0, 0)
    host.answer = lambda path, times: (200, {}, path)
    again = await make_pipeline("httpx", max_wait_seconds=5000).run([f"{host.url}/a"], journal=journal)
    assert (again.done, again.skipped) == (1, 0)


CLIENTS = ["httpx", "requests", "curl_cffi", "scrapy", "playwright"]


@pytest.mark.parametrize("client", CLIENTS)
async def test_headers_and_cookies_are_said_for_each_step(client: str, host: Host, chromium_path: str) -> None:
    host.answer = lambda path, times: (200, {"Set-Cookie": "given=1; Path=/"}, path)
    config = {"headers": {"X-Team": "books"}, "cookies": {"session": "s1"}}
    report = await run(host, "/1", client=(client, config), concurrency=1)
    assert report.ok
    await run(host, "/2")
    first, second = (headers for path, _, headers in host.asked if path in ("/1", "/2"))
    assert (first["x-team"], first["cookie"]) == ("books", "session=s1")
    assert "x-team" not in second
    assert "cookie" not in second


@pytest.mark.parametrize("client", CLIENTS)
async def test_a_cookie_is_sent_once_whatever_folder_a_page_is_in(client: str, host: Host, chromium_path: str) -> None:
    host.answer = lambda path, times: (200, {}, path)
    asked = ("/1", "/deep/2", "/deep/er/3")
    assert (await run(host, *asked, client=(client, {"cookies": {"session": "s1"}}), concurrency=1)).ok
    assert [headers["cookie"] for path, _, headers in host.asked if path in asked] == ["session=s1"] * 3


async def test_a_cookie_of_the_settings_stays_beside_those_of_the_host(host: Host) -> None:
    host.answer = lambda path, times: (200, {"Set-Cookie": "given=1; Path=/"}, path)
    await run(host, "/1", "/2", client=("httpx", {"cookies": {"session": "s1"}}), host_concurrency=1, concurrency=1)
    cookies = [headers.get("cookie", "") for path, _, headers in host.asked if path == "/2"]
    assert sorted(cookies[0].split("; ")) == ["given=1", "session=s1"]


async def test_a_service_hands_on_headers_and_cookies(host: Host, scraper_service: ScraperService) -> None:
    config = {"endpoint": scraper_service.url, "cookies": {"session": "s1"}}
    pipeline = make_pipeline(("scraperapi", config), obey_robots=False, secrets={"SCRAPERAPI_KEY": SCRAPER_KEY})
    assert (await pipeline.run([f"{host.url}/a"])).ok
    assert scraper_service.calls[0]["keep_headers"] == "true"


def test_wrong_manners_are_refused() -> None:
    for setting in ({"host_delay_seconds": -1}, {"host_concurrency": 0}, {"obey_robots": "perhaps"}):
        with pytest.raises(ToolValidationError, match=next(iter(setting))):
            make_pipeline("httpx", **setting)


async def test_a_brick_without_an_address_of_its_own_is_not_asked_about_robots(host: Host) -> None:
    Fetch.reset()
    assert (await Pipeline.of("fetch", bricks={"fetch": Fetch}).run([f"{host.url}/a"])).ok
    assert host.asked == []


def test_the_rule_that_is_told_is_of_our_group_and_the_longest() -> None:
    text = "User-agent: other\nDisallow: /a/b/c\n\nUser-agent: *\nDisallow: /a\nDisallow: /a/b\n"
    assert RobotsTxt(text, "Toolcrib").refusal("http://x/a/b/c") == "Disallow: /a/b"
    assert RobotsTxt(text, "other").refusal("http://x/a/b/c") == "Disallow: /a/b/c"
    assert RobotsTxt(text, "other").refusal("http://x/a") == ""


@pytest.mark.parametrize("lines", [1_900, 27_000])
def test_who_writes_many_rules_is_not_studied_for_hours(lines: int) -> None:
    """The refusal stands; which rule it was is looked for among few."""
    text = "User-agent: other\n" + "Disallow: /aaaa\n" * lines + "User-agent: Toolcrib\nDisallow: /\n"
    assert RobotsTxt(text, "Toolcrib").refusal("http://x/aaaaa") == "Disallow"


@pytest.mark.parametrize(
    ("user_agent", "name"),
    [
        ("Mozilla/5.0 (compatible; Toolcrib)", "Toolcrib"),
        ("Mozilla/5.0 (compatible; bingbot/2.0; +http://x)", "bingbot"),
        ("ShopBot/2.0 (+https://example.com)", "ShopBot"),
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36", "Toolcrib"),
        ("", "Toolcrib"),
    ],
)
def test_a_user_agent_stands_for_a_name(user_agent: str, name: str) -> None:
    assert name_of(user_agent) == name


async def test_a_host_whose_robots_txt_never_ends_is_read_in_part(host: Host) -> None:
    host.allow("User-agent: *\nDisallow: /no\n" + "# long\n" * 200_000)
    report = await run(host, "/no", client=("httpx", {"max_bytes": 600_000}))
    assert [failure.kind for failure in report.failures] == ["robots"]


async def stream(host: Host) -> AsyncIterator[str]:
    yield f"{host.url}/a"


async def test_collect_tells_what_robots_txt_refused(host: Host) -> None:
    host.allow("User-agent: *\nDisallow: /\n")
    with pytest.raises(ToolFailedError, match="'Disallow: /'"):
        await make_pipeline("httpx").collect(stream(host))

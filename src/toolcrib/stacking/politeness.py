"""How a run treats the hosts it asks: their robots.txt, so many requests at once, a pause between them, Retry-After.

robots.txt is read as RFC 9309 says: one that is not there (4xx) allows everything; one that cannot be read (5xx, or
nobody answers) allows nothing, until it can.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable
from urllib.parse import urlsplit

from toolcrib.core.backoff import seconds_asked
from toolcrib.stacking.definition import PipelineDefinition
from toolcrib.stacking.items import Item, Page, Request
from toolcrib.stacking.recovery import ROBOTS, Failure, failure_from
from toolcrib.stacking.step import Step

ASKED_AGAIN = 3
"""So often a request is tried again because the host has said when."""
_PATIENCE = frozenset({429, 503})
_EARLY = 0.001
_UNREADABLE = "nothing there may be fetched until it can be read"


class Robots(Protocol):
    """What a robots.txt says to one crawler."""

    @property
    def delay(self) -> float:
        """The seconds between two requests that it asks for."""
        ...

    def refusal(self, url: str) -> str:
        """The rule that keeps the crawler away from an address; '' if it may be fetched."""
        ...


@runtime_checkable
class Crawler(Protocol):
    """A brick that asks the host of a request itself, so that the host's robots.txt counts."""

    @property
    def robots_name(self) -> str:
        """The name by which a robots.txt speaks of it."""
        ...

    async def fetch_robots(self, request: Request, /) -> Page:
        """The answer to a request for a robots.txt, by the way that pages come too."""
        ...

    def read_robots(self, page: Page, /) -> Robots: ...


class Unwelcome(Exception):  # noqa: N818  a signal inside the engine, never seen outside
    """The host does not want the request, or not now."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.reason)
        self.failure = failure


class Stopped(Exception):  # noqa: N818  as above
    """The run ends while a request waits for its turn: the request stays open."""


@dataclass(slots=True)
class _Host:
    """What a run knows of a host. Times are those of ``time.monotonic``."""

    places: asyncio.Semaphore | None
    free_at: float = 0.0
    held_until: float = 0.0
    held_by: int = 0
    reading: asyncio.Lock = field(default_factory=asyncio.Lock)
    robots: dict[str, Robots | None] = field(default_factory=dict)
    unreadable: dict[str, tuple[Failure, float]] = field(default_factory=dict)
    """Why its robots.txt could not be read and when that was found, by the proxy that was used."""


class Politeness:
    """The manners of one run. ``stop`` ends every wait; ``tell`` hears who waits for what."""

    def __init__(self, limits: PipelineDefinition, stop: asyncio.Event, tell: Callable[[str, str, str], None]) -> None:
        self._limits = limits
        self._stop = stop
        self._tell = tell
        self._hosts: dict[str, _Host] = {}

    async def ask(self, step: Step, request: Request) -> tuple[list[Item], list[Request], float | None]:
        """What the step gives for a request when its turn has come, and the wait that the host then asks for.

        Raises Unwelcome if a robots.txt keeps the request away, or what it was redirected to, or if the host asks for
        more patience than there is. Raises Stopped if the run ends before its turn.
        """
        host = self._host(request.url)
        async with host.places or nullcontext():
            robots = await self._obeyed(step, request)
            wanted = 0.0 if robots is None else min(robots.delay, self._limits.max_wait_seconds)
            await self._wait(host, max(wanted, self._limits.host_delay_seconds), step, request.url)
            given, followed = await step(request)
        wait = None
        for page in given:
            if isinstance(page, Page):
                wait = self._heard(page)
                if page.url != request.url:
                    await self._obeyed(step, replace(request, url=page.url))
        return given, followed, wait

    def _host(self, url: str) -> _Host:
        netloc = urlsplit(url).netloc
        host = self._hosts.get(netloc)
        if host is None:
            most = self._limits.host_concurrency
            host = self._hosts[netloc] = _Host(None if most is None else asyncio.Semaphore(most))
        return host

    async def _wait(self, host: _Host, delay: float, step: Step, url: str) -> None:
        while True:
            now = time.monotonic()
            held = host.held_until - now
            if held > self._limits.max_wait_seconds > 0:
                asks = f"the host answered {host.held_by} and asks to be left alone for {math.ceil(held)} s"
                most = f"'max_wait_seconds' is {self._limits.max_wait_seconds:g}"
                raise Unwelcome(Failure(f"{host.held_by}_error", f"{url} was not fetched: {asks}; {most}"))
            begin = max(now, host.free_at, host.held_until)
            host.free_at = begin + delay
            if begin <= now:
                return
            if held > 0:
                self._tell(step.statistics.tool, url, f"waiting {math.ceil(held)} s, as the host asks")
            await self._pause(begin - now)
            if host.held_until <= time.monotonic() + _EARLY:
                return

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)
            raise Stopped

    def _heard(self, page: Page) -> float | None:
        """Note the wait that an answer asks for."""
        header = page.headers.get("retry-after", "")
        if page.status not in _PATIENCE or not header or not self._limits.max_wait_seconds:
            return None
        seconds = seconds_asked(header, time.time())
        if seconds is not None:
            host = self._host(page.url)
            host.held_until = max(host.held_until, time.monotonic() + seconds)
            host.held_by = page.status
        return seconds

    async def _obeyed(self, step: Step, request: Request) -> Robots | None:
        """The rules of the request's host, which let it through; None if there are none."""
        crawler = step.brick
        if not self._limits.obey_robots or not isinstance(crawler, Crawler):
            return None
        parts = urlsplit(request.url)
        if parts.scheme not in ("http", "https") or parts.path == "/robots.txt":
            return None
        robots = await self._robots(crawler, request, f"{parts.scheme}://{parts.netloc}/robots.txt")
        if robots is not None and (rule := robots.refusal(request.url)):
            said = f"the robots.txt of {parts.netloc} says {rule!r} to {crawler.robots_name!r}"
            raise Unwelcome(Failure(ROBOTS, f"{request.url} was not fetched: {said}"))
        return robots

    async def _robots(self, crawler: Crawler, request: Request, address: str) -> Robots | None:
        host, key = self._host(request.url), f"{crawler.robots_name} {address}"
        if key in host.robots:
            return host.robots[key]
        begun = time.monotonic()
        async with host.reading:
            if key in host.robots:
                return host.robots[key]
            failure, since = host.unreadable.get(request.proxy, (None, 0.0))
            if failure is not None and since >= begun:  # found out while this one stood in line
                raise Unwelcome(failure)
            try:
                host.robots[key] = await self._read(crawler, Request(address, proxy=request.proxy))
            except Unwelcome as unwelcome:
                host.unreadable[request.proxy] = unwelcome.failure, time.monotonic()
                raise
            return host.robots[key]

    async def _read(self, crawler: Crawler, request: Request) -> Robots | None:
        try:
            page = await crawler.fetch_robots(request)
            if page.status < 400:
                return crawler.read_robots(page)
        except Exception as error:  # a brick is anybody's code
            failure = failure_from(error)
            raise Unwelcome(replace(failure, reason=f"{failure.reason}; {_UNREADABLE}")) from error
        if page.status < 500 and page.status != 429:
            return None
        reason = f"{request.url} answered {page.status}; {_UNREADABLE}"
        raise Unwelcome(Failure(f"{page.status}_error", reason, self._heard(page)))

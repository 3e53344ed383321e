"""``playwright``: pages as a real browser shows them, after their JavaScript ran."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field, model_validator

from toolcrib import MissingDependencyError, ToolcribError, ToolTimeoutError, UnavailableError
from toolcrib.stacking import BrickConfig, Page, Request, StepContext
from toolcrib.toolsets.scraping.fetching import FetchBrick, FetchConfig, check_size, page, told_plainly
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Response, Route
    from playwright.async_api import Page as Tab

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
)
_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class Interaction(BrickConfig):
    """One thing to do on the page before it is read: click, fill, wait for an element, or scroll to its end."""

    click: str = ""
    fill: str = ""
    value: str = ""
    wait_for: str = ""
    scroll: bool = False

    @model_validator(mode="after")
    def _is_one_thing(self) -> Interaction:
        if sum(map(bool, (self.click, self.fill, self.wait_for, self.scroll))) != 1:
            raise ValueError("say exactly one of 'click', 'fill', 'wait_for' and 'scroll'")
        return self


class PlaywrightBrick(FetchBrick):
    """One browser for the run, a tab for each request; cookies are shared between tabs of the same proxy."""

    class Config(FetchConfig):
        executable: str = Field("", description="the browser's path; found by itself where it is empty")
        wait_until: Literal["commit", "domcontentloaded", "load", "networkidle"] = "load"
        wait_for: str = Field("", description="a selector that must be there before the page is read")
        interactions: tuple[Interaction, ...] = ()
        headless: bool = True
        user_agent: str = ""

    spec = scraping_spec("playwright")
    takes = Request
    gives = Page
    modules = ("playwright",)
    config: Config

    def missing(self) -> list[ToolcribError]:
        found = super().missing()
        if not found and self._executable() is None and not self._own_browsers():
            found.append(MissingDependencyError("Chromium", "playwright install chromium"))
        return found

    async def open(self) -> None:
        from playwright.async_api import async_playwright

        await super().open()
        self._driver = await async_playwright().start()
        self._making = asyncio.Lock()
        try:
            await self._launch()
        except UnavailableError:
            await self._driver.stop()
            await super().close()
            raise

    async def close(self) -> None:
        await self._browser.close()
        await self._driver.stop()
        await super().close()

    async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TooSlow

        seconds = self.config.timeout
        with told_plainly(self.spec.name, item, seconds, TooSlow, Error, self.refusals):
            tab = await (await self._context(self.way_out(item))).new_page()
            try:
                async with asyncio.timeout(seconds):
                    return [await self._fetch(tab, item)]
            finally:
                await tab.close()

    async def _fetch(self, tab: Tab, request: Request) -> Page:
        config = self.config
        tab.set_default_timeout(config.timeout * 1000)
        if headers := {**config.headers, **request.headers}:
            await tab.set_extra_http_headers(headers)
        if request.method != "GET" or request.body:
            await tab.route(request.url, lambda route: _as_asked(route, request))
        response = await tab.goto(request.url, wait_until=config.wait_until)
        if response is None:
            raise ToolTimeoutError(self.spec.name, config.timeout)
        if config.wait_for and response.ok:
            await tab.wait_for_selector(config.wait_for, state="attached")
        for interaction in config.interactions if response.ok else ():
            await _interact(tab, interaction)
        return await self._page(tab, request, response)

    async def _page(self, tab: Tab, request: Request, response: Response) -> Page:
        headers = {name.lower(): value for name, value in (await response.all_headers()).items()}
        kind = headers.get("content-type", "text/html")
        if "html" in kind or "xml" in kind:
            body = (await tab.content()).encode()
            headers["content-type"] = "text/html; charset=utf-8"  # what the browser shows is decoded already
        else:
            body = await response.body()
        check_size(self.spec.name, self.config, len(body), request.url)
        return page(self.spec.name, request, tab.url, response.status, headers, body)

    async def _launch(self) -> None:
        from playwright.async_api import Error

        self._contexts: dict[str, BrowserContext] = {}
        try:
            self._browser: Browser = await self._driver.chromium.launch(
                executable_path=self._executable(), headless=self.config.headless, args=list(FLAGS)
            )
        except Error as error:
            raise UnavailableError(f"Chromium did not start: {error.message.splitlines()[0]}") from None

    async def _context(self, proxy: str) -> BrowserContext:
        async with self._making:
            if not self._browser.is_connected():  # it crashed: the pages under way are lost, the next are not
                await self._launch()
            if proxy not in self._contexts:
                options: dict[str, Any] = {"ignore_https_errors": not self.config.verify}
                if self.config.user_agent:
                    options["user_agent"] = self.config.user_agent
                if proxy:
                    options["proxy"] = {"server": proxy, **({"bypass": "<-loopback>"} if self._guard else {})}
                self._contexts[proxy] = await self._browser.new_context(**options)
            return self._contexts[proxy]

    def _executable(self) -> str | None:
        """The browser to start; None leaves it to playwright, which may have brought its own."""
        chosen = self.config.executable or self.secrets("TOOLCRIB_CHROMIUM")
        return chosen or next((path for name in _PROGRAMS if (path := shutil.which(name))), None)

    def _own_browsers(self) -> bool:
        folder = self.secrets("PLAYWRIGHT_BROWSERS_PATH") or Path.home() / ".cache" / "ms-playwright"
        return any(Path(folder).glob("chromium*"))


async def _as_asked(route: Route, request: Request) -> None:
    """A tab can only go to an address; the method and the body are put in on the way out."""
    await route.continue_(
        method=request.method,
        post_data=request.body or None,
        headers={**await route.request.all_headers(), **request.headers},
    )


async def _interact(tab: Tab, interaction: Interaction) -> None:
    if interaction.click:
        await tab.click(interaction.click)
    elif interaction.fill:
        await tab.fill(interaction.fill, interaction.value)
    elif interaction.wait_for:
        await tab.wait_for_selector(interaction.wait_for, state="attached")
    else:
        await tab.evaluate("window.scrollTo(0, document.body.scrollHeight)")

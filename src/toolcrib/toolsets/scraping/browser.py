"""``playwright``: pages as a real browser shows them, after their JavaScript ran."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal
from urllib.parse import urljoin

from pydantic import Field, model_validator

from toolcrib import MissingDependencyError, ToolcribError, ToolTimeoutError, UnavailableError
from toolcrib.stacking import BrickConfig, Page, Request, StepContext
from toolcrib.toolsets.browser import BrowserError, Chromium, find_chromium
from toolcrib.toolsets.scraping.fetching import FetchBrick, FetchConfig
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, Response, Route
    from playwright.async_api import Page as Tab


class Interaction(BrickConfig):
    """One thing to do on the page before it is read: click, fill, wait for an element, or scroll to its end."""

    click: str = Field("", description="the selector of what to click")
    fill: str = Field("", description="the selector of a field to fill")
    value: str = Field("", description="what to fill it with")
    wait_for: str = Field("", description="a selector to wait for")
    scroll: bool = Field(False, description="go to the end of the page")

    @model_validator(mode="after")
    def _is_one_thing(self) -> Interaction:
        if sum(map(bool, (self.click, self.fill, self.wait_for, self.scroll))) != 1:
            raise ValueError("say exactly one of 'click', 'fill', 'wait_for' and 'scroll'")
        return self


class PlaywrightBrick(FetchBrick):
    """One browser for the run, a tab for each request; cookies are shared between tabs of the same proxy."""

    class Config(FetchConfig):
        executable: str = Field("", description="the browser's path; found by itself if it is empty")
        wait_until: Literal["commit", "domcontentloaded", "load", "networkidle"] = Field(
            "load", description="when a page counts as loaded"
        )
        wait_for: str = Field("", description="a selector that must be there before the page is read")
        interactions: tuple[Interaction, ...] = Field((), description="what to do on the page before it is read")
        headless: bool = Field(True, description="without a window")
        user_agent: str = Field("", description="instead of the browser's own; robots.txt is obeyed under its name")

    spec = scraping_spec("playwright")
    private = ("max_bytes", "executable")
    modules = ("playwright",)
    executable: ClassVar[str] = ""
    """The browser if the step's own settings do not name one."""
    config: Config

    @classmethod
    def using(cls, executable: str) -> type[PlaywrightBrick]:
        """The brick with another browser."""
        return type(cls.__name__, (cls,), {"executable": executable})

    def missing(self) -> list[ToolcribError]:
        found = super().missing()
        if not found and not self._own_browsers():
            try:
                find_chromium(self._path)
            except MissingDependencyError as error:
                found.append(error)
        return found

    async def open(self) -> None:
        await super().open()
        self.chromium = Chromium(self._path, headless=self.config.headless, arguments=("--no-sandbox",))
        self._contexts: dict[tuple[Browser, str], BrowserContext] = {}
        self._making = asyncio.Lock()
        try:
            await self._browser()
        except UnavailableError:
            await self.close()
            raise

    async def close(self) -> None:
        await self.chromium.close()
        await super().close()

    async def process(self, item: Request, _context: StepContext, /) -> Sequence[Page]:
        from playwright.async_api import Error
        from playwright.async_api import TimeoutError as TooSlow

        with self.told_plainly(item.url, TooSlow, Error):
            context = await self._context(await self.way_out(item))
            if self.config.cookies:
                await self._bake(context, item.url)
            tab = await context.new_page()
            try:
                async with asyncio.timeout(self.config.timeout):
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
        return self.page(request, tab.url, response.status, headers, body)

    async def _browser(self) -> Browser:
        """The browser; if it crashed, another: the pages under way are lost, the next are not."""
        try:
            return await self.chromium.browser()
        except BrowserError as error:
            raise UnavailableError(error.message) from None

    async def _context(self, proxy: str) -> BrowserContext:
        async with self._making:
            browser = await self._browser()
            if (browser, proxy) not in self._contexts:
                options: dict[str, Any] = {"ignore_https_errors": not self.config.verify}
                if self.config.user_agent:
                    options["user_agent"] = self.config.user_agent
                if proxy:
                    options["proxy"] = {"server": proxy, **({"bypass": "<-loopback>"} if self._guard else {})}
                self._contexts[browser, proxy] = await browser.new_context(**options)
            return self._contexts[browser, proxy]

    async def _bake(self, context: BrowserContext, url: str) -> None:
        """Give the context the cookies of the settings, for one more host."""
        cookies = self.config.cookies.items()
        host = urljoin(url, "/")
        await context.add_cookies([{"name": name, "value": value, "url": host} for name, value in cookies])

    @property
    def _path(self) -> str:
        return self.config.executable or self.executable

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

"""``selenium``: the system's own Chromium, driven by the ChromeDriver that belongs to it. Nothing is downloaded."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import parse_qsl, urljoin, urlsplit

from pydantic import Field

from toolcrib import MissingDependencyError, ToolcribError, ToolFailedError, ToolTimeoutError, UnavailableError
from toolcrib.stacking import Page, Request, StepContext
from toolcrib.toolsets.browser import find_chromium
from toolcrib.toolsets.scraping.browser import Interaction
from toolcrib.toolsets.scraping.drivers import Driver, DriverPool
from toolcrib.toolsets.scraping.fetching import FetchBrick, FetchConfig
from toolcrib.toolsets.scraping.specs import scraping_spec

if TYPE_CHECKING:
    from selenium.webdriver.remote.webelement import WebElement

_FORM = "application/x-www-form-urlencoded"
_SUBMIT = """
const form = document.createElement('form');
form.method = 'post'; form.action = arguments[0]; form.acceptCharset = 'utf-8';
for (const [name, value] of arguments[1]) {
  const field = document.createElement('textarea'); field.name = name; field.value = value; form.append(field);
}
document.body.append(form);
HTMLFormElement.prototype.submit.call(form);
"""
_STRATEGIES = {"domcontentloaded": "eager", "load": "normal"}


class SeleniumBrick(FetchBrick):
    """Some browsers for the run, each with cookies of its own; a page has one for itself while it is fetched."""

    class Config(FetchConfig):
        executable: str = Field("", description="the browser's path; found by itself if it is empty")
        driver: str = Field("", description="ChromeDriver's path; found by itself if it is empty")
        browsers: int = Field(2, ge=1, le=16, description="so many browsers at once, however many pages")
        wait_until: Literal["domcontentloaded", "load"] = Field("load", description="when a page counts as loaded")
        wait_for: str = Field("", description="a selector that must be there before the page is read")
        interactions: tuple[Interaction, ...] = Field((), description="what to do on the page before it is read")
        headless: bool = Field(True, description="without a window")
        user_agent: str = Field("", description="instead of the browser's own; robots.txt is obeyed under its name")

    spec = scraping_spec("selenium")
    private = ("max_bytes", "executable", "driver", "browsers")
    modules = ("selenium",)
    config: Config

    def missing(self) -> list[ToolcribError]:
        found = super().missing()
        for find in () if found else (self._chromium, self._chromedriver):
            try:
                find()
            except MissingDependencyError as error:
                found.append(error)
        return found

    async def open(self) -> None:
        await super().open()
        self._drivers = DriverPool(self._start, self.config.browsers)

    async def close(self) -> None:
        await asyncio.to_thread(self._drivers.close)
        await super().close()

    def process(self, item: Request, context: StepContext, /) -> Sequence[Page]:
        from selenium.common.exceptions import TimeoutException, WebDriverException
        from urllib3.exceptions import HTTPError

        self._check(item)
        proxy = asyncio.run(self.way_out(item))
        with (
            self._drivers.borrow(proxy, context) as driver,
            self.told_plainly(item.url, TimeoutException, UnavailableError),
        ):
            try:
                with driver.ending_in(self.config.timeout):
                    return [self._fetch(driver, item)]
            except TimeoutException:
                raise
            except (WebDriverException, HTTPError, OSError) as error:
                if driver.ended:
                    raise ToolTimeoutError(self.spec.name, self.config.timeout) from None
                raise UnavailableError(_first_line(error)) from None

    def _fetch(self, driver: Driver, request: Request) -> Page:
        web, config = driver.web, self.config
        web.execute_cdp_cmd("Network.setExtraHTTPHeaders", {"headers": {**config.headers, **request.headers}})
        for name, value in config.cookies.items():
            web.execute_cdp_cmd("Network.setCookie", {"name": name, "value": value, "url": urljoin(request.url, "/")})
        web.set_page_load_timeout(config.timeout)
        driver.events()  # what came before belongs to another page
        if request.method == "POST":
            web.get("about:blank")
            fields = parse_qsl(request.body.decode(), keep_blank_values=True)
            web.execute_script(_SUBMIT, request.url, fields)
        else:
            web.get(request.url)
        response, identity = _document(driver)
        if response["status"] < 400:
            self._interact(driver)
        headers = {str(name).lower(): str(value) for name, value in response["headers"].items()}
        if "html" in response["mimeType"] or "xml" in response["mimeType"]:
            body = web.page_source.encode("utf-8", "replace")
            headers["content-type"] = "text/html; charset=utf-8"  # what the browser shows is decoded already
        else:
            body = driver.body_of(identity)
        return self.page(request, web.current_url, int(response["status"]), headers, body)

    def _interact(self, driver: Driver) -> None:
        config = self.config
        for interaction in config.interactions:
            if interaction.click:
                self._element(driver, interaction.click).click()
            elif interaction.fill:
                field = self._element(driver, interaction.fill)
                field.clear()
                field.send_keys(interaction.value)
            elif interaction.wait_for:
                self._element(driver, interaction.wait_for)
            else:
                driver.web.execute_script("window.scrollTo(0, document.body.scrollHeight)")
        if config.wait_for:
            self._element(driver, config.wait_for)

    def _element(self, driver: Driver, selector: str) -> WebElement:
        """The first element that matches, as soon as it is there."""
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.expected_conditions import presence_of_element_located
        from selenium.webdriver.support.wait import WebDriverWait

        wait = WebDriverWait(driver.web, self.config.timeout, poll_frequency=0.05)
        return wait.until(presence_of_element_located((By.CSS_SELECTOR, selector)))

    def _check(self, request: Request) -> None:
        kind = {name.lower(): value for name, value in request.headers.items()}.get("content-type", _FORM)
        if request.method not in ("GET", "POST") or (request.method == "POST" and not kind.startswith(_FORM)):
            raise ToolFailedError(
                self.spec.name,
                f"it sends only GET and forms, not {request.method} with {kind!r}; use 'playwright'",
            )
        if urlsplit(request.proxy).username:
            raise ToolFailedError(
                self.spec.name, "it cannot tell a proxy the user name and password; use 'playwright' or 'httpx'"
            )

    def _start(self, proxy: str) -> Driver:
        arguments = [f"--proxy-server={proxy}"] if proxy else []
        if proxy and self._guard:
            arguments.append("--proxy-bypass-list=<-loopback>")
        if self.config.user_agent:
            arguments.append(f"--user-agent={self.config.user_agent}")
        if self.config.headless:
            arguments.append("--headless")
        return Driver(
            self._chromium(),
            self._chromedriver(),
            arguments,
            strategy=_STRATEGIES[self.config.wait_until],
            verify=self.config.verify,
        )

    def _chromium(self) -> str:
        return find_chromium(self.config.executable)

    def _chromedriver(self) -> str:
        named = self.config.driver or "chromedriver"
        if found := shutil.which(named):
            return found
        raise MissingDependencyError(f"ChromeDriver ({named!r})", "apt install chromium-driver, or name it in 'driver'")


def _document(driver: Driver) -> tuple[dict[str, Any], str]:
    """The answer that the page on show came with, from the browser's log, and its identity there."""
    frame = driver.web.execute_cdp_cmd("Page.getFrameTree", {})["frameTree"]["frame"]["id"]
    found: tuple[dict[str, Any], str] | None = None
    for event in driver.events():
        told = event["params"]
        if event["method"] == "Network.responseReceived" and told["type"] == "Document" and told["frameId"] == frame:
            found = told["response"], told["requestId"]
    if found is None:
        raise UnavailableError("the browser shows no page")
    return found


def _first_line(error: Exception) -> str:
    lines = str(error).removeprefix("Message: ").splitlines()
    return lines[0].strip() if lines else type(error).__name__

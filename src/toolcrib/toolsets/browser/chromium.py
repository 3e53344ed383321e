"""Chromium: found, started, and gone when it should be."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Self

from toolcrib import MissingDependencyError
from toolcrib.toolsets.browser.failures import BrowserError, playwright_error
from toolcrib.toolsets.browser.guard import BROWSERS_OWN_HOST
from toolcrib.toolsets.browser.page import ENGINE, ENGINE_NAME

if TYPE_CHECKING:
    from playwright.async_api import Browser, Playwright

_MARK = "TOOLCRIB_BROWSER"
MUST_CLOSE_SECONDS = 3.0
"""How long a browser may take to close. After that it is killed: it hangs, or something has stopped it."""

_KNOWN_PLACES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "/usr/bin/chromium",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
ARGUMENTS = (
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
    # WebRTC would otherwise send UDP past any proxy, and so past the address rules.
    "--webrtc-ip-handling-policy=disable_non_proxied_udp",
    # The browser's own questions about forms are no business of the page or of its session.
    f"--host-resolver-rules=MAP {BROWSERS_OWN_HOST} ~NOTFOUND",
)


def find_chromium(path: str = "", own: str = "") -> str:
    """The browser to start: the one named, ``TOOLCRIB_CHROMIUM``, Playwright's own, or one of the system's.

    Toolcrib's own programs name the one of the settings; the variable is for who uses these tools alone.
    """
    named = path or os.environ.get("TOOLCRIB_CHROMIUM", "")
    if named:
        found = shutil.which(named)
        if found is None:
            raise MissingDependencyError(f"the browser {named!r}", "apt install chromium, or set TOOLCRIB_CHROMIUM")
        return found
    if own and Path(own).is_file():
        return own
    for place in _KNOWN_PLACES:
        if found := shutil.which(place):
            return found
    raise MissingDependencyError("Chromium", "apt install chromium, or: playwright install chromium")


def marked(mark: str) -> dict[str, str]:
    """The environment for a browser that can be found again, with every process that it starts."""
    return {**os.environ, _MARK: mark}


def kill_marked(mark: str) -> bool:
    """End every process that was started with ``mark``, or has it in its command line; whether there was one."""
    found = False
    wanted = f"{_MARK}={mark}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (entry / "environ").read_bytes() or mark.encode() in (entry / "cmdline").read_bytes():
                os.kill(int(entry.name), signal.SIGKILL)
                found = True
    return found


class Chromium:
    """One browser process, which several sessions may share. It starts when first needed."""

    def __init__(self, path: str = "", *, headless: bool = True, arguments: tuple[str, ...] = ()) -> None:
        self._path = path
        self._headless = headless
        self._arguments = arguments
        self._playwright: Playwright | None = None
        self._browser: Browser | None = None
        self._starting = asyncio.Lock()
        self._mark = uuid.uuid4().hex

    @property
    def running(self) -> bool:
        return self._browser is not None and self._browser.is_connected()

    async def browser(self) -> Browser:
        """The running browser; a dead one is replaced."""
        async with self._starting:
            if self._browser is not None and self._browser.is_connected():
                return self._browser
            await self._stop()
            try:
                self._browser = await self._start()
            except BaseException:
                await self._stop()
                raise
            return self._browser

    async def _start(self) -> Browser:
        failed = playwright_error()
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        await self._playwright.selectors.register(ENGINE_NAME, ENGINE)
        chromium = self._playwright.chromium
        path = find_chromium(self._path, chromium.executable_path)
        is_root = hasattr(os, "geteuid") and os.geteuid() == 0
        try:
            return await chromium.launch(
                executable_path=path,
                headless=self._headless,
                args=[*ARGUMENTS, *self._arguments],
                env={**marked(self._mark)},
                chromium_sandbox=not is_root and "--no-sandbox" not in self._arguments,
            )
        except failed as error:
            reason = str(error).splitlines()[0]
            if "sandbox" in str(error):
                reason += "; allow user namespaces, or pass Chromium(arguments=('--no-sandbox',))"
            raise BrowserError(f"the browser {path!r} did not start: {reason}") from None

    async def close(self) -> None:
        async with self._starting:
            await self._stop()

    async def _stop(self) -> None:
        browser, self._browser = self._browser, None
        playwright, self._playwright = self._playwright, None
        if playwright is None:
            return
        try:
            await self._close(browser)
        finally:  # also if the close was given up: some Pythons tell a time limit as the cancellation that came before
            killer = asyncio.get_running_loop().call_later(MUST_CLOSE_SECONDS, self.kill)
            try:
                await playwright.stop()  # ends once every browser that it started has ended
            finally:
                killer.cancel()
                self.kill()

    async def _close(self, browser: Browser | None) -> None:
        try:
            async with asyncio.timeout(MUST_CLOSE_SECONDS):
                if browser is not None:
                    with contextlib.suppress(playwright_error()):  # it is dead already: that is what we want
                        await browser.close()
        except TimeoutError:
            self.kill()

    def kill(self) -> None:
        """End it without asking, with every process that it started: they all have inherited its mark."""
        kill_marked(self._mark)

    async def __aenter__(self) -> Self:
        await self.browser()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

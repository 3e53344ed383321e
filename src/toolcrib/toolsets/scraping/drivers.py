"""ChromeDriver and its Chromium: started together, and gone together when they should be."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from toolcrib import UnavailableError
from toolcrib.stacking import StepContext
from toolcrib.toolsets.browser.chromium import ARGUMENTS, MUST_CLOSE_SECONDS, kill_marked, marked

_LONGEST_START = 60.0
_PATIENCE = 0.1
_A_MOMENT = 0.02


class Driver:
    """One ChromeDriver with one browser. Whoever holds it uses it alone."""

    def __init__(
        self, browser: str, driver: str, arguments: Sequence[str] = (), *, strategy: str = "normal", verify: bool = True
    ) -> None:
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver import Chrome, ChromeOptions, ChromeService
        from urllib3.exceptions import HTTPError

        self.ended = False
        self._profile = tempfile.mkdtemp(prefix="toolcrib-chromium-")
        self._mark = Path(self._profile).name  # Chromium's helpers forget their environment, but not the profile
        options = ChromeOptions()
        options.add_experimental_option("binary", browser)
        options.add_experimental_option("prefs", {"download_restrictions": 3})
        options.set_capability("pageLoadStrategy", strategy)
        options.set_capability("acceptInsecureCerts", not verify)
        options.set_capability("unhandledPromptBehavior", "dismiss")
        options.set_capability("goog:loggingPrefs", {"performance": "ALL"})  # a page's status and headers
        for argument in (*ARGUMENTS, "--no-sandbox", f"--user-data-dir={self._profile}", *arguments):
            options.add_argument(argument)
        self._service = ChromeService(driver, env=marked(self._mark), log_output=subprocess.DEVNULL)
        try:
            with self.ending_in(_LONGEST_START):
                self.web = Chrome(options, self._service)
        except (WebDriverException, HTTPError, OSError) as error:
            self.kill()
            reason = str(error).removeprefix("Message: ").partition("\n")[0]
            raise UnavailableError(f"the browser {browser!r} did not start with {driver!r}: {reason}") from None

    @contextlib.contextmanager
    def ending_in(self, seconds: float) -> Iterator[None]:
        """End everything when the time is up, whatever it hangs in: the call under way then fails."""
        watch = threading.Timer(seconds, self.kill)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def events(self) -> list[dict[str, Any]]:
        """What the browser has logged of its requests since it was asked last."""
        entries: list[dict[str, str]] = self.web.get_log("performance")  # type: ignore[no-untyped-call]
        return [json.loads(entry["message"])["message"] for entry in entries]

    def body_of(self, identity: str) -> bytes:
        """The bytes of an answer in the browser's log."""
        got: dict[str, Any] = self.web.execute_cdp_cmd("Network.getResponseBody", {"requestId": identity})
        return base64.b64decode(got["body"]) if got["base64Encoded"] else str(got["body"]).encode()

    def quit(self) -> None:
        """End it as it wants to be ended, if it does so soon."""
        with contextlib.suppress(Exception), self.ending_in(MUST_CLOSE_SECONDS):  # whatever it says, it ends
            self.web.quit()
        self.kill()

    def kill(self) -> None:
        """End both, with every process that they started."""
        self.ended = True
        until = time.monotonic() + MUST_CLOSE_SECONDS
        while kill_marked(self._mark) and time.monotonic() < until:
            time.sleep(_A_MOMENT)  # what is dying may still write into the profile
        process = getattr(self._service, "process", None)
        if process is not None:
            process.wait()
        shutil.rmtree(self._profile, ignore_errors=True)


class DriverPool:
    """At most so many drivers, made when they are needed. A browser has one proxy for its whole life."""

    def __init__(self, start: Callable[[str], Driver], most: int) -> None:
        self._start = start
        self._places = threading.BoundedSemaphore(most)
        self._most = most
        self._lock = threading.Lock()
        self._idle: list[tuple[str, Driver]] = []
        self._busy: set[Driver] = set()
        self._closed = False

    @contextlib.contextmanager
    def borrow(self, proxy: str, context: StepContext) -> Iterator[Driver]:
        """A driver that goes out through ``proxy``. After a failure it is not used again."""
        while not self._places.acquire(timeout=_PATIENCE):
            self._check(context)
        try:
            self._check(context)
            driver = self._take(proxy) or self._make(proxy)
            try:
                yield driver
            except BaseException:
                self._drop(driver)
                raise
            else:
                self._give_back(proxy, driver)
        finally:
            self._places.release()

    def close(self) -> None:
        """End all of them; those at work too."""
        with self._lock:
            self._closed = True
            idle, self._idle = [driver for _, driver in self._idle], []
            busy = list(self._busy)
        for driver in busy:
            driver.kill()
        for driver in idle:
            driver.quit()

    def _check(self, context: StepContext) -> None:
        if self._closed or context.cancelled:
            raise UnavailableError("the run is over")

    def _take(self, proxy: str) -> Driver | None:
        with self._lock:
            for place, (used, driver) in enumerate(self._idle):
                if used == proxy:
                    del self._idle[place]
                    self._busy.add(driver)
                    return driver
            too_many = len(self._idle) + len(self._busy) >= self._most
            other = self._idle.pop(0)[1] if self._idle and too_many else None
        if other is not None:
            other.quit()
        return None

    def _make(self, proxy: str) -> Driver:
        driver = self._start(proxy)
        with self._lock:
            self._busy.add(driver)
            closed = self._closed
        if closed:
            self._drop(driver)
            raise UnavailableError("the run is over")
        return driver

    def _give_back(self, proxy: str, driver: Driver) -> None:
        with self._lock:
            self._busy.discard(driver)
            if not self._closed and not driver.ended:
                self._idle.append((proxy, driver))
                return
        driver.kill()

    def _drop(self, driver: Driver) -> None:
        with self._lock:
            self._busy.discard(driver)
        driver.kill()

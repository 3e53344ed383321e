"""The tabs of a session, and what pages do by themselves: open windows, ask in dialogs, send files, crash."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from toolcrib.toolsets.browser.failures import BrowserError, playwright_error
from toolcrib.toolsets.browser.folders import free_name

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Dialog, Download, Frame, Page, Request


@dataclass(slots=True)
class DialogAnswer:
    """What becomes of the next dialogs that a page opens."""

    action: Literal["accept", "dismiss"] = "dismiss"
    text: str = ""
    remaining: int = 0
    """How many dialogs this holds for; 0 means that none was arranged, so they are dismissed."""

    def take(self) -> tuple[str, str]:
        if not self.remaining:
            return "dismiss", ""
        self.remaining -= 1
        return self.action, self.text


@dataclass(slots=True, eq=False)
class Tab:
    id: str
    page: Page
    navigations: int = 0
    crashed: bool = False
    asked: set[Request] = field(default_factory=set)
    """What the page asked the network for and has not received in full."""
    answered_at: float = 0.0
    """When the last of its requests ended, by the monotonic clock."""
    stopping: asyncio.Task[None] | None = None

    async def stopped(self) -> None:
        """Return when a page that was given up is no longer on its way."""
        if self.stopping is not None:
            await asyncio.wait([self.stopping])
            self.stopping = None


@dataclass(slots=True, eq=False)
class Tabs:
    """Pages by a short id that stays: ``t1``, ``t2`` ... ``note`` hears what happens in them."""

    limit: int
    downloads: Path
    note: Callable[..., None]
    on_open: Callable[[Tab], Any] = lambda _: None
    answer: DialogAnswer = field(default_factory=DialogAnswer)
    current: Tab | None = None
    _tabs: dict[str, Tab] = field(default_factory=dict)
    _opened: int = 0
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set)
    _arrived: asyncio.Event = field(default_factory=asyncio.Event)

    def watch(self, context: BrowserContext) -> None:
        context.on("page", lambda page: self._arrive(page))  # noqa: PLW0108  Playwright marks the object of a method

    def __iter__(self) -> Any:
        return iter(list(self._tabs.values()))

    def __len__(self) -> int:
        return len(self._tabs)

    def get(self, wanted: str) -> Tab:
        """A tab by its id, its number, or a part of its address."""
        text = wanted.strip()
        if text in self._tabs:
            return self._tabs[text]
        if text.isdigit() and f"t{text}" in self._tabs:
            return self._tabs[f"t{text}"]
        for tab in self._tabs.values():
            if text and text.lower() in tab.page.url.lower():
                return tab
        known = ", ".join(f"{tab.id} ({tab.page.url})" for tab in self._tabs.values()) or "none"
        raise BrowserError(f"no tab is called {wanted!r}; there are {known}")

    def expect_new(self) -> None:
        """From now on :meth:`wait_for_new` waits for one more."""
        self._arrived.clear()

    async def wait_for_new(self, seconds: float) -> None:
        """Wait a little for a tab that a click is known to open: the browser tells of it after the click."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._arrived.wait(), seconds)

    async def settle(self) -> None:
        """Wait for what the tabs' events set off."""
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _arrive(self, page: Page) -> None:
        self.of(page)

    def of(self, page: Page) -> Tab:
        """The tab of a page; one that is new is taken in, or closed if there are too many."""
        for tab in self._tabs.values():
            if tab.page is page:
                return tab
        if len(self._tabs) >= self.limit:
            self.note("tab_refused", url=page.url, reason=f"the session may have {self.limit} tabs")
            self.spawn(page.close())
            return Tab("", page)
        self._opened += 1
        self._arrived.set()
        tab = Tab(f"t{self._opened}", page)
        self._tabs[tab.id] = tab
        page.on("framenavigated", lambda frame: self._navigated(tab, frame))
        page.on("request", lambda request: tab.asked.add(request))  # noqa: PLW0108  as in watch
        page.on("requestfinished", lambda request: self._answered(tab, request))
        page.on("requestfailed", lambda request: self._answered(tab, request))
        page.on("dialog", lambda dialog: self.spawn(self._answer(dialog)))
        page.on("download", lambda download: self.spawn(self._save(download)))
        page.on("crash", lambda _: self._crashed(tab))
        page.on("close", lambda _: self._closed(tab))
        if self.current is None:
            self.current = tab
        else:
            self.note("tab_opened", tab=tab.id, url=page.url)
        self.on_open(tab)
        return tab

    def _navigated(self, tab: Tab, frame: Frame) -> None:
        if frame is tab.page.main_frame:
            tab.navigations += 1

    def _answered(self, tab: Tab, request: Request) -> None:
        tab.asked.discard(request)
        tab.answered_at = time.monotonic()

    def _crashed(self, tab: Tab) -> None:
        tab.crashed = True

    def _closed(self, tab: Tab) -> None:
        self._tabs.pop(tab.id, None)
        if self.current is tab:
            self.current = next(reversed(self._tabs.values()), None)

    async def _answer(self, dialog: Dialog) -> None:
        # Leaving a page is what the caller asked for; anything else is answered as arranged, or dismissed.
        action, text = ("accept", "") if dialog.type == "beforeunload" else self.answer.take()
        self.note("dialog", type=dialog.type, message=dialog.message, answer=action, default=dialog.default_value)
        if action == "accept":
            await dialog.accept(text or dialog.default_value if dialog.type == "prompt" else None)
        else:
            await dialog.dismiss()

    async def _save(self, download: Download) -> None:
        path = free_name(self.downloads, download.suggested_filename)
        await download.save_as(path)
        self.note("download", file=path.name, url=download.url, bytes=path.stat().st_size)

    def give_up(self, tab: Tab) -> None:
        """Do not wait for a page that did not come in time: whatever is asked of the tab would wait for it too."""
        tab.stopping = self.spawn(_stop(tab.page))

    def spawn(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.ensure_future(_quiet(work))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


async def _stop(page: Page) -> None:
    devtools = await page.context.new_cdp_session(page)
    await devtools.send("Page.stopLoading")
    await devtools.detach()


async def _quiet(work: Any) -> None:
    """Answering an event of a page that is gone by now is no error."""
    with contextlib.suppress(playwright_error()):
        await work

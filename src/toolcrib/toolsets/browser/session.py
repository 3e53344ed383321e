"""BrowserSession: one person's browser, as an agent has it."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import re
import shutil
import tempfile
import uuid
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self

from toolcrib import AddressRules, SettingsError, ToolRegistry, ToolResult
from toolcrib.toolsets.browser.chromium import MUST_CLOSE_SECONDS, Chromium
from toolcrib.toolsets.browser.definition import Definition, definitions
from toolcrib.toolsets.browser.failures import (
    BrowserCrashedError,
    BrowserError,
    DomainDeniedError,
    playwright_error,
    translated,
)
from toolcrib.toolsets.browser.guard import GuardProxy
from toolcrib.toolsets.browser.link import MUST_ANSWER, PageLink
from toolcrib.toolsets.browser.recording import Replay, Script, Step, replay, step_of
from toolcrib.toolsets.browser.secrecy import Secret, Secrets
from toolcrib.toolsets.browser.tabs import Tab, Tabs
from toolcrib.toolsets.browser.video import Film

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Page

Model = Callable[[str, dict[str, Any]], Awaitable[Any]]
"""``await model(task, material)``: asked by ``navigate`` and ``extract_structured`` if they cannot tell."""
AskUser = Callable[[str], Awaitable[str]]
SearchProvider = Callable[["BrowserSession", str, int], Awaitable[list[dict[str, Any]]]]
CaptchaSolver = Callable[[dict[str, Any]], Awaitable[str]]

_log = logging.getLogger("toolcrib.browser")
_MOST_HAPPENINGS = 500
_TOLD_AT_ONCE = 20
_MUST_KEEP_SECONDS = 60.0
"""How long a session may take to write its trace and its films when it closes."""


@dataclass(eq=False, kw_only=True)
class BrowserSession:
    """Tabs, cookies, files and rules of their own. Starts when first used; leave it with ``async with`` or ``close()``.

    ``folder`` receives downloads, pictures, traces and saved states, and ``uploads`` (the same, unless given) is where
    files may be taken from; without a folder there is one that disappears with the session. ``max_steps`` is how many
    calls and happenings it remembers, the last ones, for calls that come one after the other; 0 is all of them.
    """

    name: str = "default"
    chromium: Chromium | str = ""
    headless: bool = True
    addresses: AddressRules = field(default_factory=AddressRules.in_force)
    secrets: Mapping[str, str | Secret] = field(default_factory=dict, repr=False)
    folder: Path | str = ""
    uploads: Path | str = ""
    state: Path | str = ""
    trace: bool = False
    video: bool = False
    viewport: tuple[int, int] = (1280, 800)
    locale: str = ""
    user_agent: str = ""
    max_tabs: int = 20
    max_steps: int = 0
    service_workers: Literal["allow", "block"] = "block"
    model: Model | None = None
    ask_user: AskUser | None = None
    search: SearchProvider | str = ""
    captcha_solver: CaptchaSolver | None = None

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[\w.\- ]{1,64}", self.name):
            raise SettingsError(
                f"the session name {self.name!r} is not one; use up to 64 letters, digits, '-', '_' and '.'"
            )
        given = self.chromium
        self._own_chromium = not isinstance(given, Chromium)
        self._browser = given if isinstance(given, Chromium) else Chromium(given, headless=self.headless)
        self.files = Path(self.folder or f"{tempfile.gettempdir()}/toolcrib-browser-{uuid.uuid4().hex}")
        self.upload_folder = Path(self.uploads or self.files)
        self.hidden = Secrets(self.secrets)
        self.happenings: list[dict[str, Any]] = []
        self._told = 0
        self.steps: list[Step] = []
        self.films: dict[str, Film] = {}
        self.notes: list[dict[str, str]] = []
        self.mocks: dict[str, int] = {}
        self.blocker: Callable[[Any], Awaitable[None]] | None = None
        self.task: dict[str, Any] = {}
        self.tabs = self._new_tabs()
        self._context: BrowserContext | None = None
        self._guard: GuardProxy | None = None
        self._starting = asyncio.Lock()
        self._link = PageLink()
        self._closed = False

    # Life

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def start(self) -> None:
        """Start the browser if it is not running, with one empty tab."""
        async with self._starting:
            if self._closed:
                raise BrowserError(f"the session {self.name!r} is closed; open a new one")
            if self._context is not None:
                return
            try:
                await self._open()
            except BaseException:
                await self._drop()
                raise

    async def _open(self) -> None:
        self.files.mkdir(mode=0o700, parents=True, exist_ok=True)
        browser = await self._browser.browser()
        if self.addresses:
            self._guard = GuardProxy(self.addresses, lambda url, reason: self.note("refused", url=url, reason=reason))
            await self._guard.start()
        width, height = self.viewport
        self._context = context = await browser.new_context(
            viewport={"width": width, "height": height},
            locale=self.locale or None,
            user_agent=self.user_agent or None,
            storage_state=self.state or None,
            service_workers=self.service_workers,
            proxy={"server": self._guard.address, "bypass": "<-loopback>"} if self._guard else None,
        )
        self.tabs.watch(context)
        if self.trace:
            await context.tracing.start(screenshots=True, snapshots=True)
        self.tabs.current = self.tabs.of(await context.new_page())

    async def close(self) -> None:
        """End it: the tabs, the browser if it is the session's own, and the temporary folder. Never raises twice."""
        self._closed = True
        try:
            await self._drop()
        finally:
            if self._own_chromium:
                await self._browser.close()
            if not self.folder:
                shutil.rmtree(self.files, ignore_errors=True)

    async def _drop(self) -> None:
        context, self._context = self._context, None
        guard, self._guard = self._guard, None
        if context is not None:
            try:
                async with asyncio.timeout(_MUST_KEEP_SECONDS if self.trace or self.video else MUST_CLOSE_SECONDS):
                    with contextlib.suppress(playwright_error()):  # the browser is dead: there is nothing left to close
                        await self._keep_films()
                        await self._keep_trace(context)
                        await context.close()
            except TimeoutError:
                if self._own_chromium:
                    self._browser.kill()
        await self.tabs.settle()
        if guard is not None:
            await guard.close()
        self.tabs = self._new_tabs()
        self._link.forget()
        self.mocks.clear()
        self.blocker = None

    def _new_tabs(self) -> Tabs:
        return Tabs(self.max_tabs, self.files, self.note, self._film)

    async def _keep_trace(self, context: BrowserContext) -> None:
        if self.trace:
            with tempfile.TemporaryDirectory(prefix="toolcrib-trace-") as private:
                raw = Path(private, "trace.zip")
                await context.tracing.stop(path=raw)
                self.hidden.redact_archive(raw, self.files / f"trace-{self.name}.zip")

    def _film(self, tab: Tab) -> None:
        if self.video:
            film = self.films[tab.id] = Film(self.files / f"video-{self.name}-{tab.id}.avi")
            self.tabs.spawn(tab.page.screencast.start(on_frame=film.add))

    async def _keep_films(self) -> None:
        for tab in self.tabs:
            if tab.id in self.films:
                await tab.page.screencast.stop()
        for film in self.films.values():
            film.close()
        self.films.clear()

    def isolated(self, name: str, **changes: Any) -> BrowserSession:
        """Another session in the same browser that shares nothing else: not cookies, not storage, not tabs."""
        return dataclasses.replace(self, name=name, chromium=self._browser, **{"state": "", **changes})

    # What tools stand on

    @property
    def context(self) -> BrowserContext:
        if self._context is None:
            raise BrowserError("the session has not been started")
        return self._context

    @property
    def tab(self) -> Tab:
        if self.tabs.current is None:
            raise BrowserError("no tab is open")
        return self.tabs.current

    @property
    def page(self) -> Page:
        return self.tab.page

    @property
    def url(self) -> str:
        return self.tabs.current.page.url if self.tabs.current is not None else ""

    @property
    def running(self) -> bool:
        """Whether its browser is there, and alive."""
        return self._context is not None and self._browser.running

    def about(self) -> dict[str, Any]:
        """Where it is, for whom it belongs to."""
        return {"url": self.hidden.redact(self.url), "tabs": len(self.tabs)}

    async def ready(self) -> None:
        """Have a living page, or tell once that it died."""
        if self._context is None:
            await self.start()
            return
        if not self._browser.running:
            await self._drop()
            raise BrowserCrashedError(
                "the browser died since the last call, with its tabs and logins; the next call starts a new one"
            )
        tab = self.tabs.current
        if tab is None:
            self.tabs.current = self.tabs.of(await self.context.new_page())
        elif tab.crashed:
            await tab.page.close()
            raise BrowserCrashedError(f"the tab {tab.id} crashed; the next call goes on in another")
        else:
            await tab.stopped()

    async def ask(self, frame: Frame, function: str, argument: Any, missing: Any = MUST_ANSWER) -> Any:
        """Call our code in a page. With ``missing``, that is the answer of a frame that is gone or about to be."""
        return await self._link.ask(frame, function, argument, missing)

    def frames_for(self, target: str) -> list[Frame]:
        """Where to look for an element: the frame that gave the handle out, or the page and then its frames."""
        frames = self.page.frames
        owner = self._link.owner(target) if len(frames) > 1 else None
        if owner is None:
            return frames
        return [owner] if owner in frames else frames[:1]

    def check_url(self, url: str) -> str:
        """The address to open, or DomainDeniedError: never a file of this machine or a page of the browser's own."""
        full = url.strip()
        scheme, colon, rest = full.partition(":")
        if not colon or (rest[:1].isdigit() and not rest.startswith("//")) or "." in scheme:
            full = f"https://{full}" if not full.startswith(("localhost", "127.")) else f"http://{full}"
        scheme = full.partition(":")[0].lower()
        if scheme not in ("http", "https", "data") and full != "about:blank":
            raise DomainDeniedError(f"{url!r} is not a web address; give one that begins with http:// or https://")
        if scheme.startswith("http") and (refusal := self.addresses.refusal_of_url(full)):
            raise DomainDeniedError(f"{full} was not opened: {refusal}", url=full)
        return full

    def note(self, kind: str, **details: Any) -> None:
        """Remember something that happened by itself, for the call under way to tell; a page without end is cut off."""
        if len(self.happenings) - self._told < _MOST_HAPPENINGS:
            self.happenings.append({"kind": kind, **details})

    def refusals_since(self, mark: int) -> list[dict[str, Any]]:
        return [event for event in self.happenings[mark:] if event["kind"] == "refused"]

    # Calls

    async def call(self, definition: Definition, arguments: dict[str, Any]) -> ToolResult:
        """Run a tool. What goes wrong is told in the result, secrets are taken out of it, the call is remembered."""
        try:
            if definition.fields["requires_page"]:
                await self.ready()
            value = await definition.function(self, **arguments)
            result = value if isinstance(value, ToolResult) else ToolResult.success_result(value)
        except BrowserError as error:
            result = error.as_result()
        except playwright_error() as error:
            died = f"{definition.name}: the browser died during the call; the next call says so and starts anew"
            told = translated(error, definition.name) if self._browser.running else BrowserCrashedError(died)
            result = told.as_result()
        except asyncio.CancelledError:
            self._remember(definition, arguments, ToolResult.failure_result("cancelled", "timeout"))
            raise
        if events := self.happenings[self._told :]:
            result.metadata["happened"] = events[:_TOLD_AT_ONCE]
            if len(events) > _TOLD_AT_ONCE:
                result.metadata["happened_more"] = len(events) - _TOLD_AT_ONCE
            self._told = len(self.happenings)
        result = self.hidden.redact_result(result)
        self._remember(definition, arguments, result)
        return result

    def _remember(self, definition: Definition, arguments: dict[str, Any], result: ToolResult) -> None:
        category = str(definition.fields["category"])
        url = str(self.hidden.redact(self.url))
        told = {name: self.hidden.redact(value) for name, value in arguments.items()}
        self.steps.append(step_of(definition.name, category, told, result, url))
        if self.max_steps:
            past = max(0, len(self.happenings) - self.max_steps)
            del self.steps[: -self.max_steps], self.happenings[:past]
            self._told = max(0, self._told - past)
        _log.debug("%s %s: %s", self.name, definition.name, result.error_code or "done")

    def script(self) -> Script:
        """The calls so far, to be saved and replayed."""
        return Script(tuple(self.steps))

    async def replay(self, script: Script, *, go_on: bool = False, **options: Any) -> Replay:
        """Play a script in this session, without a model. ``options`` are ToolRegistry's: danger needs approval."""
        registry = ToolRegistry((definition.bind(self.call) for definition in definitions().values()), **options)
        return await replay(script, registry.execute, lambda: self.url, go_on=go_on)

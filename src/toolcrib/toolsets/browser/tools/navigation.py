"""Going places."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from toolcrib import SafetyLevel
from toolcrib.toolsets.browser.definition import Data, browser_tool
from toolcrib.toolsets.browser.failures import (
    BrowserError,
    DomainDeniedError,
    ElementNotFoundError,
    NavigationError,
    is_late,
    playwright_error,
)
from toolcrib.toolsets.browser.guard import refusal_in
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.tabs import Tab
from toolcrib.toolsets.browser.targeting import Match, acting

if TYPE_CHECKING:
    from playwright.async_api import Response

tool = partial(browser_tool, category="navigation")
opens = partial(tool, safety_level=SafetyLevel.LOW_RISK, timeout_seconds=60)

WaitUntil = Annotated[
    Literal["load", "domcontentloaded", "networkidle", "commit"], "What to wait for before the page counts as open"
]
LoadTimeout = Annotated[float, "How long the page may take, in milliseconds"]
TabName = Annotated[str, "A tab: its id (such as t2), its number, or a part of its address"]

_ADDRESS = re.compile(
    r"(?:https?://|www\.)\S+|\b[a-z0-9-]+(?:\.[a-z0-9-]+)*\.(?:com|org|net|io|dev|gov|edu|eu|uk|de)\b\S*", re.IGNORECASE
)
_MOVES = {"back": "go_back", "forward": "go_forward", "reload": "reload", "refresh": "reload"}
_CONFIDENT = 0.6
_PLACES = frozenset({"link", "button", "tab", "menuitem", "option", "treeitem", "a"})


async def opened(session: BrowserSession, opening: Awaitable[Response | None]) -> Data:
    """What came of opening an address; raises if the address rules refused it, also at the end of a redirect."""
    mark, tab = len(session.happenings), session.tab
    begun = tab.navigations
    try:
        response = await opening
    except asyncio.CancelledError:
        if tab.navigations == begun:
            session.tabs.give_up(tab)
        raise
    except playwright_error() as error:
        if tab.navigations == begun and is_late(error):
            session.tabs.give_up(tab)
        if refused := session.refusals_since(mark):
            first = refused[0]
            raise DomainDeniedError(f"{first['url']} was not opened: {first['reason']}", **first) from None
        if "Download is starting" in str(error):
            return {"url": session.page.url, "title": await session.page.title(), "status": None, "download": True}
        raise
    refusal = refusal_in(response.headers) if response is not None else None
    if response is not None and refusal is not None:
        raise DomainDeniedError(f"{response.url} was not opened: {refusal}", url=response.url)
    page = session.page
    return {"url": page.url, "title": await page.title(), "status": response.status if response else None}


@dataclass(slots=True)
class Journey:
    """Where an action leads the page; ``action`` says what it is, in a refusal."""

    tab: Tab
    start: int
    action: str

    @property
    def navigated(self) -> bool:
        return self.tab.navigations > self.start


@asynccontextmanager
async def leading(session: BrowserSession, action: str = "") -> AsyncIterator[Journey]:
    """Watch an action: wait for the page that it opens, and raise if the address rules refuse that page."""
    mark, journey = len(session.happenings), Journey(session.tab, session.tab.navigations, action)
    yield journey
    if journey.navigated and not journey.tab.page.is_closed():
        await journey.tab.page.wait_for_load_state("domcontentloaded")
    if refused := session.refusals_since(mark):
        url = session.page.url
        if url.startswith("chrome-error:") or (url.startswith("http") and session.addresses.refusal_of_url(url)):
            first = refused[0]
            raise DomainDeniedError(f"{journey.action} led to {first['url']}: {first['reason']}", **first)


@opens(
    'goto(url="https://example.com")',
    'goto(url="https://example.com", wait_until="networkidle")',
    returns="The address and title that opened, after redirects, and the HTTP status",
)
async def goto(
    session: BrowserSession,
    url: Annotated[str, "The address to open; without a scheme it is https"],
    wait_until: WaitUntil = "load",
    timeout: LoadTimeout = 30000,
) -> Data:
    """Open an address in the current tab."""
    address = session.check_url(url)
    return await opened(session, session.page.goto(address, wait_until=wait_until, timeout=timeout))


@opens(
    'navigate(instruction="open the pricing page")',
    'navigate(instruction="go to example.com/docs")',
    returns="What was followed (a link, a button or an address), how sure that was, and the page it led to",
)
async def navigate(
    session: BrowserSession,
    instruction: Annotated[str, "Where to go, in plain words: 'open the contact page', 'next page', 'go back'"],
    timeout: LoadTimeout = 30000,
) -> Data:
    """Follow the link, button or address that the words mean on this page."""
    if address := _ADDRESS.search(instruction):
        return {"followed": address.group(), "by": "address", **await goto(session, address.group().rstrip(".,;"))}
    page, words = session.page, instruction.lower().split()
    if len(words) <= 3 and (move := next((_MOVES[word] for word in words if word in _MOVES), "")):
        return {"followed": move, "by": "history", **await opened(session, getattr(page, move)(timeout=timeout))}
    choices = await _places(session, instruction)
    match = choices[0] if choices and choices[0].found["score"] >= _CONFIDENT else None
    by = "words"
    if session.model is not None and (match is None or _undecided(choices)):
        answer = await _model_choice(session, instruction, choices)
        if isinstance(answer, str):
            return {"followed": answer, "by": "model", **await goto(session, answer)}
        match, by = answer or match, "model" if answer else by
    if match is None:
        nearest = [f"{choice.handle} {choice}" for choice in choices[:5]]
        instead = f"; the nearest are: {'; '.join(nearest)}" if nearest else ""
        raise ElementNotFoundError(
            f"nothing on {page.url} leads to {instruction!r}{instead}", looked_for=instruction, nearest=nearest
        )
    async with leading(session, f"following the {match}") as journey:
        async with acting(session, "clicked", match):
            await match.locator.click(timeout=timeout)  # it ends when the page begins to come
        await page.wait_for_load_state("domcontentloaded", timeout=timeout)
    return {
        "followed": str(match),
        "by": by,
        "matched": match.as_dict(),
        "navigated": journey.navigated,
        "url": page.url,
        "title": await page.title(),
    }


async def _places(session: BrowserSession, instruction: str) -> list[Match]:
    question = {"target": instruction, "purpose": "click", "limit": 12}
    found = [
        Match(frame, {"by": "words", "matches": 1, **candidate})
        for frame in session.page.frames
        for candidate in await session.ask(frame, "candidates", question, missing=[])
    ]
    places = [match for match in found if match.found["role"] in _PLACES and match.visible]
    return sorted(places, key=lambda match: -match.found["score"])


def _undecided(choices: list[Match]) -> bool:
    return len(choices) > 1 and choices[0].found["score"] - choices[1].found["score"] < 0.02


async def _model_choice(session: BrowserSession, instruction: str, choices: list[Match]) -> Match | str | None:
    assert session.model is not None
    question = {"target": "", "contains": "", "limit": 100}
    links = (await session.ask(session.page.main_frame, "links", question, missing={"links": []}))["links"]
    material = {
        "instruction": instruction,
        "url": session.page.url,
        "candidates": [match.as_dict() for match in choices],
        "links": links,
        "answer": "an object with 'handle' (of a candidate or link) or 'url'",
    }
    answer = await session.model("navigate", session.hidden.redact(material))
    if not isinstance(answer, dict):
        return None
    if isinstance(answer.get("url"), str) and answer["url"]:
        return str(answer["url"])
    handle = str(answer.get("handle", ""))
    for match in choices:
        if match.handle == handle:
            return match
    return next((str(link["url"]) for link in links if link["handle"] == handle), None)


async def _move(session: BrowserSession, move: str, where: str, timeout: float) -> dict[str, Any]:
    tab, url = session.tab, session.page.url
    before = tab.navigations
    result = await opened(session, getattr(tab.page, move)(timeout=timeout))
    if tab.navigations == before and tab.page.url == url:
        raise NavigationError(f"there is no page to go {where} to from {url}", retryable=False)
    return {"from": url, **result}


@opens("back()", returns="The address left and the address and title returned to")
async def back(session: BrowserSession, timeout: LoadTimeout = 30000) -> Data:
    """Go back one page in the tab's history."""
    return await _move(session, "go_back", "back", timeout)


@opens("forward()", returns="The address left and the address and title gone to")
async def forward(session: BrowserSession, timeout: LoadTimeout = 30000) -> Data:
    """Go forward one page in the tab's history."""
    return await _move(session, "go_forward", "forward", timeout)


@opens("refresh()", returns="The address, title and HTTP status after the reload")
async def refresh(session: BrowserSession, timeout: LoadTimeout = 30000) -> Data:
    """Load the page anew."""
    return await opened(session, session.page.reload(timeout=timeout))


@opens(
    "new_tab()",
    'new_tab(url="https://example.com")',
    returns="The id of the new tab, which is the current one now, and what it shows",
)
async def new_tab(
    session: BrowserSession, url: Annotated[str, "An address to open in it; empty for a blank tab"] = ""
) -> Data:
    """Open a tab and go on in it."""
    address = session.check_url(url) if url else ""
    if len(session.tabs) >= session.max_tabs:
        raise BrowserError(f"the session may have {session.max_tabs} tabs and has them; close one first")
    session.tabs.current = session.tabs.of(await session.context.new_page())
    shown = {"url": "about:blank", "title": "", "status": None}
    if address:
        shown = await opened(session, session.page.goto(address))
    return {"tab": session.tab.id, **shown}


@tool(
    'switch_tab(tab="t2")',
    'switch_tab(tab="example.com")',
    returns="The tab that is current now, its address and title",
)
async def switch_tab(session: BrowserSession, tab: TabName) -> Data:
    """Go on in another tab."""
    session.tabs.current = chosen = session.tabs.get(tab)
    await chosen.page.bring_to_front()
    return {"tab": chosen.id, "url": chosen.page.url, "title": await chosen.page.title()}


@tool(
    "close_tab()",
    'close_tab(tab="t2")',
    returns="The tab that was closed, the one that is current now, and how many are left",
    safety_level=SafetyLevel.LOW_RISK,
)
async def close_tab(session: BrowserSession, tab: Annotated[str, "Which; empty for the current one"] = "") -> Data:
    """Close a tab."""
    closing = session.tabs.get(tab) if tab else session.tab
    url = closing.page.url
    await closing.page.close()
    current = session.tabs.current
    return {"closed": closing.id, "url": url, "tab": current.id if current else "", "left": len(session.tabs)}


@tool("list_tabs()", returns="Every open tab with its id, address and title, and which one is current")
async def list_tabs(session: BrowserSession) -> Data:
    """List the open tabs."""
    tabs = [
        {"tab": tab.id, "url": tab.page.url, "title": await tab.page.title(), "current": tab is session.tabs.current}
        for tab in session.tabs
    ]
    return {"tabs": tabs}

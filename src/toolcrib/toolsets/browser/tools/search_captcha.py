"""Searching the web, and what stands in the way of programs on it."""

from __future__ import annotations

import asyncio
import json
import time
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote_plus

from toolcrib import SafetyLevel
from toolcrib.toolsets.browser.definition import Data, browser_tool
from toolcrib.toolsets.browser.failures import BrowserError, ElementNotFoundError, NotConfiguredError, PageTimeoutError
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.tools.navigation import opened

if TYPE_CHECKING:
    from playwright.async_api import Page

tool = partial(browser_tool, category="search")

_PAUSE = 0.25


@tool(
    'search(query="tool registries for agents", limit=5)',
    returns="The hits in the provider's order: title, url and snippet",
    timeout_seconds=60,
    required_config=("search",),
)
async def search(
    session: BrowserSession,
    query: Annotated[str, "What to search for"],
    limit: Annotated[int, "How many hits at most"] = 10,
) -> Data:
    """Search the web with the configured search engine, without leaving the page."""
    provider = session.search
    if not provider:
        raise NotConfiguredError(
            "no search engine is configured; give the session search='https://.../search?q={query}' or a function"
        )
    hits = await (
        _page_search(session, provider, query) if isinstance(provider, str) else provider(session, query, limit)
    )
    return {"query": query, "results": hits[:limit], "count": len(hits[:limit])}


async def _page_search(session: BrowserSession, template: str, query: str) -> list[dict[str, Any]]:
    """Ask an engine in a tab of its own: one that answers JSON (as SearXNG does), or any page of results."""
    if "{query}" not in template:
        raise NotConfiguredError(f"the search address {template!r} has no {{query}} in it")
    address = session.check_url(template.replace("{query}", quote_plus(query)))
    before, mark = session.tabs.current, len(session.happenings)
    tab = session.tabs.current = session.tabs.of(await session.context.new_page())
    try:
        await opened(session, tab.page.goto(address, wait_until="domcontentloaded"))
        return await _hits(session, tab.page)
    finally:
        session.tabs.current = before
        await tab.page.close()
        session.happenings[mark:] = [
            event for event in session.happenings[mark:] if (event["kind"], event.get("tab")) != ("tab_opened", tab.id)
        ]


async def _hits(session: BrowserSession, page: Page) -> list[dict[str, Any]]:
    kind = await page.evaluate("() => document.contentType")
    if "json" in kind:
        try:
            answer = json.loads(await page.evaluate("() => document.body.innerText"))
            return [
                {
                    "title": hit.get("title", ""),
                    "url": hit.get("url") or hit.get("link", ""),
                    "snippet": hit.get("content") or hit.get("snippet", ""),
                }
                for hit in (answer["results"] if isinstance(answer, dict) else answer)
            ]
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BrowserError("the search engine's answer is not a list of results") from None
    hits: list[dict[str, Any]] = await session.ask(page.main_frame, "results", {})
    return hits


async def _captchas(session: BrowserSession) -> tuple[list[Data], list[Data]]:
    """Those of the page, and those of them that wait for an answer."""
    found: list[Data] = await session.ask(session.page.main_frame, "captchas", {}, missing=[])
    return found, [captcha for captcha in found if not captcha["solved"]]


@tool(
    "detect_captcha()",
    returns="Whether there is a captcha, and for each its kind, site key, handle and whether it is solved",
)
async def detect_captcha(session: BrowserSession) -> Data:
    """Check the page for a captcha."""
    found, waiting = await _captchas(session)
    return {"present": bool(waiting), "captchas": found, "url": session.page.url}


@tool(
    "wait_for_captcha_resolved(timeout=120000)",
    returns="Whether there was one, and how long it took until it was solved or gone",
    timeout_seconds=610,
)
async def wait_for_captcha_resolved(
    session: BrowserSession, timeout: Annotated[float, "How long to wait at most, in milliseconds"] = 60000
) -> Data:
    """Wait until the captcha of the page is solved, by a person or by the page itself."""
    start, was_there = time.monotonic(), False
    while True:
        _, waiting = await _captchas(session)
        elapsed = round((time.monotonic() - start) * 1000)
        if not waiting:
            return {"resolved": True, "was_present": was_there, "waited_ms": elapsed}
        was_there = True
        if elapsed >= timeout:
            kinds = ", ".join(captcha["kind"] for captcha in waiting)
            raise PageTimeoutError(
                f"the captcha ({kinds}) was not solved within {timeout / 1000:g} s", captchas=waiting
            )
        await asyncio.sleep(_PAUSE)


@tool(
    "solve_captcha()",
    returns="The kind of captcha, and that the solver's answer was filled in",
    safety_level=SafetyLevel.HIGH_RISK,
    timeout_seconds=300,
    required_config=("captcha_solver",),
)
async def solve_captcha(session: BrowserSession) -> Data:
    """Have the configured solver answer the page's captcha, and fill its answer in."""
    if session.captcha_solver is None:
        raise NotConfiguredError(
            "no captcha solver is configured; give the session captcha_solver=..., or ask the user"
        )
    _, waiting = await _captchas(session)
    if not waiting:
        raise ElementNotFoundError(
            f"{session.page.url} has no captcha to solve", looked_for="a captcha", retryable=False
        )
    captcha = waiting[0]
    if not captcha["answer"]:
        raise BrowserError(f"the {captcha['kind']} captcha has no field for an answer; a person has to solve it")
    answer = await session.captcha_solver({**captcha, "url": session.page.url})
    if not answer:
        raise BrowserError(f"the solver has no answer to the {captcha['kind']} captcha", retryable=True)
    filling = {"handle": captcha["answer"], "answer": str(answer)}
    await session.ask(session.page.main_frame, "answerCaptcha", filling)
    return {"kind": captcha["kind"], "filled": True, "handle": captcha["answer"]}

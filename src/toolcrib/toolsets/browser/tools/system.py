"""Waiting, asking, and the end of a task."""

from __future__ import annotations

import asyncio
import re
import time
from functools import partial
from typing import Annotated, Any, Literal

import re2

from toolcrib import ToolResult
from toolcrib.toolsets.browser.definition import Data, browser_tool
from toolcrib.toolsets.browser.failures import BadInputError, ElementNotFoundError, NotConfiguredError, PageTimeoutError
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.targeting import Match, find, look, told
from toolcrib.toolsets.browser.tools.extraction import whole_text

tool = partial(browser_tool, category="system")
waits = partial(tool, timeout_seconds=130)
ends = partial(tool, requires_page=False, is_terminal=True)

LONGEST_WAIT = 30.0
Within = Annotated[float, "How long to wait at most, in milliseconds"]
_PAUSE = 0.1


def _since(start: float) -> int:
    return round((time.monotonic() - start) * 1000)


@tool(
    "wait(seconds=2)",
    'wait(seconds=10, selector="Results table")',
    returns="How long it waited, whether that was shortened, and the element if one was waited for",
    requires_page=False,
    timeout_seconds=40,
)
async def wait(
    session: BrowserSession,
    seconds: Annotated[float, "How long; more than 30 is taken for 30"] = 1.0,
    selector: Annotated[str, "An element to wait for, so that it may be shorter"] = "",
) -> Data:
    """Wait for a while, or until an element is there."""
    start, length = time.monotonic(), min(max(seconds, 0.0), LONGEST_WAIT)
    match = None
    if selector:
        await session.ready()
        match = await find(session, selector, "any", length * 1000)
    else:
        await asyncio.sleep(length)
    return {"waited_ms": _since(start), "clamped": seconds > LONGEST_WAIT, "matched": told(match)}


@waits(
    'wait_for_selector(selector="#results")',
    'wait_for_selector(selector=".spinner", state="hidden")',
    returns="How long it took, and the element",
)
async def wait_for_selector(
    session: BrowserSession,
    selector: Annotated[str, "The element: a CSS selector, a handle, or plain words"],
    state: Annotated[Literal["visible", "hidden", "attached", "detached"], "What to wait for"] = "visible",
    timeout: Within = 10000,
) -> Data:
    """Wait until an element is there and visible, or until it is gone."""
    start = time.monotonic()
    while True:
        match = await _present(session, selector)
        shown = match is not None and match.visible
        if {"visible": shown, "hidden": not shown, "attached": match is not None, "detached": match is None}[state]:
            return {"state": state, "waited_ms": _since(start), "matched": told(match)}
        if _since(start) >= timeout:
            break
        await asyncio.sleep(_PAUSE)
    if match is None:
        match = await find(session, selector, "any", 0)
    raise PageTimeoutError(f"the {match} did not become {state} within {timeout / 1000:g} s", matched=match.as_dict())


async def _present(session: BrowserSession, selector: str) -> Match | None:
    try:
        return await look(session, selector, "any")
    except ElementNotFoundError:
        return None  # a handle whose element is gone


@waits('wait_for_text(text="Order placed")', 'wait_for_text(text="Loading", gone=True)', returns="How long it took")
async def wait_for_text(
    session: BrowserSession,
    text: Annotated[str, "The text, upper and lower case alike"],
    gone: Annotated[bool, "Wait until it is no longer there"] = False,
    timeout: Within = 10000,
) -> Data:
    """Wait until the page shows a text, or until it no longer does."""
    start, wanted = time.monotonic(), " ".join(text.split()).casefold()
    while True:
        shown = await whole_text(session)
        if (wanted in " ".join(shown.split()).casefold()) != gone:
            return {"text": text, "gone": gone, "waited_ms": _since(start)}
        if _since(start) >= timeout:
            break
        await asyncio.sleep(_PAUSE)
    state = "still there" if gone else "not there"
    raise PageTimeoutError(
        f"{text!r} was {state} after {timeout / 1000:g} s on {session.page.url}, which says {shown.strip()[:200]!r}",
        looked_for=text,
    )


@waits(
    'wait_for_url(url="**/done")',
    'wait_for_url(url="/order/")',
    returns="The address that was reached, and how long it took",
)
async def wait_for_url(
    session: BrowserSession,
    url: Annotated[str, "A part of the address, a pattern with *, or /a regular expression/"],
    timeout: Within = 10000,
) -> Data:
    """Wait until the address is what is wanted."""
    start, pattern = time.monotonic(), _url_pattern(url)
    while not pattern.search(session.page.url):
        if _since(start) >= timeout:
            raise PageTimeoutError(
                f"the address did not become {url!r} within {timeout / 1000:g} s; it is {session.page.url}",
                looked_for=url,
            )
        await asyncio.sleep(_PAUSE / 2)
    return {"url": session.page.url, "waited_ms": _since(start)}


def _url_pattern(text: str) -> Any:
    """Matched by RE2: a model wrote it, and no pattern may hold up the event loop."""
    if len(text) > 2 and text.startswith("/") and text.endswith("/") and re.search(r"[\\^$+?()\[\]{}|]", text):
        pattern = text[1:-1]
    elif "*" not in text:
        pattern = re2.escape(text)
    else:
        parts = re.split(r"(\*\*?)", text)
        body = "".join(".*" if part == "**" else "[^/]*" if part == "*" else re2.escape(part) for part in parts)
        pattern = f"^{body}$"
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        raise BadInputError(f"{text!r} is not a regular expression: {error.args[0].decode()}") from None


@waits("wait_for_network_idle()", returns="How long it took")
async def wait_for_network_idle(session: BrowserSession, timeout: Within = 10000) -> Data:
    """Wait until the page has asked the network for nothing for half a second."""
    from playwright.async_api import TimeoutError as PlaywrightTimeoutError

    start, tab = time.monotonic(), session.tab
    try:
        await tab.page.wait_for_load_state("networkidle", timeout=timeout)
        while tab.asked or time.monotonic() - max(start, tab.answered_at) < 0.5:
            if _since(start) >= timeout:
                raise PlaywrightTimeoutError("")
            await asyncio.sleep(_PAUSE / 2)
    except PlaywrightTimeoutError:
        busy = sorted({request.url for request in tab.asked})[:5]
        raise PageTimeoutError(
            f"the network was not quiet within {timeout / 1000:g} s; still open: {', '.join(busy) or 'ever new ones'}",
            open=busy,
        ) from None
    return {"idle": True, "waited_ms": _since(start)}


@ends(
    'complete(summary="Ordered two books", result={"order": 4711})',
    returns="The summary and the result; the task ends here",
)
async def complete(
    session: BrowserSession,
    summary: Annotated[str, "What was done, in a sentence"],
    result: Annotated[Any, "What the task was to find out, if anything"] = None,
) -> ToolResult:
    """Say that the task is done."""
    session.task = {"status": "complete", "summary": summary, "result": result}
    return ToolResult.success_result({"summary": summary, "result": result}, url=session.url)


@ends(
    'fail(reason="The shop does not deliver to Norway")',
    'fail(reason="The site is down", recoverable=True)',
    returns="An error result that says whether trying again later can help; the task ends here",
)
async def fail(
    session: BrowserSession,
    reason: Annotated[str, "Why it cannot be done"],
    recoverable: Annotated[bool, "Whether it may work another time or another way"] = False,
) -> ToolResult:
    """Say that the task cannot be done."""
    session.task = {"status": "failed", "reason": reason, "recoverable": recoverable}
    return ToolResult.failure_result(
        reason, "task_failed", recoverable=recoverable, retryable=recoverable, url=session.url
    )


@tool(
    'ask_user(question="Which of the two accounts?", choices=["work", "private"])',
    returns="The answer",
    requires_page=False,
    timeout_seconds=600,
)
async def ask_user(
    session: BrowserSession,
    question: Annotated[str, "What to ask"],
    choices: Annotated[list[str], "The possible answers, if there are only some"] = [],  # noqa: B006
) -> Data:
    """Ask the person for whom the task is done."""
    if session.ask_user is None:
        raise NotConfiguredError("nobody is there to answer; give the session ask_user=...")
    asked = f"{question} ({' / '.join(choices)})" if choices else question
    answer = str(await session.ask_user(asked)).strip()
    if choices and answer.casefold() not in (choice.casefold() for choice in choices):
        raise BadInputError(f"the answer {answer!r} is none of {', '.join(map(repr, choices))}", retryable=True)
    return {"question": question, "answer": answer}

"""Looking over the browser's shoulder."""

from __future__ import annotations

import logging
from functools import partial
from typing import Annotated, Literal

from toolcrib.toolsets.browser.definition import Data, Element, Timeout, browser_tool
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.targeting import find
from toolcrib.toolsets.browser.tools.network import console_messages, network_requests

tool = partial(browser_tool, category="utility")

_log = logging.getLogger("toolcrib.browser")


@tool(
    'log(message="Found three candidates")',
    'log(message="No results", level="warning")',
    returns="The message, and how many have been logged in the session",
    requires_page=False,
)
async def log(
    session: BrowserSession,
    message: Annotated[str, "What to note"],
    level: Annotated[Literal["debug", "info", "warning", "error"], "How important it is"] = "info",
) -> Data:
    """Note something in the program's log."""
    text = str(session.hidden.redact(message))
    session.notes.append({"level": level, "message": text})
    _log.log(getattr(logging, level.upper()), "%s: %s", session.name, text)
    return {"logged": text, "level": level, "count": len(session.notes)}


@tool(
    "debug()",
    returns="Tabs, page state, the last calls, console errors, failed and refused requests, notes and settings",
    timeout_seconds=60,
)
async def debug(session: BrowserSession) -> Data:
    """Tell what is needed to find out why something does not work."""
    console = await console_messages(session, "error", 10)
    network = await network_requests(session, failed_only=True, limit=10)
    state = await session.ask(session.page.main_frame, "pageState", {}, missing={})
    return {
        "session": session.name,
        "tabs": [{"tab": tab.id, "url": tab.page.url, "crashed": tab.crashed} for tab in session.tabs],
        "state": state,
        "last_calls": [
            {"tool": step.tool, "success": step.success, "error_code": step.error_code} for step in session.steps[-10:]
        ],
        "console_errors": console["messages"] + console["errors"],
        "failed_requests": network["requests"],
        "refused": network["refused"],
        "happened": session.happenings[-20:],
        "notes": session.notes[-20:],
        "addresses": {"allow": session.addresses.allow, "deny": session.addresses.deny},
        "secrets": sorted(session.secrets),
    }


@tool('highlight(selector="Sign in")', returns="What was highlighted, how it was matched, and its box on the page")
async def highlight(
    session: BrowserSession,
    selector: Element,
    color: Annotated[str, "A CSS colour"] = "red",
    seconds: Annotated[float, "For how long; 0 until the page changes"] = 0,
    timeout: Timeout = 5000,
) -> Data:
    """Draw a frame around an element, for a person who watches or for a screenshot."""
    match = await find(session, selector, "any", timeout)
    box = await match.locator.evaluate(_FRAME, [color, seconds])
    return {"highlighted": str(match), "matched": match.as_dict(), "box": box}


_FRAME = """(element, [color, seconds]) => {
  const before = element.style.outline;
  element.scrollIntoView({ block: 'nearest', behavior: 'instant' });
  element.style.outline = '3px solid';
  element.style.outlineColor = color;
  if (seconds > 0) setTimeout(() => { element.style.outline = before; }, seconds * 1000);
  const { x, y, width, height } = element.getBoundingClientRect();
  return { x: Math.round(x), y: Math.round(y), width: Math.round(width), height: Math.round(height) };
}"""

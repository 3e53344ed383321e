"""Tools that drive a real browser.

async with BrowserSession() as session:
    tools = browser_registry(session)
    await tools.execute("goto", {"url": "https://example.com"})
    outline = await tools.execute("snapshot")
"""

from __future__ import annotations

from typing import Any

from toolcrib import ToolRegistry, ToolSpec
from toolcrib.toolsets.browser.chromium import Chromium, find_chromium
from toolcrib.toolsets.browser.definition import definitions
from toolcrib.toolsets.browser.failures import BrowserError
from toolcrib.toolsets.browser.lending import lending_page
from toolcrib.toolsets.browser.recording import Difference, Replay, Script, Step
from toolcrib.toolsets.browser.secrecy import Secret
from toolcrib.toolsets.browser.session import BrowserSession
from toolcrib.toolsets.browser.sessions import BrowserSessions
from toolcrib.toolsets.browser.standalone import session_tool, standalone_tool

__all__ = [
    "BrowserError",
    "BrowserSession",
    "BrowserSessions",
    "Chromium",
    "Difference",
    "Replay",
    "Script",
    "Secret",
    "Step",
    "browser_registry",
    "browser_specs",
    "find_chromium",
    "session_tool",
    "standalone_tool",
]


def browser_registry(session: BrowserSession, **options: Any) -> ToolRegistry:
    """Every browser tool, bound to the session; ``options`` are ToolRegistry's: a safety ceiling, approval, audit.

    A tool of your own that is registered here finds the page of the current tab in ``context.values["page"]``; a
    ``BaseTool`` of the FlyBrowser dialect has it as ``self.page``.
    """
    registry = ToolRegistry((definition.bind(session.call) for definition in definitions().values()), **options)
    registry.use(lending_page(session))
    return registry


def browser_specs() -> list[ToolSpec]:
    """What the browser tools are, for a catalogue; no browser is started and Playwright need not be installed."""
    return [definition.spec for definition in definitions().values()]

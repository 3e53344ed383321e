"""What a catalogue binds the browser's tools to: a browser of its own for each call, or one that calls share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toolcrib import Tool, ToolResult
from toolcrib.toolsets.browser.definition import Definition, definitions
from toolcrib.toolsets.browser.session import BrowserSession


def standalone_tool(name: str, *, start_url: str = "", **options: Any) -> Tool:
    """The tool of that name, which opens a browser for each call; with ``start_url`` it begins on that page.

    ``options`` are arguments of BrowserSession.
    """

    async def call(definition: Definition, arguments: dict[str, Any]) -> ToolResult:
        async with BrowserSession(**options) as session:
            if start_url:
                goto = definitions()["goto"]
                opened = await session.call(goto, goto.bind(session.call).validate({"url": start_url}))
                if not opened.success:
                    return opened
            return await session.call(definition, arguments)

    return definitions()[name].bind(call)


def session_tool(name: str, current: Callable[[], BrowserSession]) -> Tool:
    """The tool of that name, each call in the session that ``current`` returns."""

    async def call(definition: Definition, arguments: dict[str, Any]) -> ToolResult:
        return await current().call(definition, arguments)

    return definitions()[name].bind(call)

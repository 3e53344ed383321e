"""One call in a browser of its own: what a catalogue binds the browser's tools to."""

from __future__ import annotations

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

"""The session's page, lent to tools that are registered beside the browser's own."""

from __future__ import annotations

import dataclasses
from typing import Any

from toolcrib import Tool, ToolContext, ToolResult
from toolcrib.layers import Layer, Runner
from toolcrib.toolsets.browser.session import BrowserSession

PAGE = "page"
"""Under this name it is in the ``values`` of a tool's context."""


def lending_page(session: BrowserSession) -> Layer:
    """A layer that puts the page of the current tab, Playwright's, into ``context.values["page"]``.

    For a tool that ``requires_page`` the session is started if it is not; any other finds a page if there is one.
    Secrets are taken out of what it returns. The browser's own tools take no context: they have the session.
    """

    def layer(run: Runner) -> Runner:
        async def lent(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            if tool.context_parameter is None or tool.spec.isolation == "process":  # a page stays in its process
                return await run(tool, arguments, context)
            if tool.spec.requires_page:
                await session.ready()
            if session.tabs.current is not None:
                context = dataclasses.replace(context, values={**context.values, PAGE: session.page})
            value = await run(tool, arguments, context)
            hidden = session.hidden
            return hidden.redact_result(value) if isinstance(value, ToolResult) else hidden.redact(value)

        return lent

    return layer

"""A tool of which only so many run at once, because what it needs is dear: a browser."""

from __future__ import annotations

from typing import Any

from toolcrib.calling.places import CALLER, Places
from toolcrib.core.context import ToolContext
from toolcrib.core.tool import Tool


def placed_tool(bound: Tool, places: Places) -> Tool:
    """A call waits for its place, at most as long as the tool may take; the caller then learns what was taken."""

    async def run(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        caller = CALLER.get()
        await places.take_within(caller, context.seconds_for(tool.spec.timeout_seconds))
        try:
            return await bound.runner(tool, arguments, context)
        finally:
            places.give_back(caller)

    return Tool(bound.spec, bound.function, run, context_parameter=bound.context_parameter, decode=bound.decode)

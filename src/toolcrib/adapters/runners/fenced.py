"""A tool that runs behind address rules: its browsers and pipelines reach only what they let through."""

from __future__ import annotations

from typing import Any

from toolcrib.core.addresses import AddressRules, fence
from toolcrib.core.context import ToolContext
from toolcrib.core.tool import Tool


def fenced_tool(bound: Tool, rules: AddressRules) -> Tool:
    """The rules in force go with a call into its thread or its process."""

    async def run(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        with fence(rules):
            return await bound.runner(tool, arguments, context)

    return Tool(bound.spec, bound.function, run, context_parameter=bound.context_parameter, decode=bound.decode)

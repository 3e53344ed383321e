"""A tool whose code runs behind address rules: its browsers and pipelines reach only what they let through.

The fence is around the function, not the runner, so that it goes with the function into a thread or a process.
"""

from __future__ import annotations

import functools
from typing import Any

from toolcrib.core.addresses import AddressRules, fence
from toolcrib.core.tool import Tool
from toolcrib.define.function import is_async_callable


def fenced_tool(tool: Tool, rules: AddressRules) -> Tool:
    function = tool.function

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        with fence(rules):
            return function(*args, **kwargs)

    @functools.wraps(function)
    async def run_async(*args: Any, **kwargs: Any) -> Any:
        with fence(rules):
            return await function(*args, **kwargs)

    inside = run_async if is_async_callable(function) else run
    return Tool(tool.spec, inside, tool.runner, context_parameter=tool.context_parameter, decode=tool.decode)

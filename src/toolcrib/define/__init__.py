"""Three ways to define a tool, one result: ``@tool`` on a function, ``BaseTool`` as a class, ``create_tool()``."""

from __future__ import annotations

import inspect
from typing import Any

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.tool import Tool
from toolcrib.define.base import BaseTool
from toolcrib.define.builder import ToolBuilder, create_tool
from toolcrib.define.function import SupportsTool, make_tool, tool
from toolcrib.define.methods import MethodTool, bound, has_tool_methods, tool_methods

__all__ = [
    "BaseTool", "SupportsTool", "ToolBuilder", "as_tool", "as_tools", "create_tool", "has_tool_methods", "make_tool",
    "only_tool", "tool",
]  # fmt: skip


def as_tool(thing: Any) -> Tool[..., Any]:
    """The tool that a tool, a function, a tool class or an instance of one stands for."""
    return only_tool(thing, as_tools(thing))


def only_tool(thing: Any, found: Tool[..., Any] | list[Tool[..., Any]]) -> Tool[..., Any]:
    """The tool that was found for ``thing``; ToolValidationError if there are several."""
    if isinstance(found, list):
        names = ", ".join(repr(tool.name) for tool in found)
        raise ToolValidationError(f"{thing!r:.80} is not one tool, it has {names}; give one of its methods")
    return found


def as_tools(thing: Any) -> Tool[..., Any] | list[Tool[..., Any]]:
    """The tool that ``thing`` stands for; of an object with ``@tool`` methods all of these, as a list."""
    if isinstance(thing, MethodTool):
        raise thing.refusal()
    if isinstance(thing, Tool):
        return thing
    if isinstance(thing, type):
        return as_tools(_instance(thing))
    if issubclass(type(thing), SupportsTool):
        return make_tool(thing)
    if inspect.ismethod(thing) and isinstance(thing.__func__, Tool):
        return bound(thing)
    if methods := list(tool_methods(thing)):
        return methods
    if callable(thing):
        return as_tools(make_tool(thing))
    raise ToolValidationError(
        f"{thing!r:.80} is not a tool; register a function, a BaseTool, an object with @tool methods or the result of "
        "create_tool()"
    )


def _instance(cls: type) -> Any:
    if not (issubclass(cls, SupportsTool) or has_tool_methods(cls)):
        raise ToolValidationError(
            f"class {cls.__name__!r} is not a tool; derive it from BaseTool, or put @tool on its methods"
        )
    try:
        return cls()
    except TypeError as error:
        raise ToolValidationError(
            f"class {cls.__name__!r} cannot be made into a tool: {error}; use an instance, {cls.__name__}(...)"
        ) from None

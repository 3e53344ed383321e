"""Three ways to define a tool, one result: ``@tool`` on a function, ``BaseTool`` as a class, ``create_tool()``."""

from __future__ import annotations

import inspect
from typing import Any, Protocol, runtime_checkable

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.tool import Tool
from toolcrib.define.base import BaseTool
from toolcrib.define.builder import ToolBuilder, create_tool
from toolcrib.define.function import make_tool, tool

__all__ = ["BaseTool", "SupportsTool", "ToolBuilder", "as_tool", "create_tool", "make_tool", "tool"]


@runtime_checkable
class SupportsTool(Protocol):
    """Anything that can become a tool says so by this method; the dialects' tools do."""

    def __toolcrib_tool__(self) -> Tool: ...


def as_tool(thing: Any) -> Tool:
    """The tool that a tool, a function, a tool class or an instance of one stands for."""
    if isinstance(thing, Tool):
        return thing
    if isinstance(thing, type):
        return as_tool(_instance(thing))
    if isinstance(thing, SupportsTool):
        return thing.__toolcrib_tool__()
    if inspect.isroutine(thing):
        return make_tool(thing)
    raise ToolValidationError(
        f"{thing!r:.80} is not a tool; register a function, a BaseTool or the result of create_tool()"
    )


def _instance(cls: type) -> Any:
    if not issubclass(cls, SupportsTool):
        raise ToolValidationError(f"class {cls.__name__!r} is not a tool; derive it from BaseTool")
    try:
        return cls()
    except TypeError as error:
        raise ToolValidationError(f"class {cls.__name__!r} cannot be made into a tool: {error}") from None

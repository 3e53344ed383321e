"""Live tools to and from other people's agent frameworks.

Each has a file with two functions: ``export`` hands offers over, ``adopt`` makes tools of theirs. The file is imported
when its framework is first asked for, and with it the framework's package.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any

from toolcrib.core.errors import MissingDependencyError
from toolcrib.core.tool import Tool
from toolcrib.define import as_tools, only_tool
from toolcrib.frameworks.adopted import takes_run_context
from toolcrib.frameworks.offer import Execute, Offer, offers, text_told

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

__all__ = [
    "Execute", "Offer", "framework", "framework_of", "offers", "text_told", "to_structured_tool", "tool_of", "tools_of",
]  # fmt: skip

_PACKAGES = {
    "langchain": ("langchain-core", "langchain_core"),
    "llama_index": ("llama-index-core", "llama_index"),
    "openai_agents": ("openai-agents", "agents"),
    "pydantic_ai": ("pydantic-ai-slim", "pydantic_ai"),
}
"""The package that is installed, and as what it is imported."""
_KINDS = {
    ("langchain_core", "BaseTool"): "langchain",
    ("llama_index", "BaseTool"): "llama_index",
    ("agents", "FunctionTool"): "openai_agents",
    ("pydantic_ai", "AbstractToolset"): "pydantic_ai",
    ("pydantic_ai", "Tool"): "pydantic_ai",
}
"""The package that a class is from, and its name."""


def framework(name: str) -> ModuleType:
    """The file of a framework; MissingDependencyError, with the extra that brings it, if it is not installed."""
    try:
        return import_module(f"toolcrib.frameworks.{name}")
    except ImportError:
        package, module = _PACKAGES[name]
        what = package if sys.modules.get(module) is None else f"a new enough {package}"
        raise MissingDependencyError(what, extra=name.replace("_", "-")) from None


def framework_of(thing: object) -> str | None:
    """The framework that ``thing`` is a tool of, told by the name of its class alone; None if of none.

    The decorators of pydantic-ai leave a function as it is: it is one of theirs if it takes their context.
    """
    kind = type(thing)
    if kind is FunctionType or kind is MethodType:
        return "pydantic_ai" if takes_run_context(thing) else None
    if kind is Tool:
        return None
    for each in kind.__mro__:
        if name := _KINDS.get((each.__module__.partition(".")[0], each.__name__)):
            return name
    return None


def tools_of(thing: Any) -> Tool | list[Tool]:
    """The tool that ``thing`` stands for, whoever's it is; of a toolset or an object with ``@tool`` methods a list."""
    if (name := framework_of(thing)) is None:
        return as_tools(thing)
    tools: list[Tool] = framework(name).adopt([thing])
    return tools if hasattr(thing, "get_tools") else tools[0]


def tool_of(thing: Any) -> Tool:
    """The same for what stands for one tool; ToolValidationError if it stands for several."""
    return only_tool(thing, tools_of(thing))


def to_structured_tool(tool: Tool, execute: Execute | None = None) -> StructuredTool:
    """``tool`` as LangChain's StructuredTool, which raises what goes wrong.

    ``execute`` runs it in another way than ``tool.execute`` does, such as with a registry's checks.
    """
    made: StructuredTool = framework("langchain").structured_tool(tool, execute)
    return made

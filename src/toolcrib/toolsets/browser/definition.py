"""How a browser tool is written: an async function whose first parameter is the session.

    @browser_tool('hover(selector="Menu")', returns="What the mouse is over", category="interaction")
    async def hover(session: BrowserSession, selector: Element, timeout: Timeout = 5000) -> Data:
        "Move the mouse over an element."

It becomes a tool when it is bound to a session; its spec is there without one.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Annotated, Any

from toolcrib import Tool, ToolExample, ToolResult, ToolSpec, tool

Function = Callable[..., Awaitable[Any]]
Data = dict[str, Any]
"""What a tool answers with."""
Call = Callable[["Definition", Data], Awaitable[ToolResult]]
"""What runs a definition with its arguments, such as ``session.call``."""

Element = Annotated[
    str, "The element: a CSS selector, a handle from snapshot (such as e12), or plain words (such as 'Sign in button')"
]
FileName = Annotated[str, "The file's name in the session's folder"]
Timeout = Annotated[float, "How long to wait for the element, in milliseconds"]

_EVERY: dict[str, Definition] = {}
_ORDER = ("navigation", "interaction", "form", "extraction", "system", "session", "search", "utility")


@dataclass(frozen=True)
class Definition:
    """A tool before it has a session."""

    name: str
    function: Function
    fields: dict[str, Any] = field(repr=False)

    @cached_property
    def spec(self) -> ToolSpec:
        return self.bind(_without_session).spec

    @cached_property
    def _shape(self) -> tuple[inspect.Signature, dict[str, Any]]:
        signature = inspect.signature(self.function)
        parameters = list(signature.parameters.values())[1:]
        hints = typing.get_type_hints(self.function, include_extras=True)
        kept = {parameter.name: hints[parameter.name] for parameter in parameters}
        return signature.replace(parameters=parameters), kept | {"return": ToolResult}

    def bind(self, call: Call) -> Tool:
        """The tool that ``call`` runs."""

        async def run(**arguments: Any) -> ToolResult:
            return await call(self, arguments)

        run.__name__ = run.__qualname__ = self.name
        run.__doc__ = self.function.__doc__
        run.__signature__, run.__annotations__ = self._shape  # type: ignore[attr-defined]
        return tool(run, **self.fields)


async def _without_session(definition: Definition, arguments: Data) -> ToolResult:
    raise AssertionError(f"{definition.name} was run without a session, with {arguments!r}")


def browser_tool(
    *examples: str, returns: str, category: str, name: str = "", **fields: Any
) -> Callable[[Function], Function]:
    """Add a function to the browser's tools, with examples of calls; ``fields`` are those of a spec."""

    def add(function: Function) -> Function:
        own = name or function.__name__
        common = {
            "name": own,
            "category": category,
            "tool_type": "browser",
            "tags": ("browser", category),
            "examples": [ToolExample(call=example) for example in examples],
            "returns_description": returns,
            "timeout_seconds": 30.0,
            "requires_page": True,
            "binding": {"python": own},
            "package_name": "playwright",
            "pip_install_command": "pip install 'toolcrib[browser]'",
        }
        _EVERY[own] = Definition(own, function, common | fields)
        return function

    return add


def definitions() -> dict[str, Definition]:
    """Every browser tool by name, category after category."""
    import toolcrib.toolsets.browser.tools  # noqa: F401  the tools add themselves

    return dict(sorted(_EVERY.items(), key=lambda entry: _ORDER.index(entry[1].fields["category"])))

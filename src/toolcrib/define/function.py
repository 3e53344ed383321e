"""``@tool``: a function becomes a tool."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, overload

from toolcrib.calling import default_isolation, runner_for
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define.signature import read_signature


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(name: str | None = None, /, **fields: Any) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | str | None = None, /, **fields: Any
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function, sync or async.

    The name, the description and the JSON Schemas come from the function's name, docstring and annotations; any field
    of ToolSpec given here comes first. A parameter annotated ``ToolContext`` is filled in at the call and never shown::

        @tool(tags=["math"], timeout_seconds=5)
        def add(a: int, b: int = 1) -> int:
            "Add two numbers."
            return a + b
    """
    if callable(function):
        return make_tool(function, **fields)
    if function is not None:
        fields["name"] = function
    return lambda decorated: make_tool(decorated, **fields)


def make_tool(function: Callable[..., Any], **fields: Any) -> Tool:
    """What ``@tool`` does, as a plain call."""
    if isinstance(function, Tool):
        return function.with_spec(function.spec.with_changes(**fields)) if fields else function
    if isinstance(function, type) or not callable(function):
        raise ToolValidationError(f"{function!r} is not a function; for a class, derive it from BaseTool")
    name = fields.pop("name", None) or getattr(function, "__name__", type(function).__name__)
    return assemble(function, {"name": name, **fields})


def assemble(function: Callable[..., Any], fields: dict[str, Any]) -> Tool:
    """A tool from a function and some of its spec's fields; what is not given is read off the function."""
    interface = read_signature(function, str(fields["name"]))
    known = {
        "description": interface.docstring.description,
        "parameters": interface.parameters,
        "returns": interface.returns,
        "returns_description": interface.docstring.returns,
    }
    spec = ToolSpec.parse(known | ways_to_run(function) | fields)
    if not spec.description:
        raise ToolValidationError(
            f"tool {spec.name!r} has no description; give its function a docstring, or pass description=..."
        )
    return running(spec, function, context_parameter=interface.context_parameter, decode=interface.decode)


def ways_to_run(function: Callable[..., Any]) -> dict[str, str]:
    """The fields of a spec that say how a function runs, unless its author says otherwise."""
    is_async = is_async_callable(function)
    return {"execution_mode": "async" if is_async else "sync", "isolation": default_isolation(is_async)}


def running(spec: ToolSpec, function: Callable[..., Any], **how: Any) -> Tool:
    """The tool that runs the function in the way that the spec asks for; ``how`` are arguments of Tool."""
    return Tool(spec, function, runner_for(spec, is_async_callable(function)), **how)


def is_async_callable(function: Callable[..., Any]) -> bool:
    while isinstance(function, functools.partial):
        function = function.func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

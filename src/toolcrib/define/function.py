"""``@tool``: a function becomes a tool."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, Protocol, TypeVar, Unpack, overload, runtime_checkable

from toolcrib.calling import default_isolation, runner_for
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.positions import ByPosition
from toolcrib.core.spec import ToolSpec
from toolcrib.core.spec_fields import SpecFields
from toolcrib.core.tool import Tool
from toolcrib.define.callables import is_async_callable, name_of, refuse_around_tool, without_tools
from toolcrib.define.methods import MethodTool, is_method
from toolcrib.define.signature import read_signature

P = ParamSpec("P")
R = TypeVar("R")


@runtime_checkable
class SupportsTool(Protocol):
    """Anything that can become a tool says so by this method; the dialects' tools do.

    Ask its type: an object may have an answer for whatever attribute it is asked for.
    """

    def __toolcrib_tool__(self) -> Tool: ...


class ToolMaker(Protocol):
    """What ``@tool(...)`` decorates with."""

    @overload
    def __call__(self, function: classmethod[Any, P, R], /) -> Tool[P, R]: ...

    @overload
    def __call__(self, function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(function: classmethod[Any, P, R], /) -> Tool[P, R]: ...


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...


@overload
def tool(called: str | None = None, /, **fields: Unpack[SpecFields]) -> ToolMaker: ...


def tool(function: Any = None, /, **fields: Any) -> Any:
    """Make a tool of a function, sync or async.

    The name, the description and the JSON Schemas come from the function's name, docstring and annotations; any field
    of ToolSpec given here comes first. A parameter annotated ``ToolContext`` is filled in at the call and never shown::

        @tool(tags=["math"], timeout_seconds=5)
        def add(a: int, b: int = 1) -> int:
            "Add two numbers."
            return a + b
    """
    if function is not None and not isinstance(function, str):
        return make_tool(function, **fields)
    if function is not None:
        fields["name"] = function
    return lambda decorated: make_tool(decorated, **fields)


def make_tool(function: Any, **fields: Unpack[SpecFields]) -> Tool[..., Any]:
    """What ``@tool`` does, as a plain call."""
    if issubclass(type(function), SupportsTool):
        function = function.__toolcrib_tool__()
    if isinstance(function, Tool):
        return function.with_spec(function.spec.with_changes(**fields)) if fields else function
    refuse_around_tool(function)
    if isinstance(function, classmethod):
        return _method_tool(function.__func__, fields, of_class=True)
    if isinstance(function, staticmethod):
        return _function_tool(function.__func__, fields)
    if isinstance(function, type) or not callable(function):
        raise ToolValidationError(
            f"{function!r:.80} is not a function; to make a tool of a class, derive it from BaseTool and register it"
        )
    function = without_tools(function)
    if is_method(function):
        return _method_tool(function, fields)
    return _function_tool(function, fields)


def _function_tool(function: Callable[..., Any], fields: Mapping[str, Any]) -> Tool[..., Any]:
    return assemble(function, {**fields, "name": fields.get("name") or name_of(function)})


def _method_tool(function: Callable[..., Any], fields: Mapping[str, Any], *, of_class: bool = False) -> MethodTool:
    """Read as a bound method is, without its first parameter."""
    made = _function_tool(types.MethodType(function, function), fields)
    given = made.function
    own = ByPosition(function, given.leading, given.rest) if isinstance(given, ByPosition) else function
    return MethodTool(
        made.spec, own, made.runner, of_class=of_class, context_parameter=made.context_parameter, decode=made.decode
    )


def assemble(function: Callable[..., Any], fields: dict[str, Any]) -> Tool[..., Any]:
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
    by_name = interface.by_name(function)
    return running(spec, by_name, context_parameter=interface.context_parameter, decode=interface.decode)


def ways_to_run(function: Callable[..., Any]) -> dict[str, str]:
    """The fields of a spec that say how a function runs, unless its author says otherwise."""
    is_async = is_async_callable(function)
    return {"execution_mode": "async" if is_async else "sync", "isolation": default_isolation(is_async)}


def running(spec: ToolSpec, function: Callable[..., Any], **how: Any) -> Tool[..., Any]:
    """The tool that runs the function in the way that the spec asks for; ``how`` are arguments of Tool."""
    return Tool(spec, function, runner_for(spec, is_async_callable(function)), **how)

"""What a callable says of itself, whatever kind of callable it is."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.positions import own_function
from toolcrib.core.tool import Tool


def signature_of(function: Callable[..., Any], tool: str) -> inspect.Signature:
    """What it is called with; of a ``partial``, what is left of that."""
    if isinstance(function, functools.partial):  # anew: update_wrapper() lets it show what is filled in already
        function = functools.partial(function.func, *function.args, **function.keywords)
    try:
        signature = inspect.signature(function)
    except (ValueError, TypeError):
        raise ToolValidationError(
            f"the signature of {function!r:.80} for tool {tool!r} cannot be read; "
            "wrap it in a function with annotations"
        ) from None
    if hasattr(function, "dispatch") and hasattr(function, "registry"):  # functools.singledispatch
        first, *others = signature.parameters.values()
        return signature.replace(parameters=[first.replace(kind=first.POSITIONAL_ONLY), *others])
    return signature


def without_tools(function: Any) -> Any:
    """What its author has written, if it is a tool or a partial of one: as a function a tool has any signature."""
    if isinstance(function, Tool):
        return own_function(function.function)
    if isinstance(function, functools.partial) and function.func is not (inner := without_tools(function.func)):
        return functools.partial(inner, *function.args, **function.keywords)
    return function


_HELD = {
    property: "fget",
    functools.cached_property: "func",
    functools.partialmethod: "func",
    functools.singledispatchmethod: "func",
}
"""Where the decorators of a class keep what they stand above."""


def refuse_around_tool(function: Any) -> None:
    """ToolValidationError if a decorator has put the function around a tool, which nobody sees then."""
    held = getattr(function, _HELD[type(function)]) if type(function) in _HELD else function
    inner = inspect.unwrap(held, stop=lambda each: isinstance(each, Tool))
    if isinstance(inner, Tool):
        raise ToolValidationError(f"a decorator stands above @tool of {inner.name!r}; put @tool above all others")


def filled_in(function: Callable[..., Any]) -> frozenset[str]:
    """The arguments that a ``partial`` gives by name. They are its author's, so no caller may change them."""
    names: set[str] = set()
    while isinstance(function, functools.partial):
        names.update(function.keywords)
        function = function.func
    return frozenset(names)


def written(function: Callable[..., Any]) -> Any:
    """The function that somebody has written down: below partials, adapters, objects with ``__call__``."""
    while True:
        function = own_function(function)
        if isinstance(function, functools.partial):
            function = function.func
        elif inspect.isroutine(function) or isinstance(function, type) or hasattr(function, "__wrapped__"):
            return function
        else:
            return type(function).__call__


def name_of(function: Callable[..., Any]) -> str:
    while isinstance(function, functools.partial) and "__name__" not in vars(function):
        function = function.func
    return getattr(function, "__name__", type(function).__name__)


def docstring_of(function: Callable[..., Any]) -> str | None:
    """Its own, not that of ``partial``; of an object with ``__call__`` that of its class, or of ``__call__``."""
    while isinstance(function, functools.partial) and "__doc__" not in vars(function):
        function = function.func
    return function.__doc__ or getattr(written(function), "__doc__", None)


def annotated(function: Callable[..., Any]) -> Any:
    """The function whose signature counts: the innermost of those that ``functools.wraps`` puts around one another."""
    return inspect.unwrap(written(function), stop=lambda wrapper: hasattr(wrapper, "__signature__"))


def class_name_of(function: Callable[..., Any]) -> str:
    """The class in whose body the function is written; empty if it is not."""
    around = getattr(written(function), "__qualname__", "").rpartition(".")[0]
    return "" if around.endswith("<locals>") else around


def is_generator(function: Callable[..., Any]) -> bool:
    """Whether it yields: its result is the list of its items."""
    target = written(function)
    return inspect.isgeneratorfunction(target) or inspect.isasyncgenfunction(target)


def is_async_callable(function: Callable[..., Any]) -> bool:
    """Whether it runs on an event loop: a coroutine function or an asynchronous generator function."""
    target = written(function)
    return inspect.iscoroutinefunction(target) or inspect.isasyncgenfunction(target)

"""``@tool`` on a method: each instance of the class has its own tool, bound to it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from functools import partial
from types import MethodType
from typing import Any, Self

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.positions import ByPosition, own_function
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import P, R_co, Runner, Tool
from toolcrib.define.callables import class_name_of, name_of, refuse_around_tool

_RECEIVERS = frozenset({"self", "cls"})


class MethodTool(Tool[P, R_co]):
    """A method that waits for its instance: ``Files.read``. ``Files("/x").read`` is the tool.

    ``bound_runner`` runs what it is bound to; a class method (``of_class``) is bound to the class.
    """

    __slots__ = ("_bound_runner", "_of_class")

    def __init__(
        self, spec: ToolSpec, function: Callable[..., Any], bound_runner: Runner, *, of_class: bool = False, **how: Any
    ) -> None:
        super().__init__(spec, function, _wait_for_an_instance, **how)
        self._bound_runner = bound_runner
        self._of_class = of_class

    def __get__(self, instance: object, owner: type | None = None, /) -> Any:
        if self._of_class:
            return self.bound_to(owner or type(instance))
        return self if instance is None else self.bound_to(instance)

    def bound_to(self, receiver: Any) -> Tool[..., Any]:
        """The tool of one instance, or of one class."""
        method = MethodType(own_function(self.function), receiver)
        given = self.function
        function = ByPosition(method, given.leading, given.rest) if isinstance(given, ByPosition) else method
        return self.with_function(function, self._bound_runner)

    def refusal(self) -> ToolValidationError:
        where, name = class_name_of(self.function).rpartition(".")[2], name_of(own_function(self.function))
        return ToolValidationError(
            f"tool {self.name!r} is a method and belongs to an instance: use {where}(...).{name}, not {where}.{name}; "
            "if it is a static or a class method, put @tool above @staticmethod or @classmethod"
        )

    def with_spec(self, spec: ToolSpec) -> Self:
        return self._made()(spec, self.function, self._bound_runner)

    def __reduce__(self) -> tuple[Any, ...]:
        return self._made(), (self.spec, self.function, self._bound_runner)

    def _made(self) -> partial[Self]:
        return partial(
            type(self), of_class=self._of_class, context_parameter=self.context_parameter, decode=self.decode
        )


async def _wait_for_an_instance(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:  # noqa: ARG001 - as runners are called
    assert isinstance(tool, MethodTool)
    raise tool.refusal()


def is_method(function: Callable[..., Any]) -> bool:
    """Whether it is written in a class and its first parameter looks like the instance: ``self``, or of no type."""
    wrapped = hasattr(function, "__wrapped__") and not inspect.ismethod(function)  # by functools.cache, say
    if not ((inspect.isfunction(function) or wrapped) and (around := class_name_of(function))):
        return False
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first is None or first.kind not in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD):
        return False
    if first.name in _RECEIVERS:
        return True
    own_names = ("Self", "typing.Self", around.rpartition(".")[2], Self)
    return first.default is first.empty and (first.annotation is first.empty or first.annotation in own_names)


def tool_methods(thing: object) -> Iterator[Tool[..., Any]]:
    """The tools among an object's methods, bound to it, in order of definition; those of a base class come first."""
    kind = type(thing)
    met: list[Any] = []
    for name in dict.fromkeys(name for base in reversed(kind.__mro__) for name in vars(base)):
        found = inspect.getattr_static(kind, name, None)
        if _is_tool_method(found) and not any(found is each for each in met):  # or it is another name of that one
            met.append(found)
            yield bound(getattr(thing, name))


def bound(found: Any) -> Tool[..., Any]:
    """What a class hands out for its attribute, as a tool. From Python 3.13 ``@classmethod`` binds by itself."""
    if inspect.ismethod(found) and isinstance(found.__func__, MethodTool):
        return found.__func__.bound_to(found.__self__)
    if isinstance(found, MethodTool):  # below @staticmethod, which is not seen from there
        raise found.refusal()
    assert isinstance(found, Tool)
    return found


def has_tool_methods(kind: type) -> bool:
    return any(
        _is_tool_method(inspect.getattr_static(kind, name, None)) for base in kind.__mro__ for name in vars(base)
    )


def _is_tool_method(found: Any) -> bool:
    if isinstance(found, staticmethod | classmethod):
        found = found.__func__
    if isinstance(found, Tool):
        return bool(class_name_of(found.function))
    if inspect.isroutine(found) or isinstance(found, property):
        refuse_around_tool(found)
    return False

"""What each kind of parameter of a function is to a tool, which is called by name."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated, Any, ParamSpecArgs, ParamSpecKwargs, Union, Unpack, get_args, get_origin

import typing_extensions
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolValidationError
from toolcrib.define.callables import signature_of
from toolcrib.define.hints import accepted, type_hints, typed_dict_keys, with_none, without_alias

_EMPTY = inspect.Parameter.empty


class Closed:
    """The function has no ``**arguments``."""


class Unsaid:
    """There is a default, which the function fills in by itself."""


@dataclass(slots=True)
class Parameters:
    """A function's parameters as a model sees them, and how they reach the function."""

    tool: str
    annotations: dict[str, Any] = field(default_factory=dict)
    defaults: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, FieldInfo] = field(default_factory=dict)
    """Defaults that are a ``Field(...)``, which a function cannot fill in by itself."""
    aliases: dict[str, str] = field(default_factory=dict)
    """What a model calls ``from``, by ``Field(alias="from")``, and what the function calls it."""
    context: str | None = None
    leading: tuple[str, ...] = ()
    """Given by position."""
    star: str = ""
    """``*star``, given by position after them."""
    rest: Any = Closed
    """The annotation of ``**rest``."""
    rest_name: str = "**"
    """With its stars, which no other parameter has."""

    def add(self, name: str, hint: Any, default: Any) -> None:
        if isinstance(default, FieldInfo):  # x: int = Field(3, ge=0) says x: Annotated[int, Field(ge=0)] = 3
            hint, default = Annotated[hint, default], _EMPTY
        given = _field_in(hint)
        if given is not None and given.validation_alias is not None:
            hint, name = without_alias(hint, given), self._alias_of(name, given.validation_alias)
        if name in self.annotations:
            raise ToolValidationError(f"parameter {name!r} of tool {self.tool!r} is there twice")
        if default is _EMPTY and given is not None:
            default = self._default_of(name, given)
        if default is None:
            hint = with_none(hint)
        self.annotations[name] = accepted(hint)
        self.defaults[name] = default

    def _alias_of(self, name: str, alias: object) -> str:
        if not isinstance(alias, str):
            raise ToolValidationError(f"parameter {name!r} of tool {self.tool!r} can have one name as its alias")
        self.aliases[alias] = name
        return alias

    def _default_of(self, name: str, given: FieldInfo) -> Any:
        if given.default_factory is not None:
            self.fields[name] = given
            return Unsaid
        if given.default in (PydanticUndefined, ...):
            return _EMPTY
        self.fields[name] = given
        return given.default


def read_parameters(
    signature: inspect.Signature, hints: Mapping[str, Any], hidden: frozenset[str], tool: str
) -> Parameters:
    """ToolValidationError names the parameter that a tool cannot have."""
    read = Parameters(tool)
    by_position: list[str] = []
    for name, parameter in signature.parameters.items():
        if name in hidden:
            continue
        hint = hints.get(name, Any)
        if parameter.kind is parameter.VAR_KEYWORD:
            _read_keywords(read, name, hint)
        elif parameter.kind is parameter.VAR_POSITIONAL:
            _read_star(read, name, hint)
        elif _is_context(hint):
            if read.context is not None:
                raise ToolValidationError(
                    f"tool {tool!r} has two ToolContext parameters: {read.context!r} and {name!r}"
                )
            read.context = name
        else:
            read.add(name, hint, parameter.default)
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD):
            by_position.append(name)
    only = [name for name in by_position if signature.parameters[name].kind is inspect.Parameter.POSITIONAL_ONLY]
    read.leading = tuple(by_position if read.star else only)
    return read


def _read_star(read: Parameters, name: str, hint: Any) -> None:
    if isinstance(hint, ParamSpecArgs):
        hint = Any
    read.star = name
    if get_origin(hint) in (Unpack, typing_extensions.Unpack):  # *args: Unpack[tuple[int, str]]
        read.add(name, get_args(hint)[0], _EMPTY)
    elif getattr(hint, "__unpacked__", False):  # *args: *tuple[int, str]
        read.add(name, tuple[get_args(hint)], _EMPTY)  # type: ignore[misc]
    else:
        read.add(name, list[hint], [])


def _read_keywords(read: Parameters, name: str, hint: Any) -> None:
    if get_origin(hint) not in (Unpack, typing_extensions.Unpack):
        read.rest = Any if isinstance(hint, ParamSpecKwargs) else accepted(hint)
        read.rest_name = f"**{name}"
        return
    keys = get_args(hint)[0]
    if not typing_extensions.is_typeddict(keys):
        raise ToolValidationError(f"parameter {name!r} of tool {read.tool!r} unpacks {keys!r}, which is no TypedDict")
    for key, (key_hint, required) in typed_dict_keys(keys).items():
        read.add(key, key_hint, _EMPTY if required else Unsaid)


def context_parameter(function: Callable[..., Any], tool: str) -> str | None:
    """Where a function of any signature wants the context; what else cannot be read there is let pass."""
    with suppress(ToolValidationError):
        signature = signature_of(function, tool)
        for name, parameter in signature.parameters.items():
            alone = signature.replace(parameters=[parameter], return_annotation=_EMPTY)
            with suppress(ToolValidationError):
                if _is_context(type_hints(function, alone, tool).get(name)):
                    return name
    return None


def _is_context(hint: Any) -> bool:
    origin = get_origin(hint)
    if origin is Annotated:
        return _is_context(get_args(hint)[0])
    if origin is Union or origin is types.UnionType:
        kinds = [kind for kind in get_args(hint) if kind is not type(None)]
        return len(kinds) == 1 and _is_context(kinds[0])
    return isinstance(hint, type) and issubclass(hint, ToolContext)


def _field_in(hint: Any) -> FieldInfo | None:
    """The ``Field(...)`` of ``Annotated[int, Field(...)]``."""
    notes = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return next((note for note in notes if isinstance(note, FieldInfo)), None)

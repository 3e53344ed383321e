"""Checked JSON values, back as what a function's annotations promise."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from toolcrib.core.errors import InvalidArgumentsError
from toolcrib.define.annotations import plain_schema


@dataclass(eq=False)
class Decoder:
    """Turns checked JSON values into what a function's annotations promise: models, dates, enums, whole numbers."""

    tool: str
    rich: dict[str, Any]
    """Annotations that are not plain JSON."""
    whole: tuple[str, ...]
    """Parameters of type int: JSON Schema takes 1.0 for an integer, ``range`` does not."""

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {name: TypeAdapter(annotation) for name, annotation in self.rich.items()}

    def __call__(self, arguments: dict[str, Any]) -> dict[str, Any]:
        decoded = arguments
        for name in self.whole:
            if name in arguments and type(arguments[name]) is float:
                decoded = decoded | {name: int(arguments[name])}
        if self.rich:
            decoded = dict(decoded)
            self._decode(decoded, {name: adapter for name, adapter in self._adapters.items() if name in decoded})
        return decoded

    def _decode(self, values: dict[str, Any], adapters: Mapping[str, TypeAdapter[Any]]) -> None:
        """Each of them in its place; all that are wrong are told at once."""
        wrong: dict[str, str] = {}
        for name, adapter in adapters.items():
            try:
                values[name] = _decoded(adapter, values[name])
            except ValidationError as error:
                wrong.update(complaints(error, self.tool, name))
        if wrong:
            raise InvalidArgumentsError.of(wrong, tool=self.tool)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tool, self.rich, self.whole)


def complaints(error: ValidationError, tool: str, *within: str) -> dict[str, str]:
    """What pydantic says is wrong with a tool's arguments: the first of each, by its path."""
    wrong: dict[str, str] = {}
    for each in error.errors(include_url=False):
        path = ".".join([*within, *map(str, each["loc"])])
        complaint = f"{each['msg'][:1].lower()}{each['msg'][1:]}"
        wrong.setdefault(path, f"argument {path!r} of tool {tool!r}: {complaint}")
    return wrong


def _decoded(adapter: TypeAdapter[Any], value: Any) -> Any:
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        try:  # what is strict takes a date or a tuple from JSON alone
            return adapter.validate_json(json.dumps(value))
        except ValidationError:
            raise error from None


@dataclass(eq=False)
class OpenDecoder(Decoder):
    """A decoder that also makes values for parameters that were not given, and types those that have no parameter."""

    fields: dict[str, FieldInfo] = field(default_factory=dict)
    """Parameters whose default is a ``Field(...)``: a default factory is asked at each call."""
    names: frozenset[str] = frozenset()
    """Every parameter; an argument of another name goes into ``**arguments``."""
    rest: Any = Any
    """The annotation of ``**arguments``."""

    @cached_property
    def _rest(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.rest)

    def __call__(self, arguments: dict[str, Any]) -> dict[str, Any]:
        decoded = dict(super().__call__(arguments))
        for name, given in self.fields.items():
            if name not in decoded:
                decoded[name] = given.get_default(call_default_factory=True, validated_data={})
        if self.rest is not Any:
            self._decode(decoded, dict.fromkeys(decoded.keys() - self.names, self._rest))
        return decoded

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tool, self.rich, self.whole, self.fields, self.names, self.rest)


def decoder(
    annotations: Mapping[str, Any], tool: str, fields: Mapping[str, FieldInfo], rest: Any = Any
) -> Decoder | None:
    """A decoder for a function's parameters; None if JSON values are what it wants already."""
    rich = {name: hint for name, hint in annotations.items() if plain_schema(hint) is None}
    whole = tuple(name for name, hint in annotations.items() if hint is int)
    if rest is not int and plain_schema(rest) is not None:
        rest = Any
    if fields or rest is not Any:
        return OpenDecoder(tool, rich, whole, dict(fields), frozenset(annotations), rest)
    return Decoder(tool, rich, whole) if rich or whole else None

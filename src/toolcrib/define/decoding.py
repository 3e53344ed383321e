"""Checked JSON values, back as what a function's annotations promise."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from toolcrib.calling.failures import as_failure
from toolcrib.core.errors import InvalidArgumentsError
from toolcrib.define.annotations import is_whole, plain_schema


@dataclass(eq=False)
class Decoder:
    """Turns checked JSON values into what a function's annotations promise: models, dates, enums, whole numbers."""

    tool: str
    rich: dict[str, Any]
    """Annotations that are not plain JSON."""
    whole: tuple[str, ...]
    """Parameters whose numbers are of type int: JSON Schema takes 1.0 for an integer, ``range`` does not."""

    @property
    def typed(self) -> Collection[str]:
        """The arguments whose values are made here with all that is in them, defaults too."""
        return self.rich.keys()

    @cached_property
    def _adapters(self) -> dict[str, TypeAdapter[Any]]:
        return {name: TypeAdapter(annotation) for name, annotation in self.rich.items()}

    def __call__(self, arguments: dict[str, Any]) -> dict[str, Any]:
        decoded = arguments
        for name in self.whole:
            if type(value := arguments.get(name)) is not int and value is not None:
                decoded = decoded | {name: as_whole(value)}
        return self._decoded(decoded) if self.rich else decoded

    def _decoded(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """With typed values; all that are wrong are told at once."""
        values, wrong = dict(arguments), dict[str, str]()
        for name, adapter in self._adapters_for(values):
            try:
                values[name] = validated(adapter, values[name], self.tool)
            except ValidationError as error:
                wrong.update(complaints(error, self.tool, name, given=values[name]))
        if wrong:
            raise InvalidArgumentsError.of(wrong, tool=self.tool)
        return values

    def _adapters_for(self, arguments: Mapping[str, Any]) -> Iterable[tuple[str, TypeAdapter[Any]]]:
        return [(name, adapter) for name, adapter in self._adapters.items() if name in arguments]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tool, self.rich, self.whole)


def as_whole(value: Any) -> Any:
    """The value with an int for each float in it."""
    if type(value) is list:
        return [as_whole(item) for item in value]
    if type(value) is dict:
        return {name: as_whole(item) for name, item in value.items()}
    return int(value) if type(value) is float else value


def complaints(error: ValidationError, tool: str, *within: str, given: Any = None) -> dict[str, str]:
    """What pydantic says is wrong with a tool's arguments, by its path in what was ``given`` if that is known."""
    told: dict[str, list[str]] = {}
    for each in error.errors(include_url=False, include_input=False):
        place = each["loc"] if given is None else _place(each["loc"], given, each["type"].startswith("missing"))
        complaint = f"{each['msg'][:1].lower()}{each['msg'][1:]}"
        told.setdefault(".".join([*within, *map(str, place)]), []).append(complaint)
    return {
        path: f"{f'argument {path!r}' if path else 'the arguments'} of tool {tool!r}: "
        + "; nor can it be another: ".join(dict.fromkeys(reasons))
        for path, reasons in told.items()
    }


def _place(named: Sequence[int | str], given: Any, is_missing: bool) -> Iterator[int | str]:
    """Without the alternatives of a union that pydantic names on the way."""
    for part in named:
        try:
            given = given[part]
        except (LookupError, TypeError):
            continue
        yield part
    if is_missing:
        yield named[-1]


def validated(adapter: TypeAdapter[Any], value: Any, tool: str) -> Any:
    """ValidationError if it is wrong; what else a validator raises is the tool's failure."""
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        try:  # what is strict takes a date or a tuple from JSON alone
            return adapter.validate_json(json.dumps(value))
        except ValidationError:
            raise error from None
    except Exception as error:
        raise as_failure(tool, error) from error


@dataclass(eq=False)
class OpenDecoder(Decoder):
    """A decoder that also makes values for parameters that were not given, types those that have no parameter, and
    knows parameters by another name.
    """

    fields: dict[str, FieldInfo] = field(default_factory=dict)
    """Parameters whose default is a ``Field(...)``: a default factory is asked at each call."""
    names: frozenset[str] = frozenset()
    """Every parameter; an argument of another name goes into ``**arguments``."""
    rest: Any = Any
    """The annotation of ``**arguments``."""
    aliases: dict[str, str] = field(default_factory=dict)
    """The parameter that an argument of another name is for."""

    @cached_property
    def _rest(self) -> TypeAdapter[Any]:
        return TypeAdapter(self.rest)

    def __call__(self, arguments: dict[str, Any]) -> dict[str, Any]:
        decoded = dict(super().__call__(arguments))
        if not self.rich and self.rest is not Any:
            decoded = self._decoded(decoded)
        for name, given in self.fields.items():
            if name not in decoded:
                decoded[name] = self._default(given)
        return {self.aliases.get(name, name): value for name, value in decoded.items()} if self.aliases else decoded

    def _adapters_for(self, arguments: Mapping[str, Any]) -> Iterable[tuple[str, TypeAdapter[Any]]]:
        others = () if self.rest is Any else arguments.keys() - self.names
        return [*super()._adapters_for(arguments), *((name, self._rest) for name in others)]

    def _default(self, given: FieldInfo) -> Any:
        try:
            return given.get_default(call_default_factory=True, validated_data={})
        except Exception as error:
            raise as_failure(self.tool, error) from error

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.tool, self.rich, self.whole, self.fields, self.names, self.rest, self.aliases)


def decoder(
    annotations: Mapping[str, Any],
    tool: str,
    fields: Mapping[str, FieldInfo],
    rest: Any = Any,
    aliases: Mapping[str, str] = MappingProxyType({}),
) -> Decoder | None:
    """A decoder for a function's parameters; None if JSON values are what it wants already."""
    plain = {name: plain_schema(hint) for name, hint in annotations.items()}
    rich = {name: hint for name, hint in annotations.items() if plain[name] is None}
    whole = tuple(name for name, schema in plain.items() if schema is not None and is_whole(schema))
    if (schema := plain_schema(rest)) is not None and not is_whole(schema):
        rest = Any
    if fields or aliases or rest is not Any:
        return OpenDecoder(tool, rich, whole, dict(fields), frozenset(annotations), rest, dict(aliases))
    return Decoder(tool, rich, whole) if rich or whole else None

"""Python annotations as JSON Schema, and JSON values back as what the annotations promise.

Plain types are translated by a table: a thousand tools must not cost a thousand pydantic models. Everything else goes
to pydantic, all of a function's types at once, so that models of the same name get different definitions.
"""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import PydanticUserError, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError

from toolcrib.core.errors import InvalidArgumentsError, ToolValidationError
from toolcrib.core.schema import JsonSchema

_SIMPLE: dict[Any, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    Any: {},
    list: {"type": "array"},
    dict: {"type": "object"},
}
_LITERALS: dict[type, str] = {str: "string", int: "integer", bool: "boolean"}
_Mode = Literal["validation", "serialization"]


def plain_schema(annotation: Any) -> JsonSchema | None:
    """The schema of an annotation whose JSON values are its Python values; None if pydantic is needed."""
    try:
        simple = _SIMPLE.get(annotation)
    except TypeError:  # unhashable: a Literal of a list, say
        return None
    if simple is not None:
        return dict(simple)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return _literal_schema(args)
    if origin is list:
        items = plain_schema(args[0])
        return None if items is None else {"type": "array", "items": items} if items else {"type": "array"}
    if origin is dict and args[0] is str:
        values = plain_schema(args[1])
        return None if values is None else {"type": "object", "additionalProperties": values or True}
    if origin is Union or origin is types.UnionType:
        choices = [plain_schema(arg) for arg in args]
        return None if any(choice is None for choice in choices) else {"anyOf": choices}
    if origin is Annotated and all(isinstance(note, str) for note in args[1:]):
        schema = plain_schema(args[0])
        return None if schema is None else schema | {"description": args[1]}
    return None


def _literal_schema(values: tuple[Any, ...]) -> JsonSchema | None:
    kinds = {type(value) for value in values}
    if not kinds <= _LITERALS.keys():
        return None
    schema: JsonSchema = {"const": values[0]} if len(values) == 1 else {"enum": list(values)}
    if len(kinds) == 1:
        schema["type"] = _LITERALS[kinds.pop()]
    return schema


def schemas(annotations: Mapping[str, Any], mode: _Mode, tool: str) -> tuple[dict[str, JsonSchema], dict[str, Any]]:
    """A schema for each annotation, and the definitions (``$defs``) that they share."""
    found: dict[str, JsonSchema] = {}
    rich: dict[str, TypeAdapter[Any]] = {}
    for name, annotation in annotations.items():
        schema = plain_schema(annotation)
        if schema is None:
            rich[name] = _adapter(name, annotation, tool)
        else:
            found[name] = schema
    if not rich:
        return found, {}
    try:
        by_key, shared = TypeAdapter.json_schemas([(name, mode, adapter) for name, adapter in rich.items()])
    except (PydanticInvalidForJsonSchema, PydanticUserError) as error:
        raise _unknown_type(tool, ", ".join(map(repr, rich)), error) from None
    for (name, _), schema in by_key.items():
        found[name] = _with_text_note(schema, annotations[name])
    return found, shared.get("$defs", {})


def _with_text_note(schema: JsonSchema, annotation: Any) -> JsonSchema:
    notes = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    text = next((note for note in notes if isinstance(note, str)), None)
    return schema if text is None or "description" in schema else schema | {"description": text}


def _adapter(name: str, annotation: Any, tool: str) -> TypeAdapter[Any]:
    try:
        return TypeAdapter(annotation)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise _unknown_type(tool, repr(name), error) from None


def _unknown_type(tool: str, where: str, error: Exception) -> ToolValidationError:
    reason = str(error).splitlines()[0]
    return ToolValidationError(f"the type of {where} in tool {tool!r} has no JSON Schema: {reason}")


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
            for name, adapter in self._adapters.items():
                if name in decoded:
                    decoded[name] = self._decoded(name, adapter, decoded[name])
        return decoded

    def _decoded(self, name: str, adapter: TypeAdapter[Any], value: Any) -> Any:
        try:
            return adapter.validate_python(value)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            path = ".".join([name, *map(str, first["loc"])])
            raise InvalidArgumentsError(
                f"argument {path!r} of tool {self.tool!r}: {first['msg'][:1].lower()}{first['msg'][1:]}",
                tool=self.tool,
                argument=path,
            ) from None

    def __reduce__(self) -> tuple[Any, ...]:
        return Decoder, (self.tool, self.rich, self.whole)


def decoder(annotations: Mapping[str, Any], tool: str) -> Decoder | None:
    """A decoder for a function's parameters; None if JSON values are what it wants already."""
    rich = {name: hint for name, hint in annotations.items() if plain_schema(hint) is None}
    whole = tuple(name for name, hint in annotations.items() if hint is int)
    return Decoder(tool, rich, whole) if rich or whole else None


def type_hints(function: Any, frames: typing.Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The function's annotations, evaluated; names local to the place of definition are looked up in ``frames``."""
    try:
        return typing.get_type_hints(function, include_extras=True)
    except NameError:
        for names in frames:
            try:
                return typing.get_type_hints(function, localns=dict(names), include_extras=True)
            except NameError:
                continue
        raise

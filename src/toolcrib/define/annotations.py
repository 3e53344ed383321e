"""Python annotations as JSON Schema.

Plain types are translated by a table: a thousand tools must not cost a thousand pydantic models. Everything else goes
to pydantic, all of a function's types at once, so that models of the same name get different definitions.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

from pydantic import PydanticUserError, SecretStr, TypeAdapter
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError, PydanticUndefinedAnnotation
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind
from pydantic_core import PydanticSerializationError

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.json import in_order
from toolcrib.core.schema import JsonSchema

_SIMPLE: dict[Any, JsonSchema] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    type(None): {"type": "null"},
    None: {"type": "null"},
    typing.LiteralString: {"type": "string"},
    Any: {},
    list: {"type": "array"},
    dict: {"type": "object"},
}
_LITERALS: dict[type, str] = {str: "string", int: "integer", bool: "boolean"}
_NO_FRACTIONS = frozenset({"integer", "string", "boolean", "null"})
_Mode = Literal["validation", "serialization"]
_NO_SCHEMA = (PydanticInvalidForJsonSchema, PydanticUserError, PydanticSerializationError)


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


def is_whole(schema: JsonSchema) -> bool:
    """Whether there are numbers in what a plain schema takes, and each of them is a whole one."""
    kinds = set(_kinds_in(schema))
    return "integer" in kinds and kinds <= _NO_FRACTIONS


def _kinds_in(schema: JsonSchema) -> Iterator[str]:
    """The types of what is in it, below arrays and objects; empty for what may be anything."""
    for branch in schema.get("anyOf", (schema,)):
        inside = branch.get("items", branch.get("additionalProperties"))
        if isinstance(inside, dict):
            yield from _kinds_in(inside)
        else:
            yield branch.get("type", "")


class Generator(GenerateJsonSchema):
    """pydantic's own, without the defaults that a call cannot give: secrets, and what JSON has no word for."""

    def encode_default(self, dft: Any) -> Any:
        encoded = in_order(dft, super().encode_default(dft))
        if _HIDDEN_SECRET in json.dumps(encoded):
            raise PydanticSerializationError("a secret")
        return encoded

    def emit_warning(self, kind: JsonSchemaWarningKind, detail: str) -> None:
        if kind != "non-serializable-default":
            super().emit_warning(kind, detail)


_HIDDEN_SECRET = str(SecretStr("a"))


class Schemas(NamedTuple):
    """A schema for each annotation, the definitions (``$defs``) that they share, and what reads the richer ones."""

    found: dict[str, JsonSchema]
    definitions: dict[str, Any]
    adapters: dict[str, TypeAdapter[Any]]


def schemas(annotations: Mapping[str, Any], mode: _Mode, tool: str) -> Schemas:
    """The schemas of a function's annotations; ToolValidationError names the one that has none."""
    found: dict[str, JsonSchema] = {}
    rich: dict[str, TypeAdapter[Any]] = {}
    for name, annotation in annotations.items():
        schema = plain_schema(annotation)
        if schema is None:
            rich[name] = _adapter(name, annotation, mode, tool)
        else:
            found[name] = schema
    if not rich:
        return Schemas(found, {}, rich)
    try:
        by_key, shared = TypeAdapter.json_schemas(
            [(name, mode, adapter) for name, adapter in rich.items()], schema_generator=Generator
        )
    except _NO_SCHEMA as error:
        culprit = next((name for name, adapter in rich.items() if not _has_schema(adapter, mode)), next(iter(rich)))
        raise _unknown_type(tool, culprit, annotations[culprit], error) from None
    for (name, _), schema in by_key.items():
        found[name] = _with_text_note(schema, annotations[name])
    return Schemas(found, shared.get("$defs", {}), rich)


def _has_schema(adapter: TypeAdapter[Any], mode: _Mode) -> bool:
    try:
        adapter.json_schema(mode=mode, schema_generator=Generator)
    except _NO_SCHEMA:
        return False
    return True


def _with_text_note(schema: JsonSchema, annotation: Any) -> JsonSchema:
    notes = get_args(annotation)[1:] if get_origin(annotation) is Annotated else ()
    text = next((note for note in notes if isinstance(note, str)), None)
    return schema if text is None or "description" in schema else schema | {"description": text}


def _adapter(name: str, annotation: Any, mode: _Mode, tool: str) -> TypeAdapter[Any]:
    try:
        if mode == "validation" and _wants_a_class(annotation):  # of which pydantic says that anything would do
            raise PydanticInvalidForJsonSchema("a class")
        return TypeAdapter(annotation)
    except (PydanticUndefinedAnnotation, PydanticUserError, TypeError, ImportError) as error:
        raise _unknown_type(tool, name, annotation, error) from None


def _wants_a_class(annotation: Any) -> bool:
    if annotation is type or get_origin(annotation) is type:
        return True
    return get_origin(annotation) is not Literal and any(map(_wants_a_class, get_args(annotation)))


def _unknown_type(tool: str, name: str, annotation: Any, error: Exception) -> ToolValidationError:
    shown = annotation.__name__ if isinstance(annotation, type) else str(annotation)
    if isinstance(error, PydanticUserError) and error.code == "class-not-fully-defined":
        reason = f"{shown} is not fully defined; define what it names before it, or call its model_rebuild()"
    elif isinstance(error, PydanticSchemaGenerationError | PydanticInvalidForJsonSchema | PydanticSerializationError):
        reason = (
            f"{shown} cannot be made from JSON; use plain types, a dataclass, a TypedDict or a pydantic model, "
            "and make the rest of them in the function"
        )
    else:
        reason = str(error).splitlines()[0]
    return ToolValidationError(f"the type of {name!r} in tool {tool!r} has no JSON Schema: {reason}")

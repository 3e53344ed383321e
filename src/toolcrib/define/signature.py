"""What a function's signature says of it as a tool."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, PydanticUndefined, to_jsonable_python

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.define.annotations import Decoder, decoder, schemas, type_hints
from toolcrib.define.docstrings import Docstring, read_docstring

_NO_SCHEMA = (inspect.Signature.empty, Any, ToolResult)


@dataclass(frozen=True, slots=True)
class Interface:
    """A function as a model sees it."""

    docstring: Docstring
    parameters: JsonSchema
    returns: JsonSchema
    context_parameter: str | None
    decode: Decoder | None


def read_signature(function: Callable[..., Any], tool: str) -> Interface:
    """Everything the signature and the docstring tell; ToolValidationError names the parameter that is wrong."""
    docstring = read_docstring(function.__doc__)
    signature = inspect.signature(function)
    hints = _hints(function, tool)
    annotations: dict[str, Any] = {}
    defaults: dict[str, Any] = {}
    context_parameter, open_ended = None, False
    for name, parameter in signature.parameters.items():
        hint = hints.get(name, Any)
        if isinstance(hint, type) and issubclass(hint, ToolContext):
            context_parameter = name
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            open_ended = True
            continue
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise ToolValidationError(
                f"parameter {name!r} of tool {tool!r} cannot be given by name; tools are called with named arguments"
            )
        annotations[name], defaults[name] = _split_field(hint, parameter.default)
    found, definitions = schemas(annotations, "validation", tool)
    return Interface(
        docstring,
        _object_schema(found, defaults, definitions, docstring.parameters, open_ended),
        _returned(hints.get("return", signature.return_annotation), tool),
        context_parameter,
        decoder(annotations, tool),
    )


def _split_field(hint: Any, default: Any) -> tuple[Any, Any]:
    """An annotation and a default; ``x: int = Field(3, ge=0)`` says ``x: Annotated[int, Field(ge=0)] = 3``."""
    if not isinstance(default, FieldInfo):
        return hint, default
    value = default.get_default(call_default_factory=True, validated_data={})
    return Annotated[hint, default], inspect.Parameter.empty if value is PydanticUndefined else value


def _object_schema(
    found: Mapping[str, JsonSchema],
    defaults: Mapping[str, Any],
    definitions: Mapping[str, Any],
    descriptions: Mapping[str, str],
    open_ended: bool,
) -> JsonSchema:
    properties: dict[str, JsonSchema] = {}
    required = []
    for name, default in defaults.items():
        schema = found[name]
        if name in descriptions and "description" not in schema:
            schema["description"] = descriptions[name]
        if default is inspect.Parameter.empty:
            required.append(name)
        elif "default" not in schema:
            _note_default(schema, default)
        properties[name] = schema
    parameters: JsonSchema = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    parameters["additionalProperties"] = open_ended
    if definitions:
        parameters["$defs"] = dict(definitions)
    return parameters


def _note_default(schema: JsonSchema, default: Any) -> None:
    try:
        schema["default"] = to_jsonable_python(default)
    except PydanticSerializationError:
        pass  # the function fills it in by itself; a model cannot be told


def _returned(annotation: Any, tool: str) -> JsonSchema:
    if annotation in _NO_SCHEMA or (isinstance(annotation, type) and issubclass(annotation, ToolResult)):
        return {}
    try:
        found, definitions = schemas({"return": annotation}, "serialization", tool)
    except ToolValidationError:
        return {}  # a result of any Python type is fine: it is checked only if a schema can say how
    return found["return"] | ({"$defs": definitions} if definitions else {})


def _hints(function: Callable[..., Any], tool: str) -> dict[str, Any]:
    try:
        return type_hints(function, _outer_frames())
    except (NameError, TypeError, SyntaxError) as error:
        raise ToolValidationError(f"the annotations of tool {tool!r} cannot be read: {error}") from None


def _outer_frames() -> Iterator[Mapping[str, Any]]:
    frame = sys._getframe(1)
    while frame := frame.f_back:  # type: ignore[assignment]
        if not frame.f_globals.get("__name__", "").startswith("toolcrib.define"):
            yield frame.f_locals

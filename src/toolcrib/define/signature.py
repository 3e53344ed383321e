"""What a function's signature says of it as a tool."""

from __future__ import annotations

import collections.abc
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.json import check_json, in_order
from toolcrib.core.positions import ByPosition
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.define.annotations import Schemas, schemas
from toolcrib.define.callables import docstring_of, filled_in, is_generator, signature_of
from toolcrib.define.decoding import Decoder, decoder
from toolcrib.define.docstrings import Docstring, read_docstring
from toolcrib.define.hints import accepted, type_hints
from toolcrib.define.parameters import Closed, Parameters, Unsaid, read_parameters

_NO_SCHEMA = (Any, ToolResult)
_ITEMS = frozenset(
    getattr(collections.abc, name)
    for name in ("AsyncGenerator", "AsyncIterable", "AsyncIterator", "Generator", "Iterable", "Iterator")
)


@dataclass(frozen=True, slots=True)
class Interface:
    """A function as a model sees it, and how a call by name reaches it."""

    docstring: Docstring
    parameters: JsonSchema
    returns: JsonSchema
    context_parameter: str | None
    decode: Decoder | None
    leading: tuple[str, ...] = ()
    star: str = ""

    def by_name(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """What takes every argument by name: the function itself, unless it wants some by position."""
        return ByPosition(function, self.leading, self.star) if self.leading or self.star else function


def read_signature(function: Callable[..., Any], tool: str) -> Interface:
    """Everything the signature and the docstring tell; ToolValidationError names the parameter that is wrong."""
    docstring = read_docstring(docstring_of(function))
    signature = signature_of(function, tool)
    hints = type_hints(function, signature, tool)
    hidden = filled_in(function)
    read = read_parameters(signature, hints, hidden, tool)
    rest = {} if read.rest is Closed else {read.rest_name: read.rest}
    made = schemas(read.annotations | rest, "validation", tool)
    parameters = _object_schema(read, made, docstring.parameters)
    if rest and (taken := hidden.union(read.aliases.values()).difference(read.annotations)):
        parameters["propertyNames"] = {"not": {"enum": sorted(taken)}}  # no way to them through **arguments
    fields = {name: given for name, given in read.fields.items() if "default" not in made.found[name]}
    return Interface(
        docstring,
        parameters,
        _returned(hints.get("return", Any), is_generator(function), tool),
        read.context,
        decoder(read.annotations, tool, fields, Any if read.rest is Closed else read.rest, read.aliases),
        read.leading,
        read.star,
    )


def _object_schema(read: Parameters, made: Schemas, descriptions: Mapping[str, str]) -> JsonSchema:
    properties: dict[str, JsonSchema] = {}
    required = []
    for name, default in read.defaults.items():
        schema = made.found[name]
        written = read.aliases.get(name, name)
        if written in descriptions and "description" not in schema:
            schema["description"] = descriptions[written]
        if default is inspect.Parameter.empty:
            required.append(name)
        elif default is not Unsaid and "default" not in schema:
            _note_default(schema, default, read.annotations[name], made.adapters.get(name))
        properties[name] = schema
    parameters: JsonSchema = {"type": "object", "properties": properties}
    if required:
        parameters["required"] = required
    parameters["additionalProperties"] = False if read.rest is Closed else made.found[read.rest_name] or True
    if made.definitions:
        parameters["$defs"] = dict(made.definitions)
    return parameters


def _note_default(schema: JsonSchema, default: Any, annotation: Any, adapter: TypeAdapter[Any] | None) -> None:
    """Only what comes back as it was: a call without the argument is given this."""
    try:
        jsonable = check_json(in_order(default, to_jsonable_python(default)))
        same = _comes_back(default, jsonable, annotation, adapter)
    except (PydanticSerializationError, ValidationError, ValueError):
        return  # the function fills it in by itself; a model cannot be told
    if same:
        schema["default"] = jsonable


def _comes_back(default: Any, jsonable: Any, annotation: Any, adapter: TypeAdapter[Any] | None) -> bool:
    """Whether ``jsonable`` is the default, once it is of the annotation's type."""
    if adapter is None and annotation is not Any:
        return bool(jsonable == (list(default) if type(default) is tuple else default))
    if adapter is not None:
        default, jsonable = adapter.validate_python(default), adapter.validate_python(jsonable)
    return type(jsonable) is type(default) and bool(jsonable == default)


def _says_nothing(annotation: Any) -> bool:
    """Whether there is no telling what comes: a ToolResult may have any data."""
    if get_origin(annotation) in (Annotated, Union, types.UnionType):
        return any(map(_says_nothing, get_args(annotation)))
    return annotation in _NO_SCHEMA or (isinstance(annotation, type) and issubclass(annotation, ToolResult))


def _returned(annotation: Any, yields: bool, tool: str) -> JsonSchema:
    if get_origin(annotation) in _ITEMS:
        annotation = list[get_args(annotation)[0]]  # type: ignore[misc]
    elif yields:
        annotation = list
    if _says_nothing(annotation):
        return {}
    try:
        annotation = accepted(annotation)
        made = schemas({"return": annotation}, "serialization", tool)
    except ToolValidationError:
        # A result of any Python type is fine: it is checked only if a schema can say how.
        return {"type": "array"} if yields else {}
    return made.found["return"] | ({"$defs": made.definitions} if made.definitions else {})

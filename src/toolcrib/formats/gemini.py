"""Gemini's function declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec, no_parameters
from toolcrib.formats.calls import Call, call_arguments, text_of
from toolcrib.formats.gemini_schema import GeminiSchema
from toolcrib.formats.imports import spec_from
from toolcrib.formats.jsonable import as_json, as_text, copied
from toolcrib.formats.losses import Loss
from toolcrib.formats.naming import NameRule
from toolcrib.formats.schemas import object_schema

NAMES = NameRule(r"A-Za-z0-9_.\-", 64, first="A-Za-z_")


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    """A tool without parameters has no ``parameters``: Gemini refuses an object without properties."""
    given: dict[str, Any] = {"name": name, "description": spec.description}
    schema = GeminiSchema(spec.name, spec.parameters, losses).convert(object_schema(spec, [], "Gemini"), "parameters")
    if schema.get("properties"):
        given["parameters"] = schema
    if spec.returns:
        losses.append(Loss(spec.name, "returns", "a Gemini declaration is made without an output schema"))
    return given


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    """Reads ``parameters`` (Gemini's own subset) and ``parametersJsonSchema`` (JSON Schema as it is)."""
    plain = given.get("parametersJsonSchema")
    parameters = copied(plain) if plain else _json_schema(given.get("parameters") or no_parameters())
    return spec_from(given.get("name"), description=given.get("description"), parameters=parameters)


def _json_schema(schema: Any) -> Any:
    """Gemini's subset as JSON Schema: lower-case types, and null as a type of its own."""
    if not isinstance(schema, Mapping):
        return schema
    converted: JsonSchema = {}
    for key, value in schema.items():
        match key:
            case "type" if isinstance(value, str):
                converted["type"] = value.lower()
            case "properties" if isinstance(value, Mapping):
                converted["properties"] = {name: _json_schema(sub) for name, sub in value.items()}
            case "items":
                converted["items"] = _json_schema(value)
            case "anyOf" if isinstance(value, list):
                converted["anyOf"] = [_json_schema(sub) for sub in value]
            case "example":
                converted["examples"] = [copied(value)]
            case "nullable" | "propertyOrdering":
                pass
            case _:
                converted[key] = copied(value)
    if schema.get("nullable") and isinstance(converted.get("type"), str):
        converted["type"] = [converted["type"], "null"]
        if isinstance(converted.get("enum"), list):
            converted["enum"].append(None)
    return converted


def parse_call(call: Mapping[str, Any]) -> Call:
    """A ``functionCall``, or the part that holds one. Its name stands in for the id that older models leave out."""
    inner = call.get("functionCall", call)
    body = inner if isinstance(inner, Mapping) else {}
    name = text_of(body, "name", "Gemini")
    return Call(name, call_arguments(body.get("args"), name), str(body.get("id") or name))


def render_result(call_id: str, result: ToolResult, name: str) -> dict[str, Any]:
    name = name or call_id
    identity = {"id": call_id} if call_id != name else {}
    failure = {"error": as_text(result.error or "the tool failed")}
    response = {"output": as_json(result.data)} if result.success else failure
    return {"functionResponse": {**identity, "name": name, "response": response}}

"""Gemini's function declarations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.content import Audio, File, Image, Json, Part, Text, base64_of, parts_of
from toolcrib.core.json import as_json, as_text, copied
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.naming import NameRule
from toolcrib.formats.plain import plain
from toolcrib.formats.provider import BEGUN, Asked, Loss, asked, error_of, part_text, spec_from
from toolcrib.formats.rewriting import Subset, rewritten, rewritten_output

NAMES = NameRule(r"A-Za-z0-9_.\-", 64, first="A-Za-z_")
_MEDIA = frozenset({"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"})
"""What it takes in the answer to a call, which is less than in a prompt; with any other it refuses the request."""

SUBSET = Subset(
    "Gemini",
    frozenset({
        "title", "description", "default", "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems",
        "maxItems", "minProperties", "maxProperties", "propertyOrdering",
    }),
    frozenset({"enum", "date-time", "date", "time", "float", "double", "int32", "int64"}),
    tuples=True,
    enums=(str, int, float),
)  # fmt: skip


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    """In JSON Schema, which its API takes beside its own subset of OpenAPI.

    A tool without parameters has no schema: Gemini refuses an object without properties.
    """
    given: dict[str, Any] = {"name": name, "description": spec.description}
    schema = rewritten(spec, SUBSET, losses)
    if schema.get("properties"):
        given["parametersJsonSchema"] = schema
    if spec.returns and (output := rewritten_output(spec, SUBSET, losses)):
        given["responseJsonSchema"] = output
    return given


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    """Reads JSON Schema as it is, and ``parameters`` in Gemini's own subset of OpenAPI."""
    parameters = given.get("parametersJsonSchema") or given.get("parameters_json_schema")
    returns = given.get("responseJsonSchema") or given.get("response_json_schema")
    return spec_from(given, parameters or _json_schema(given.get("parameters")), returns=copied(returns))


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


def read_call(call: Mapping[str, Any]) -> Asked:
    """A ``functionCall``, or the part that holds one. Its name stands in for the id that older models leave out."""
    inner = call.get("functionCall", call.get("function_call"))
    body = plain(inner) or (call if inner is None else {})
    arguments = body.get("args")
    if body.get("willContinue") or body.get("will_continue"):
        arguments = BEGUN  # Vertex AI streams arguments one by one, if it is asked to: the others are elsewhere
    return asked(body.get("name"), arguments, body.get("id") or body.get("name"))


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:
    name = name or call_id
    answer: dict[str, Any] = {"id": call_id} if call_id != name else {}
    answer |= {"name": name}
    if not result.success:
        return {"functionResponse": answer | {"response": {"error": as_text(error_of(result))}}}
    parts = parts_of(result.data)
    match parts:
        case (Text(value),) | (Json(value),):
            return {"functionResponse": answer | {"response": {"output": as_json(value)}}}
    told = "\n".join(part_text(part, name, losses, "Gemini") for part in parts if not takes(part))
    media = [
        {"inlineData": {"mimeType": part.media_type, "data": base64_of(part.data)}}
        for part in parts
        if isinstance(part, Image | Audio | File) and takes(part)
    ]
    return {"functionResponse": answer | {"response": {"output": told}} | ({"parts": media} if media else {})}


def takes(part: Part) -> bool:
    return isinstance(part, Image | Audio | File) and part.media_type in _MEDIA and part.data != b""


def together(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One turn that holds them all."""
    return [{"role": "user", "parts": answers}] if answers else []

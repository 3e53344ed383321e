"""Anthropic's tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolcrib.core.content import SIMPLE, File, Image, Part, Text, ToolReferences, base64_of, parts_of
from toolcrib.core.json import as_text, check_json, copied
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema, compile_schema
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.naming import NameRule
from toolcrib.formats.provider import IMAGES, Asked, Loss, arguments_of, asked, error_of, part_text, spec_from
from toolcrib.formats.schemas import object_schema, properties_of, required_of
from toolcrib.formats.strict import ANTHROPIC, not_strict, schemas_in, strict_schema

NAMES = NameRule(r"A-Za-z0-9_\-", 128)

_FORBIDDEN_AT_THE_TOP = ("oneOf", "anyOf", "allOf")
_PDF = "application/pdf"
_PARAMETER = re.compile(r"[A-Za-z0-9_.\-]{1,64}")
INVALID_JSON = "INVALID_JSON"
"""The key under which a text goes back that is no input, as the documentation of fine-grained tool streaming says."""
CUT_OFF = ("max_tokens", "model_context_window_exceeded", "refusal")
"""Why a message stopped in the middle of what it says, so that a call at its end is not whole."""

MOST_STRICT = {"strict tools": 20, "optional parameters": 24, "parameters of several types": 16}
"""In one request, all its strict tools together."""


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    return _definition(spec, name, losses, object_schema(spec, losses, "Anthropic", _FORBIDDEN_AT_THE_TOP))


class StrictDefinitions:
    """The definitions of one request, strict as long as there is room: the first tools are served first."""

    def __init__(self) -> None:
        self._left = dict(MOST_STRICT)

    def __call__(self, spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
        found: list[Loss] = []
        schema = strict_schema(spec, ANTHROPIC, found)
        if schema is not None and (lacking := self._lacking(schema)):
            reason = f"with the tools before it there are more than {MOST_STRICT[lacking]} {lacking}"
            schema, found = None, [not_strict(spec.name, "parameters", reason)]
        losses += found
        if schema is None:
            return definition(spec, name, losses) | {"strict": False}
        return _definition(spec, name, losses, schema) | {"strict": True}

    def _lacking(self, schema: JsonSchema) -> str | None:
        """What there is no room for; if there is for everything, the room is taken."""
        left = dict(self._left)
        left["strict tools"] -= 1
        for part in schemas_in(schema):
            properties = properties_of(part)
            left["optional parameters"] -= len(properties) - len(required_of(part))
            left["parameters of several types"] -= sum(
                "anyOf" in each or isinstance(each.get("type"), list) for each in properties.values()
            )
        lacking = next((what for what, room in left.items() if room < 0), None)
        if lacking is None:
            self._left = left
        return lacking


def _definition(spec: ToolSpec, name: str, losses: list[Loss], schema: JsonSchema) -> dict[str, Any]:
    if spec.returns:
        losses.append(Loss(spec.name, "returns", "Anthropic has no place for an output schema"))
    losses += [
        Loss(spec.name, f"parameters.properties.{parameter}", "Anthropic refuses parameters of such a name")
        for parameter in schema["properties"]
        if not _PARAMETER.fullmatch(parameter)
    ]
    given: dict[str, Any] = {"name": name, "description": spec.description, "input_schema": schema}
    if examples := _examples(spec, schema, losses):
        given["input_examples"] = examples
    return given


def _examples(spec: ToolSpec, schema: JsonSchema, losses: list[Loss]) -> list[dict[str, Any]]:
    """The inputs of the examples that fit: a definition with one that does not is refused."""
    inputs = [(number, example.input) for number, example in enumerate(spec.examples) if example.input]
    if not inputs:
        return []
    takes = compile_schema(schema, f"the parameters of {spec.name!r}").is_valid
    fitting = []
    for number, given in inputs:
        if takes(given):
            fitting.append(copied(given))
        else:
            losses.append(Loss(spec.name, f"examples.{number}.input", "it does not fit the parameters"))
    return fitting


def add_cache_control(definitions: list[dict[str, Any]]) -> None:
    """Whatever comes before the last definition that is not deferred, and that itself, is cached."""
    for definition in reversed(definitions):
        if not definition.get("defer_loading"):
            definition["cache_control"] = {"type": "ephemeral"}
            return


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    inputs = given.get("input_examples")
    examples = [{"input": copied(each)} for each in inputs] if isinstance(inputs, list) and inputs else None
    return spec_from(given, given.get("input_schema"), examples=examples)


def read_call(call: Mapping[str, Any]) -> Asked:
    """A ``tool_use`` block."""
    return asked(call.get("name"), _said(call), call.get("id"))


def _said(call: Mapping[str, Any]) -> Any:
    """The input as the model said it, which may be no JSON."""
    given = call.get("input")
    if type(given) is dict and INVALID_JSON in given and len(given) == 1 and type(given[INVALID_JSON]) is str:
        return given[INVALID_JSON]
    return given


def input_of(text: str) -> dict[str, Any]:
    """What a model said as the input of a call, as it can be sent back: the API refuses whatever is no JSON object."""
    try:
        value: dict[str, Any] = check_json(arguments_of(asked("input", text, ""), "Anthropic"))
    except ValueError:
        return {INVALID_JSON: text}
    return value


def cut_off(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call that the model did not finish: its input without an end, however whole it looks."""
    said = _said(call)
    return {**call, "input": {INVALID_JSON: said if isinstance(said, str) else as_text(said or {})[:-1]}}


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:
    content: Any
    if result.success and type(result.data) in SIMPLE:
        content = as_text(result.data)
        return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": False}
    parts = parts_of(result.data) if result.success else (Text(error_of(result)),)
    if len(parts) == 1 and isinstance(parts[0], ToolReferences) and parts[0].tools:
        content = [{"type": "tool_reference", "tool_name": NAMES.apply(spec.name)} for spec in parts[0].tools]
        return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": False}
    if any(map(takes, parts)):
        blocks = [_block(part, name, losses) for part in parts]
        content = [block for block in blocks if block.get("text", "?").strip()]  # a blank text is refused
    else:
        content = "\n".join(part_text(part, name, losses, "Anthropic") for part in parts)
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": not result.success}


def takes(part: Part) -> bool:
    if isinstance(part, Image):
        return part.media_type in IMAGES and part.data != b""
    return isinstance(part, File) and part.media_type == _PDF and part.data != b""


def _block(part: Part, name: str, losses: list[Loss]) -> dict[str, Any]:
    match part:
        case Image(data, media_type) if takes(part):
            return {"type": "image", "source": _source(data, media_type)}
        case File(data, media_type) if takes(part):
            return {"type": "document", "source": _source(data, media_type)}
    return {"type": "text", "text": part_text(part, name, losses, "Anthropic")}


def _source(data: bytes, media_type: str) -> dict[str, str]:
    return {"type": "base64", "media_type": media_type, "data": base64_of(data)}


def together(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One message that holds them all, as the API wants it."""
    return [{"role": "user", "content": answers}] if answers else []

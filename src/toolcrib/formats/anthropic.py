"""Anthropic's tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolcrib.core.content import SIMPLE, File, Image, Part, Text, base64_of, parts_of
from toolcrib.core.json import as_text
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.naming import NameRule
from toolcrib.formats.provider import Asked, Loss, asked, error_of, part_text, spec_from
from toolcrib.formats.schemas import object_schema

NAMES = NameRule(r"A-Za-z0-9_\-", 128)

_FORBIDDEN_AT_THE_TOP = ("oneOf", "anyOf", "allOf")
_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_PDF = "application/pdf"
_PARAMETER = re.compile(r"[A-Za-z0-9_.\-]{1,64}")


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    if spec.returns:
        losses.append(Loss(spec.name, "returns", "Anthropic has no place for an output schema"))
    schema = object_schema(spec, losses, "Anthropic", _FORBIDDEN_AT_THE_TOP)
    losses += [
        Loss(spec.name, f"parameters.properties.{parameter}", "Anthropic refuses parameters of such a name")
        for parameter in schema["properties"]
        if not _PARAMETER.fullmatch(parameter)
    ]
    return {"name": name, "description": spec.description, "input_schema": schema}


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    return spec_from(given, given.get("input_schema"))


def read_call(call: Mapping[str, Any]) -> Asked:
    """A ``tool_use`` block."""
    return asked(call.get("name"), call.get("input"), call.get("id"))


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:
    content: Any
    if result.success and type(result.data) in SIMPLE:
        content = as_text(result.data)
        return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": False}
    parts = parts_of(result.data) if result.success else (Text(error_of(result)),)
    if any(map(takes, parts)):
        content = [_block(part, name, losses) for part in parts]
    else:
        content = "\n".join(part_text(part, name, losses, "Anthropic") for part in parts)
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": not result.success}


def takes(part: Part) -> bool:
    return (isinstance(part, Image) and part.media_type in _IMAGES) or (
        isinstance(part, File) and part.media_type == _PDF
    )


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

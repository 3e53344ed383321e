"""The Model Context Protocol's tools.

A result's structured content is an object in every version of the protocol but the newest, so a result that is none is
wrapped as ``{"result": ...}``, and its schema likewise.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, unquote

from toolcrib.core.content import (
    Audio,
    File,
    Image,
    Json,
    Link,
    Part,
    ToolReferences,
    base64_of,
    part_of_base64,
    parts_of,
)
from toolcrib.core.content import Text as TextPart
from toolcrib.core.json import as_json, as_text, copied, write_json
from toolcrib.core.result import ToolResult
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.naming import ANY_NAME
from toolcrib.formats.plain import plain
from toolcrib.formats.provider import Asked, Loss, asked, error_of, spec_from
from toolcrib.formats.schemas import object_schema, with_root_resolved

NAMES = ANY_NAME
WRAPPED = "result"
ANNOTATIONS = "mcp_annotations"
"""The key of ``spec.metadata`` that keeps a server's own hints."""

_KINDS_OF_HINTS: dict[str, type] = {
    "title": str,
    "readOnlyHint": bool,
    "destructiveHint": bool,
    "idempotentHint": bool,
    "openWorldHint": bool,
}
_MEDIA = re.compile(rb'"contentEncoding": ?"base64"|"format": ?"binary"')
_NEVER_AN_OBJECT = frozenset({"string", "number", "integer", "boolean", "array", "null"})


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name, "description": spec.description}
    if spec.display_name:
        given["title"] = spec.display_name
    given["inputSchema"] = object_schema(spec, losses, "MCP")
    if spec.returns:
        output = None if holds_media(spec.returns) else output_schema(spec.returns)
        if holds_media(spec.returns):
            losses.append(Loss(spec.name, "returns", "MCP has images, audio and files beside structured content"))
        elif output is None:
            losses.append(Loss(spec.name, "returns", "MCP takes the output schema of an object, and this may be none"))
        else:
            given["outputSchema"] = output
    given["annotations"] = hints_of(spec)
    return given


def hints_of(spec: ToolSpec) -> dict[str, Any]:
    """Hints from the safety level, and over them those that came with an imported tool."""
    hints: dict[str, Any] = {"readOnlyHint": spec.safety_level is SafetyLevel.SAFE}
    if spec.safety_level is not SafetyLevel.SAFE:
        hints["destructiveHint"] = spec.safety_level >= SafetyLevel.HIGH_RISK
    own = spec.metadata.get(ANNOTATIONS)
    return hints | copied(_sound(own)) if isinstance(own, dict) else hints


def _sound(hints: dict[str, Any]) -> dict[str, Any]:
    """Those that are of the kind the protocol says: one of another kind would make a whole list of tools invalid."""
    return {name: hint for name, hint in hints.items() if isinstance(hint, _KINDS_OF_HINTS.get(name, object))}


def holds_media(returns: JsonSchema) -> bool:
    """Whether a schema is of images, audio, files or bytes. They are content, and would be sent a second time."""
    return _MEDIA.search(write_json(returns)) is not None


def output_schema(returns: JsonSchema) -> JsonSchema | None:
    """The schema of the structured content, or None if it cannot be told whether that would be an object."""
    inner = with_root_resolved(copied(returns))
    kind = inner.get("type")
    if kind == "object":
        return inner
    kinds = kind if isinstance(kind, list) else [kind]
    if not _NEVER_AN_OBJECT.issuperset(kinds):
        return None
    wrapped: JsonSchema = {"type": "object", "properties": {WRAPPED: inner}, "required": [WRAPPED]}
    for keyword in ("$schema", "$defs", "definitions"):
        # They belong to the root, which the wrapping has moved.
        if keyword in inner:
            wrapped[keyword] = inner.pop(keyword)
    return wrapped


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    """The hints are the server's word. If it is not trusted, give the spec another ``safety_level``."""
    hints = given.get("annotations")
    hints = copied(dict(hints)) if isinstance(hints, Mapping) else {}
    level = _safety(hints)
    return spec_from(
        given,
        given.get("inputSchema"),
        display_name=given.get("title") or hints.get("title"),
        returns=copied(given.get("outputSchema")),
        safety_level=level,
        metadata={ANNOTATIONS: hints} if hints else None,
    )


def _safety(hints: Mapping[str, Any]) -> SafetyLevel:
    if hints.get("readOnlyHint"):
        return SafetyLevel.SAFE
    # The protocol's default: what is not said to be harmless is destructive.
    return SafetyLevel.HIGH_RISK if hints.get("destructiveHint", True) else SafetyLevel.MEDIUM_RISK


def read_call(call: Mapping[str, Any]) -> Asked:
    """The parameters of ``tools/call``, or the whole JSON-RPC request."""
    body = plain(call.get("params")) or call
    return asked(body.get("name"), body.get("arguments"), call.get("id"))


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:  # noqa: ARG001
    if not result.success:
        return {"content": [_text(error_of(result))], "isError": True}
    parts = parts_of(result.data)
    match parts:
        case (TextPart(value),) | (Json(value),):
            data = as_json(value)
            return {"content": [_text(as_text(data))], "structuredContent": structured(data), "isError": False}
    return {"content": [_block(part) for part in parts], "isError": False}


def structured(data: Any) -> dict[str, Any]:
    """A JSON value as structured content."""
    return data if isinstance(data, dict) else {WRAPPED: data}


def takes(part: Part) -> bool:
    return isinstance(part, Image | Audio | File)


def _block(part: Part) -> dict[str, Any]:
    match part:
        case Image(data, media_type) | Audio(data, media_type):
            return {"type": part.type, "data": base64_of(data), "mimeType": media_type}
        case File(data, media_type, name):
            resource = {"uri": f"file:///{quote(name or 'result')}", "mimeType": media_type, "blob": base64_of(data)}
            return {"type": "resource", "resource": resource}
        case Link(url, title, media_type):
            kind = {"mimeType": media_type} if media_type else {}
            return {"type": "resource_link", "uri": url, "name": title or url, **kind}
        case TextPart(text):
            return _text(text)
        case Json(value):
            return _text(as_text(value))
        case ToolReferences():
            return _text(as_text(part.text))


def read_block(block: Mapping[str, Any]) -> Any:
    """What a block of an answer holds, a text or a part; the block itself if it cannot be read."""
    match block:
        case {"type": "text", "text": str(text)} | {"type": "resource", "resource": {"text": str(text)}}:
            return text
        case {"type": "resource_link", "uri": str(url)}:
            return Link(url, block.get("title") or block.get("name") or "", block.get("mimeType") or "")
        case {"type": "image" | "audio", "data": str(data), "mimeType": str(media_type)}:
            name = ""
        case {"type": "resource", "resource": {"blob": str(data), "uri": str(uri)} as resource}:
            media_type, name = resource.get("mimeType"), unquote(uri.rpartition("/")[2])
        case _:
            return block
    try:
        return part_of_base64(data, media_type, name)
    except ValueError:
        return block


def together(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return answers


def _text(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}

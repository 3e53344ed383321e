"""Anthropic's tools."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.jsonable import as_text
from toolcrib.formats.naming import NameRule
from toolcrib.formats.provider import Call, Loss, call_of, error_of, spec_from
from toolcrib.formats.schemas import object_schema

NAMES = NameRule(r"A-Za-z0-9_\-", 128)

_FORBIDDEN_AT_THE_TOP = ("oneOf", "anyOf", "allOf")
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


def parse_call(call: Mapping[str, Any]) -> Call:
    """A ``tool_use`` block."""
    return call_of(call, call.get("input"), call.get("id") or "", "Anthropic")


def render_result(call_id: str, result: ToolResult, name: str) -> dict[str, Any]:  # noqa: ARG001 - one shape for all
    content = as_text(result.data if result.success else error_of(result))
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": not result.success}

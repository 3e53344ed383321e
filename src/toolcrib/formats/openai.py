"""OpenAI's function tools. OpenRouter takes the same shape."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolcrib.core.errors import InvalidArgumentsError, ToolValidationError
from toolcrib.core.json import as_json, read_json
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.jsonable import as_text
from toolcrib.formats.naming import NameRule
from toolcrib.formats.provider import Call, Loss, call_of, error_of, spec_from
from toolcrib.formats.schemas import object_schema

NAMES = NameRule(r"A-Za-z0-9_\-", 64)
MAX_DESCRIPTION = 1024

_FORBIDDEN_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "not", "enum")


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    """As OpenAI takes it: a description over 1,024 characters, which it refuses, is cut."""
    description = spec.description
    if len(description) > MAX_DESCRIPTION:
        description = f"{description[: MAX_DESCRIPTION - 3]}..."
        losses.append(Loss(spec.name, "description", f"OpenAI takes {MAX_DESCRIPTION} characters; the rest is cut off"))
    return _function(spec, name, description, losses, "OpenAI")


def openrouter_definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    """As OpenRouter takes it: the limits on the description are those of the model behind it."""
    return _function(spec, name, spec.description, losses, "OpenRouter")


def _function(spec: ToolSpec, name: str, description: str, losses: list[Loss], provider: str) -> dict[str, Any]:
    if spec.returns:
        losses.append(Loss(spec.name, "returns", f"{provider} has no place for an output schema"))
    return {
        "type": "function",
        "function": {
            "name": name,
            "description": description,
            "parameters": object_schema(spec, losses, provider, _FORBIDDEN_AT_THE_TOP),
        },
    }


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    """Reads the Chat Completions shape, and the flat one of the Responses API."""
    function = given.get("function", given)
    if not isinstance(function, Mapping):
        raise ToolValidationError(f"'function' of the OpenAI definition must be an object, not {function!r:.60}")
    return spec_from(function, function.get("parameters"))


def parse_call(call: Mapping[str, Any]) -> Call:
    """A ``tool_calls`` item of Chat Completions, or a ``function_call`` item of the Responses API."""
    function = call.get("function", call)
    if not isinstance(function, Mapping):
        raise InvalidArgumentsError(f"the OpenAI tool call's 'function' must be an object, not {function!r:.60}")
    arguments = function.get("arguments")
    if isinstance(arguments, str) and isinstance(name := function.get("name"), str):
        arguments = _parsed(arguments, name)
    return call_of(function, arguments, call.get("id") or call.get("call_id"), "OpenAI")


def _parsed(text: str, name: str) -> Any:
    # A call without arguments comes with an empty string from some models.
    if not text.strip():
        return {}
    try:
        return read_json(text)
    except ValueError as error:
        raise InvalidArgumentsError(f"the arguments of {name!r} are not JSON: {error}", tool=name) from None


def render_result(call_id: str, result: ToolResult, name: str) -> dict[str, Any]:  # noqa: ARG001 - one shape for all
    content = as_text(result.data) if result.success else json.dumps(as_json(failure_of(result)), ensure_ascii=False)
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def failure_of(result: ToolResult) -> dict[str, Any]:
    """A tool message has no flag for failure, so its content says it."""
    return {"error": error_of(result), "error_code": result.error_code or "tool_failed"}

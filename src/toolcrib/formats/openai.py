"""OpenAI's function tools. OpenRouter takes the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.content import SIMPLE, parts_of
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.json import as_text
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.naming import NameRule
from toolcrib.formats.plain import plain
from toolcrib.formats.provider import Asked, Loss, asked, failure_of, part_text, spec_from
from toolcrib.formats.schemas import object_schema

NAMES = NameRule(r"A-Za-z0-9_\-", 64)
MAX_DESCRIPTION = 1024

FORBIDDEN_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "not", "enum")


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
            "parameters": object_schema(spec, losses, provider, FORBIDDEN_AT_THE_TOP),
        },
    }


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    """Reads the Chat Completions shape, and the flat one of the Responses API."""
    function = given.get("function", given)
    if not isinstance(function, Mapping):
        raise ToolValidationError(f"'function' of the OpenAI definition must be an object, not {function!r:.60}")
    return spec_from(function, function.get("parameters"))


def read_call(call: Mapping[str, Any]) -> Asked:
    """A ``tool_calls`` item of Chat Completions. What is flat is taken too."""
    function = call.get("function")
    if type(function) is not dict:
        function = plain(function) or call
    arguments = function.get("arguments")
    if arguments is None:
        arguments = function.get("args")
    return asked(function.get("name"), arguments, call.get("id") or call.get("call_id"))


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:
    content = text_of(result, name, losses, "OpenAI Chat")
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def text_of(result: ToolResult, name: str, losses: list[Loss], provider: str) -> str:
    """The whole result as text."""
    if not result.success:
        return as_text(failure_of(result))
    if type(result.data) in SIMPLE:
        return as_text(result.data)
    return "\n".join(part_text(part, name, losses, provider) for part in parts_of(result.data))


def together(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is appended to the conversation."""
    return answers

"""OpenAI's function tools. OpenRouter and Mistral take the same shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.content import SIMPLE, Part, parts_of
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.json import as_text, copied
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.naming import NameRule
from toolcrib.formats.plain import plain
from toolcrib.formats.provider import BEGUN, Asked, Loss, asked, failure_of, part_text, spec_from
from toolcrib.formats.schemas import object_schema
from toolcrib.formats.strict import openai_subset, strict_schema

NAMES = NameRule(r"A-Za-z0-9_\-", 64)
MAX_DESCRIPTION = 1024

FORBIDDEN_AT_THE_TOP = ("oneOf", "anyOf", "allOf", "not", "enum")
CUT_OFF = ("length", "content_filter")
"""Why a message stopped in the middle of what it says."""
_STRICT = {provider: openai_subset(provider) for provider in ("OpenAI", "OpenRouter")}


def definition(spec: ToolSpec, name: str, losses: list[Loss], *, strict: bool = False) -> dict[str, Any]:
    _lose_returns(spec, losses, "OpenAI")
    return {"type": "function", "function": function(spec, name, losses, strict=strict)}


def definition_elsewhere(
    spec: ToolSpec, name: str, losses: list[Loss], *, provider: str, strict: bool = False
) -> dict[str, Any]:
    """As others take it who speak this protocol: a description may be as long as it is."""
    _lose_returns(spec, losses, provider)
    return {"type": "function", "function": _function(spec, name, losses, provider, strict)}


def function(spec: ToolSpec, name: str, losses: list[Loss], *, strict: bool) -> dict[str, Any]:
    """As OpenAI takes it: a description over 1,024 characters, which it refuses, is cut."""
    given = _function(spec, name, losses, "OpenAI", strict)
    given["description"] = short = short_description(spec)
    if short != spec.description:
        losses.append(Loss(spec.name, "description", f"OpenAI takes {MAX_DESCRIPTION} characters; the rest is cut off"))
    return given


def short_description(spec: ToolSpec) -> str:
    """Cut to what OpenAI takes."""
    description = spec.description
    return description if len(description) <= MAX_DESCRIPTION else f"{description[: MAX_DESCRIPTION - 3]}..."


def _function(spec: ToolSpec, name: str, losses: list[Loss], provider: str, strict: bool) -> dict[str, Any]:
    given: dict[str, Any] = {"name": name, "description": spec.description}
    schema = strict_schema(spec, _STRICT[provider], losses) if strict else None
    given["parameters"] = schema or object_schema(spec, losses, provider, FORBIDDEN_AT_THE_TOP)
    return given | {"strict": schema is not None} if strict else given


def _lose_returns(spec: ToolSpec, losses: list[Loss], provider: str) -> None:
    if spec.returns:
        losses.append(Loss(spec.name, "returns", f"{provider} has no place for an output schema"))


def from_definition(given: Mapping[str, Any]) -> ToolSpec:
    """Reads the Chat Completions shape, and the flat one of the Responses API."""
    function = given.get("function", given)
    if not isinstance(function, Mapping):
        raise ToolValidationError(f"'function' of the OpenAI definition must be an object, not {function!r:.60}")
    return spec_from(function, function.get("parameters"), returns=copied(function.get("output_schema")))


def read_call(call: Mapping[str, Any]) -> Asked:
    """A ``tool_calls`` item of Chat Completions. What is flat is taken too."""
    function = call.get("function")
    if type(function) is not dict:
        function = plain(function) or call
    arguments = function.get("arguments")
    if arguments is None:
        arguments = function.get("args")
    return asked(function.get("name"), arguments, call.get("id") or call.get("call_id"))


def cut_off(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call that the model did not finish: no arguments yet are not the empty text of those that need none."""
    function = plain(call.get("function")) or {}
    return {**call, "function": {**function, "arguments": function.get("arguments") or BEGUN}}


def render_result(call_id: str, result: ToolResult, name: str, losses: list[Loss]) -> dict[str, Any]:
    is_simple = result.success and type(result.data) in SIMPLE
    content = as_text(result.data) if is_simple else text_of(result, name, losses, "OpenAI Chat")
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def text_of(result: ToolResult, name: str, losses: list[Loss], provider: str) -> str:
    """The whole result as text."""
    if not result.success:
        return as_text(failure_of(result))
    if type(result.data) in SIMPLE:
        return as_text(result.data)
    return "\n".join(part_text(part, name, losses, provider) for part in parts_of(result.data))


def takes(part: Part) -> bool:  # noqa: ARG001
    """A tool's message holds text alone."""
    return False


def together(answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What is appended to the conversation."""
    return answers

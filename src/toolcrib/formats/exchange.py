"""The conversation with a provider: its definitions in, its calls in, our results out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from toolcrib.core.errors import ExportError, InvalidArgumentsError, ToolValidationError
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats import anthropic, gemini, mcp, openai
from toolcrib.formats.provider import Call


class _Provider(Protocol):
    def from_definition(self, given: Mapping[str, Any]) -> ToolSpec: ...

    def parse_call(self, call: Mapping[str, Any]) -> Call: ...

    def render_result(self, call_id: str, result: ToolResult, name: str) -> dict[str, Any]: ...


_PROVIDERS: dict[str, _Provider] = {
    "openai": openai,
    "openrouter": openai,
    "anthropic": anthropic,
    "gemini": gemini,
    "mcp": mcp,
}


def from_definition(format: str, definition: Mapping[str, Any]) -> ToolSpec:
    """The spec of a tool that somebody else described; ToolValidationError if it is not in that shape."""
    provider = _provider(format)
    if not isinstance(definition, Mapping):
        raise ToolValidationError(f"a definition of a tool is an object, not {definition!r:.60}")
    return provider.from_definition(definition)


def parse_call(format: str, call: Mapping[str, Any]) -> Call:
    """``(exported name, arguments, call id)`` of a model's call; InvalidArgumentsError if it cannot be read."""
    provider = _provider(format)
    if not isinstance(call, Mapping):
        raise InvalidArgumentsError(f"a tool call is an object, not {call!r:.60}")
    return provider.parse_call(call)


def render_result(
    format: str,
    call_id: str,
    result: ToolResult,
    *,
    name: str = "",
) -> dict[str, Any]:
    """The answer to a call, as JSON values whatever the tool returned.

    ``name`` is the exported name that was called. Only Gemini wants it again; without it the call id stands in.
    """
    return _provider(format).render_result(call_id, result, name)


def _provider(format: str) -> _Provider:
    if format not in _PROVIDERS:
        known = ", ".join(map(repr, _PROVIDERS))
        raise ExportError(f"models do not call tools in the format {format!r}; they do in {known}")
    return _PROVIDERS[format]

"""The conversation with a provider: its definitions in, its calls in, our results out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.errors import InvalidArgumentsError, ToolValidationError
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.provider import Call
from toolcrib.formats.table import provider_named


def from_definition(format: str, definition: Mapping[str, Any]) -> ToolSpec:
    """The spec of a tool that somebody else described; ToolValidationError if it is not in that shape."""
    provider = provider_named(format)
    if not isinstance(definition, Mapping):
        raise ToolValidationError(f"a definition of a tool is an object, not {definition!r:.60}")
    return provider.from_definition(definition)


def parse_call(format: str, call: Mapping[str, Any]) -> Call:
    """``(exported name, arguments, call id)`` of a model's call; InvalidArgumentsError if it cannot be read."""
    provider = provider_named(format)
    if not isinstance(call, Mapping):
        raise InvalidArgumentsError(f"a tool call is an object, not {call!r:.60}")
    return provider.parse_call(call)


def render_result(format: str, call_id: str, result: ToolResult, *, name: str = "") -> dict[str, Any]:
    """The answer to a call, as JSON values whatever the tool returned.

    ``name`` is the exported name that was called. Only Gemini wants it again; without it the call id stands in.
    """
    return provider_named(format).render_result(call_id, result, name)

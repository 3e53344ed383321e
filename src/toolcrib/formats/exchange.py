"""The conversation with a provider: its definitions in, its calls in, our results out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.plain import plain
from toolcrib.formats.provider import Asked, Call, Loss, arguments_of
from toolcrib.formats.table import format_named, provider_named


def from_definition(format: str, definition: Mapping[str, Any]) -> ToolSpec:
    """The spec of a tool that somebody else described; ToolValidationError if it is not in that shape."""
    provider = provider_named(format)
    if not isinstance(definition, Mapping):
        raise ToolValidationError(f"a definition of a tool is an object, not {definition!r:.60}")
    return provider.from_definition(definition)


def parse_call(format: str, call: Any) -> Call:
    """``(exported name, arguments, call id)`` of a model's call; InvalidArgumentsError if it cannot be read.

    It is taken as the provider's SDK has it: an object of its own, or a dict.
    """
    asked = read_call(format, call)
    return Call(asked.name, arguments_of(asked, format_named(format).title), asked.call_id)


def read_call(format: str, call: Any) -> Asked:
    """A call as it came, also one that is wrong: whoever answers it needs its id."""
    provider = provider_named(format)
    body = plain(call)
    if body is None:
        return Asked(None, None, "")
    return provider.read_call(body)


def render_result(
    format: str, call_id: str, result: ToolResult, *, name: str = "", losses: list[Loss] | None = None
) -> dict[str, Any]:
    """The answer to a call, as JSON values whatever the tool returned.

    ``name`` is the exported name that was called. Gemini wants it again; without it the call id stands in. What the
    provider does not take goes into ``losses``, and as text into the answer.
    """
    return provider_named(format).render_result(call_id, result, name, [] if losses is None else losses)


def together(format: str, answers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The answers to the calls of one message, as they are appended to the conversation."""
    return provider_named(format).together(answers)

"""Mistral's chat: OpenAI's with ids of nine letters and digits, and streams whose calls come whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcrib.core.errors import MissingDependencyError
from toolcrib.testing.script import Turn
from toolcrib.testing.shapes import openai

FORMAT = openai.FORMAT
ANSWERED_NEXT = openai.ANSWERED_NEXT
message = openai.message
response = openai.response
answers = openai.answers


def call_id(number: int) -> str:
    return f"call{number:05}"


def sdk(turn: Turn) -> Any:
    try:
        from mistralai.client.models import AssistantMessage
    except ModuleNotFoundError:
        raise MissingDependencyError("Mistral's SDK", "pip install mistralai") from None
    return AssistantMessage.model_validate(message(turn))


def events(turn: Turn) -> Iterator[dict[str, Any]]:
    said = message(turn)
    calls = [{**each, "index": index} for index, each in enumerate(said.pop("tool_calls", ()))]
    delta = said | {"tool_calls": calls} if calls else said
    yield {"data": openai.chunk(delta, "tool_calls" if calls else "stop")}

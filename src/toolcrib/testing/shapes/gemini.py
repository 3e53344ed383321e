"""Gemini's contents. A call's id is its name where the model sends none, as older ones do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.core.errors import MissingDependencyError
from toolcrib.formats.plain import plain
from toolcrib.testing.script import ScriptedCall, Turn
from toolcrib.testing.shapes import Answer

FORMAT = "gemini"
ANSWERED_NEXT = True


def call_id(number: int) -> str:
    return f"call_{number}"


def message(turn: Turn) -> dict[str, Any]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text or not turn.calls else []
    return {"role": "model", "parts": parts + [{"functionCall": _function_call(each)} for each in turn.calls]}


def _function_call(call: ScriptedCall) -> dict[str, Any]:
    said = {"name": call.name, "args": call.value}
    return {"id": call.call_id} | said if call.call_id else said


def response(turn: Turn) -> dict[str, Any]:
    return {"candidates": [{"index": 0, "finishReason": "STOP", "content": message(turn)}]}


def sdk(turn: Turn) -> Any:
    try:
        from google.genai import types
    except ModuleNotFoundError:
        raise MissingDependencyError("Gemini's SDK", "pip install google-genai") from None
    parts = [types.Part(text=turn.text)] if turn.text or not turn.calls else []
    for each in turn.calls:  # made, not checked: what is no object goes through as the model said it
        made = types.FunctionCall.model_construct(id=each.call_id or None, name=each.name, args=each.value)
        parts.append(types.Part.model_construct(function_call=made))
    return types.Content.model_construct(role="model", parts=parts)


def events(turn: Turn) -> Iterator[dict[str, Any]]:
    """A chunk for each part: a call comes whole."""
    for part in message(turn)["parts"]:
        yield {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}}]}


def answers(message: Mapping[str, Any]) -> Iterator[Answer]:
    for part in message.get("parts") or ():
        body = plain(part) or {}
        if answer := plain(body.get("functionResponse", body.get("function_response"))):
            told = plain(answer.get("response")) or {}
            only = next(iter(told.values())) if told.keys() in ({"output"}, {"error"}) else told
            yield answer.get("id") or answer.get("name") or "", only

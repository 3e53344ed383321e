"""OpenAI's Chat Completions, which OpenRouter speaks too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.core.errors import MissingDependencyError
from toolcrib.testing.script import ScriptedCall, Turn
from toolcrib.testing.shapes import Answer, in_pieces

FORMAT = "openai"
ANSWERED_NEXT = True


def call_id(number: int) -> str:
    return f"call_{number}"


def message(turn: Turn) -> dict[str, Any]:
    if not turn.calls:
        return {"role": "assistant", "content": turn.text}
    return {"role": "assistant", "content": turn.text or None, "tool_calls": [_tool_call(each) for each in turn.calls]}


def _tool_call(call: ScriptedCall) -> dict[str, Any]:
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.text}}


def response(turn: Turn) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "tool_calls" if turn.calls else "stop", "message": message(turn)}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}


def sdk(turn: Turn) -> Any:
    try:
        from openai.types.chat import ChatCompletionMessage
    except ModuleNotFoundError:
        raise MissingDependencyError("OpenAI's SDK", "pip install openai") from None
    return ChatCompletionMessage.construct(**message(turn))


def events(turn: Turn) -> Iterator[dict[str, Any]]:
    """Each call's arguments come in two pieces after its name."""
    for piece in in_pieces(turn.text) if turn.text else ():
        yield chunk({"role": "assistant", "content": piece})
    for index, call in enumerate(turn.calls):
        whole = _tool_call(call)
        yield chunk({"tool_calls": [{**whole, "index": index, "function": {"name": call.name, "arguments": ""}}]})
        for piece in in_pieces(call.text):
            yield chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls" if turn.calls else "stop")


def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    return {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


def answers(message: Mapping[str, Any]) -> Iterator[Answer]:
    if message.get("role") == "tool":
        yield message.get("tool_call_id") or "", message.get("content")

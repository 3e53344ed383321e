"""Anthropic's Messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.core.errors import MissingDependencyError
from toolcrib.formats.anthropic import input_of
from toolcrib.formats.plain import plain
from toolcrib.testing.script import Turn
from toolcrib.testing.shapes import Answer, in_pieces

FORMAT = "anthropic"
ANSWERED_NEXT = True


def call_id(number: int) -> str:
    return f"call_{number}"


def message(turn: Turn) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    if turn.text or not turn.calls:
        content.append({"type": "text", "text": turn.text})
    content += [
        {"type": "tool_use", "id": each.call_id, "name": each.name, "input": input_of(each.text)} for each in turn.calls
    ]
    return {"role": "assistant", "content": content}


def response(turn: Turn) -> dict[str, Any]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    reason = "tool_use" if turn.calls else "end_turn"
    whole = {"id": "m", "type": "message", "model": "m", "stop_reason": reason, "stop_sequence": None, "usage": usage}
    return whole | message(turn)


def sdk(turn: Turn) -> Any:
    try:
        from anthropic.types import Message
    except ModuleNotFoundError:
        raise MissingDependencyError("Anthropic's SDK", "pip install anthropic") from None
    return Message.construct(**response(turn))


def events(turn: Turn) -> Iterator[dict[str, Any]]:
    whole = response(turn)
    yield {"type": "message_start", "message": whole | {"content": [], "stop_reason": None}}
    texts = [each.text for each in turn.calls]
    for index, block in enumerate(whole["content"]):
        if block["type"] == "text":
            empty, kind, field, text = block | {"text": ""}, "text_delta", "text", block["text"]
        else:
            text = texts[index - len(whole["content"])]  # the calls come last
            empty, kind, field = block | {"input": {}}, "input_json_delta", "partial_json"
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for piece in in_pieces(text):
            yield {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: piece}}
        yield {"type": "content_block_stop", "index": index}
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def answers(message: Mapping[str, Any]) -> Iterator[Answer]:
    content = message.get("content")
    for block in content if isinstance(content, list) else ():
        body = plain(block) or {}
        if body.get("type") == "tool_result":
            yield body.get("tool_use_id") or "", body.get("content")

"""OpenAI's Responses: what a model says is a list of items."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.core.errors import MissingDependencyError
from toolcrib.testing.script import ScriptedCall, Turn
from toolcrib.testing.shapes import Answer, in_pieces

FORMAT = "openai-responses"
ANSWERED_NEXT = False


def call_id(number: int) -> str:
    return f"call_{number}"


def message(turn: Turn) -> list[dict[str, Any]]:
    """The output items. An item of a call has an id of its own beside the one under which it is answered."""
    items: list[dict[str, Any]] = []
    if turn.text or not turn.calls:
        content = [{"type": "output_text", "text": turn.text, "annotations": []}]
        items.append({"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": content})
    return items + [_item(each) for each in turn.calls]


def _item(call: ScriptedCall) -> dict[str, Any]:
    return {
        "type": "function_call", "id": f"fc_{call.call_id}", "call_id": call.call_id, "name": call.name,
        "arguments": call.text, "status": "completed",
    }  # fmt: skip


def response(turn: Turn) -> dict[str, Any]:
    usage = {
        "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
    }  # fmt: skip
    return {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "output": message(turn),
        "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "usage": usage,
    }  # fmt: skip


def sdk(turn: Turn) -> Any:
    """The response, whose ``output`` is appended to the conversation."""
    try:
        from openai.types.responses import Response
    except ModuleNotFoundError:
        raise MissingDependencyError("OpenAI's SDK", "pip install openai") from None
    return Response.construct(**response(turn))


def events(turn: Turn) -> Iterator[dict[str, Any]]:
    numbers = iter(range(1_000_000))

    def event(kind: str, **more: Any) -> dict[str, Any]:
        return {"type": f"response.{kind}", "sequence_number": next(numbers), **more}

    whole = response(turn)
    yield event("created", response=whole | {"status": "in_progress", "output": []})
    for index, item in enumerate(whole["output"]):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            [content] = item["content"]
            yield event("output_item.added", output_index=index, item=item | {"content": [], "status": "in_progress"})
            for piece in in_pieces(content["text"]):
                yield event("output_text.delta", **place, content_index=0, delta=piece, logprobs=[])
        else:
            yield event("output_item.added", output_index=index, item=item | {"arguments": "", "status": "in_progress"})
            for piece in in_pieces(item["arguments"]):
                yield event("function_call_arguments.delta", **place, delta=piece)
        yield event("output_item.done", output_index=index, item=item)
    yield event("completed", response=whole)


def answers(message: Mapping[str, Any]) -> Iterator[Answer]:
    if message.get("type") == "function_call_output":
        yield message.get("call_id") or "", message.get("output")

"""A message that comes in pieces, put together as its provider would have sent it whole.

    said = StreamedMessage()
    async for event in stream:
        said.add(event)
    messages += [said.message, *await registry.execute_calls(said)]

Whose the pieces are, their shape tells, as for whole messages.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Protocol

from toolcrib.formats import anthropic
from toolcrib.formats.plain import plain

Event = Mapping[str, Any]


class _Pieces(Protocol):
    """The pieces of one message of one provider."""

    def add(self, event: Event) -> None: ...

    @property
    def message(self) -> Any: ...


class StreamedMessage:
    """``message`` is what is appended to the conversation; of OpenAI Responses it is the list of output items."""

    def __init__(self) -> None:
        self._pieces: _Pieces | None = None

    def add(self, event: Any) -> None:
        """One event or chunk of the stream, as the provider's SDK has it or as a dict. Others are let pass."""
        body = plain(event)
        if body is None:
            return
        if isinstance(data := plain(body.get("data")), Mapping) and "choices" in data:  # Mistral wraps its chunks
            body = data
        if self._pieces is None and (kind := _kind_of(body)) is not None:
            self._pieces = kind()
        if self._pieces is not None:
            self._pieces.add(body)

    @property
    def message(self) -> Any:
        return None if self._pieces is None else self._pieces.message


class _Chat:
    """Chunks of OpenAI Chat Completions, OpenRouter and Mistral."""

    def __init__(self) -> None:
        self._text: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[Any, dict[str, Any]] = {}

    def add(self, event: Event) -> None:
        choices = event.get("choices")
        delta = (plain(choices[0]) or {}).get("delta") if choices else None
        body = plain(delta) or {}
        if isinstance(content := body.get("content"), str):
            self._text.append(content)
        for piece in body.get("tool_calls") or ():
            self._add_call(plain(piece) or {})

    def _add_call(self, piece: Event) -> None:
        function = plain(piece.get("function")) or {}
        call = self._call_of(piece)
        call["id"] = call["id"] or piece.get("id") or ""
        call["name"] += function.get("name") or ""
        arguments = function.get("arguments")
        call["pieces"].append(arguments if isinstance(arguments, str | None) else json.dumps(arguments))

    def _call_of(self, piece: Event) -> dict[str, Any]:
        """The call that a piece goes on with: of its index, unless it brings an id of its own, or the last one."""
        index, call_id = piece.get("index"), piece.get("id")
        known = self._by_index.get(index) if index is not None else self._calls[-1] if self._calls else None
        if known is not None and (not call_id or call_id == known["id"]):
            return known
        call: dict[str, Any] = {"id": "", "name": "", "pieces": []}
        self._calls.append(call)
        self._by_index[index] = call
        return call

    @property
    def message(self) -> dict[str, Any]:
        said: dict[str, Any] = {"role": "assistant", "content": "".join(self._text) or None}
        calls = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": "".join(filter(None, call["pieces"]))},
            }
            for call in self._calls
        ]
        return said | {"tool_calls": calls} if calls else said


class _Responses:
    """Events of OpenAI Responses: each output item comes whole at its end."""

    def __init__(self) -> None:
        self._items: dict[int, Any] = {}

    def add(self, event: Event) -> None:
        if event.get("type") == "response.output_item.done":
            self._items[event.get("output_index", len(self._items))] = event.get("item")

    @property
    def message(self) -> list[Any]:
        return [self._items[index] for index in sorted(self._items)]


class _Anthropic:
    """Events of Anthropic's Messages: blocks that begin, grow and end."""

    def __init__(self) -> None:
        self._blocks: dict[int, dict[str, Any]] = {}
        self._json: dict[int, list[str]] = {}
        self._stopped: Any = None

    def add(self, event: Event) -> None:
        index, delta = event.get("index", 0), plain(event.get("delta")) or {}
        match event.get("type"):
            case "content_block_start":
                self._blocks[index] = dict(plain(event.get("content_block")) or {})
            case "content_block_delta" if index in self._blocks:
                self._grow(index, delta)
            case "message_delta":
                self._stopped = delta.get("stop_reason")

    def _grow(self, index: int, delta: Event) -> None:
        block = self._blocks[index]
        match delta.get("type"):
            case "input_json_delta":
                self._json.setdefault(index, []).append(delta.get("partial_json") or "")
            case "text_delta" | "thinking_delta" | "signature_delta" as kind:
                field = kind.removesuffix("_delta")
                block[field] = (block.get(field) or "") + (delta.get(field) or "")
            case "citations_delta":
                block["citations"] = [*(block.get("citations") or ()), delta.get("citation")]

    @property
    def message(self) -> dict[str, Any]:
        blocks = [self._whole(index, self._blocks[index]) for index in sorted(self._blocks)]
        if self._stopped in anthropic.CUT_OFF and blocks and "input" in blocks[-1]:
            blocks[-1] = anthropic.cut_off(blocks[-1])
        return {"role": "assistant", "content": blocks}

    def _whole(self, index: int, block: dict[str, Any]) -> dict[str, Any]:
        text = "".join(self._json.get(index, ()))
        return block | {"input": anthropic.input_of(text)} if text else block


class _Gemini:
    """Chunks of Gemini: each has whole parts; text goes on in the next."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []

    def add(self, event: Event) -> None:
        candidates = event.get("candidates")
        content = plain((plain(candidates[0]) or {}).get("content")) if candidates else None
        for part in (content or {}).get("parts") or ():
            self._add_part(dict(plain(part) or {}))

    def _add_part(self, part: dict[str, Any]) -> None:
        last = self._parts[-1] if self._parts else None
        if last is not None and last.keys() == part.keys() == {"text"}:
            last["text"] += part["text"]
        elif part:
            self._parts.append(part)

    @property
    def message(self) -> dict[str, Any]:
        return {"role": "model", "parts": self._parts}


def _kind_of(event: Event) -> type[_Pieces] | None:
    kind = event.get("type")
    if "choices" in event:
        return _Chat
    if "candidates" in event:
        return _Gemini
    if isinstance(kind, str):
        return _Responses if kind.startswith("response.") else _Anthropic if kind.startswith("message_") else None
    return None

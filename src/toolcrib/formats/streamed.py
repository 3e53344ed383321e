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

from toolcrib.formats import anthropic, openai
from toolcrib.formats.plain import plain
from toolcrib.formats.provider import NO_IDS

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
        body = plain(getattr(event, "chunk", event))  # OpenAI's own helper wraps its chunks
        if body is None:
            return
        if isinstance(data := plain(body.get("data")), Mapping) and "choices" in data:  # and so does Mistral
            body = data
        if self._pieces is None and (kind := _kind_of(body)) is not None:
            self._pieces = kind()
        if self._pieces is not None:
            self._pieces.add(body)

    @property
    def message(self) -> Any:
        return None if self._pieces is None else self._pieces.message


class _Text(list[str]):
    """A text of which more may come."""


_SAID_ONCE = frozenset({"role", "type", "id", "format"})
"""Texts that each piece may repeat; of all others a piece is a part."""


def _grow(said: dict[str, Any], piece: Event) -> None:
    """Adds to an object what is said next of it."""
    for name, more in piece.items():
        if more is not None:
            said[name] = _longer(said.get(name), more, name)


def _longer(before: Any, more: Any, name: str) -> Any:
    if type(before) is list or isinstance(more, list | tuple):
        return _with_entries(_entries(before), _entries(more))
    if isinstance(more, Mapping):
        _grow(grown := before if type(before) is dict else {}, more)
        return grown
    if not isinstance(more, str):
        return more
    if name in _SAID_ONCE:
        return more or before
    text = before if isinstance(before, _Text) else _Text([before] if isinstance(before, str) else ())
    text.append(more)
    return text


def _entries(value: Any) -> list[Any]:
    """A list as it is; text among Mistral's chunks of content is one of them."""
    if isinstance(value, str | _Text):
        return [{"type": "text", "text": value}] if "".join(value) else []
    return list(value or ())


def _with_entries(entries: list[Any], more: list[Any]) -> list[Any]:
    for entry in more:
        body = plain(entry)
        if body is not None and entries and _goes_on(entries[-1], body):
            _grow(entries[-1], body)
        else:
            entries.append(entry if body is None else _longer(None, body, ""))
    return entries


def _goes_on(last: Any, body: Event) -> bool:
    if type(last) is not dict or last.get("type") != body.get("type"):
        return False
    return last.get("index") == body["index"] if "index" in body else body.get("type") in ("text", "thinking")


def _joined(said: Any) -> Any:
    """What was said, with its texts in one piece."""
    if isinstance(said, _Text):
        return "".join(said)
    if type(said) is dict:
        return {name: _joined(value) for name, value in said.items()}
    return [_joined(entry) for entry in said] if type(said) is list else said


def _first(answers: Any) -> Event:
    """Of several answers to a request the first; the pieces of others name their own index."""
    bodies = [plain(each) or {} for each in answers] if isinstance(answers, list | tuple) else []
    return next((body for body in bodies if not body.get("index")), {})


class _Chat:
    """Chunks of OpenAI Chat Completions, of those who speak it too, and of Mistral.

    Whatever comes is kept, also what is not OpenAI's: many want the reasoning of their models back.
    """

    def __init__(self) -> None:
        self._said: dict[str, Any] = {"role": "assistant", "content": None}
        self._calls: list[dict[str, Any]] = []
        self._by_index: dict[Any, dict[str, Any]] = {}
        self._stopped: Any = None

    def add(self, event: Event) -> None:
        choice = _first(event.get("choices"))
        self._stopped = choice.get("finish_reason") or self._stopped
        delta = dict(plain(choice.get("delta")) or {})
        for piece in delta.pop("tool_calls", None) or ():
            self._add_call(dict(plain(piece) or {}))
        delta.pop("index", None)
        _grow(self._said, delta)

    def _add_call(self, piece: dict[str, Any]) -> None:
        if piece.get("id") in NO_IDS:
            piece.pop("id", None)
        call = self._call_of(piece.pop("index", None), piece.get("id"))
        if function := dict(plain(piece.get("function")) or {}):
            if not isinstance(arguments := function.get("arguments"), str | None):
                function["arguments"] = json.dumps(arguments)
            piece["function"] = function
        _grow(call, piece)

    def _call_of(self, index: Any, call_id: Any) -> dict[str, Any]:
        """The call that a piece goes on with: of its index, unless it brings an id of its own, or the last one."""
        known = self._by_index.get(index) if index is not None else self._calls[-1] if self._calls else None
        if known is not None and (not call_id or call_id == known["id"]):
            return known
        call: dict[str, Any] = {"id": "", "type": "function", "function": {"name": _Text(), "arguments": _Text()}}
        self._calls.append(call)
        self._by_index[index] = call
        return call

    @property
    def message(self) -> dict[str, Any]:
        said: dict[str, Any] = _joined(self._said)
        said["content"] = said["content"] or None
        if not self._calls:
            return said
        calls = _joined(self._calls)
        if self._stopped in openai.CUT_OFF:
            calls[-1] = openai.cut_off(calls[-1])
        return said | {"tool_calls": calls}


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
        self._stopped: Any = None

    def add(self, event: Event) -> None:
        index, delta = event.get("index", 0), plain(event.get("delta")) or {}
        match event.get("type"):
            case "content_block_start":
                self._blocks[index] = dict(plain(event.get("content_block")) or {})
            case "content_block_delta" if index in self._blocks:
                self._grow(self._blocks[index], delta)
            case "message_delta":
                self._stopped = delta.get("stop_reason")

    def _grow(self, block: dict[str, Any], delta: Event) -> None:
        if "citation" in delta:
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        else:
            _grow(block, {name: more for name, more in delta.items() if name != "type"})

    @property
    def message(self) -> dict[str, Any]:
        blocks = [self._whole(_joined(self._blocks[index])) for index in sorted(self._blocks)]
        if self._stopped in anthropic.CUT_OFF and blocks and "input" in blocks[-1]:
            blocks[-1] = anthropic.cut_off(blocks[-1])
        return {"role": "assistant", "content": blocks}

    def _whole(self, block: dict[str, Any]) -> dict[str, Any]:
        text = block.pop("partial_json", "")
        return block | {"input": anthropic.input_of(text)} if text else block


class _Gemini:
    """Chunks of Gemini: each has whole parts; text goes on in the next."""

    def __init__(self) -> None:
        self._parts: list[dict[str, Any]] = []

    def add(self, event: Event) -> None:
        content = plain(_first(event.get("candidates")).get("content")) or {}
        for part in content.get("parts") or ():
            self._add_part(dict(plain(part) or {}))

    def _add_part(self, part: dict[str, Any]) -> None:
        last = self._parts[-1] if self._parts else None
        if last is not None and last.keys() == part.keys() and part.keys() <= {"text", "thought"}:
            _grow(last, part)
        elif part:
            self._parts.append(part)

    @property
    def message(self) -> dict[str, Any]:
        return {"role": "model", "parts": _joined(self._parts)}


def _kind_of(event: Event) -> type[_Pieces] | None:
    if "choices" in event:
        return _Chat
    if "candidates" in event:
        return _Gemini
    if not isinstance(kind := event.get("type"), str):
        return None
    if kind.startswith("response."):
        return _Responses
    return _Anthropic if kind.startswith(("message_", "content_block_")) else None

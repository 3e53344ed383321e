"""What a model says, as a loop needs it: what the conversation goes on with, its text, the tokens that it took.

Messages come in every shape that :func:`toolcrib.formats.calls_of` takes; a plain text is a message too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.formats import anthropic, openai
from toolcrib.formats.plain import plain
from toolcrib.formats.streamed import StreamedMessage

Message = Mapping[str, Any]

_TEXTS = ("text", "output_text")
_BLOCKS = ("text", "tool_use", "thinking", "redacted_thinking", "server_tool_use")
"""What the content of a message of Anthropic's begins with."""
_CUT_OFF = frozenset({*openai.CUT_OFF, *anthropic.CUT_OFF, "incomplete", "MAX_TOKENS"})


@dataclass(frozen=True, slots=True)
class Tokens:
    """Of one message: what the model read and what it wrote. ``cached`` and ``written`` are parts of ``input``, which
    the provider's cache had or was given.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    written: int = 0
    estimated: bool = False
    """Whether some were not counted by the provider, which said nothing of them."""

    @property
    def total(self) -> int:
        return self.input + self.output

    def __add__(self, other: Tokens) -> Tokens:
        return Tokens(
            self.input + other.input,
            self.output + other.output,
            self.cached + other.cached,
            self.written + other.written,
            self.estimated or other.estimated,
        )


def told(format: str, text: str, role: str = "user") -> dict[str, Any]:
    """A message to a model of this format."""
    return {"role": role, "parts": [{"text": text}]} if format == "gemini" else {"role": role, "content": text}


def appended(said: Any) -> list[Message]:
    """What a model said, as the conversation goes on with it; nothing if it is no message."""
    if isinstance(said, StreamedMessage):
        said = said.message
    if isinstance(said, str):
        return [{"role": "assistant", "content": said}] if said else []
    if isinstance(said, Sequence) and not isinstance(said, bytes):
        return _of_list([body for body in map(plain, said) if body is not None])
    body = plain(said)
    if body is None:
        return []
    for several, inner in (("choices", "message"), ("candidates", "content")):
        if several in body:
            return appended(_first(body[several]).get(inner))
    if isinstance(output := body.get("output"), list | tuple):
        return _of_list([each for each in map(plain, output) if each is not None])
    if isinstance(message := plain(body.get("message")), Mapping):
        return appended(message)
    return _of_message(body)


def _first(choices: Any) -> Message:
    return plain(choices[0]) or {} if isinstance(choices, list | tuple) and choices else {}


def _of_message(body: Message) -> list[Message]:
    content = body.get("content")
    if body.get("type") == "message" and not _is_item(body):
        return [{"role": "assistant", "content": content}] if content else []
    if not any(name in body for name in ("content", "parts", "tool_calls")):
        return [body] if "type" in body or "refusal" in body else []
    return [{"role": "assistant", **{name: value for name, value in body.items() if name != "usage"}}]


def _is_item(body: Message) -> bool:
    """Whether a message is an item of OpenAI Responses, and not a response of Anthropic's."""
    parts = [plain(part) or {} for part in body.get("content") or ()]
    return any(part.get("type") in ("output_text", "refusal") for part in parts)


def _of_list(blocks: list[Message]) -> list[Message]:
    """A list is the output of OpenAI Responses, or what another message holds: its blocks, its parts, its calls."""
    if not blocks or "role" in blocks[0]:
        return list(blocks)
    first = blocks[0]
    if first.get("type") in _BLOCKS:
        return [{"role": "assistant", "content": blocks}]
    if "function" in first:
        return [{"role": "assistant", "content": None, "tool_calls": blocks}]
    return list(blocks) if "type" in first else [{"role": "model", "parts": blocks}]


def text_of(messages: Iterable[Message]) -> str:
    """What a person reads of it: neither calls nor thoughts."""
    return "\n".join(text for message in messages if (text := _text(message)))


def _text(message: Message) -> str:
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content or str(message.get("refusal") or "")
    if content is None:
        return str(message.get("refusal") or "")
    parts = [plain(part) or {} for part in content] if isinstance(content, list | tuple) else []
    return "".join(map(_part_text, parts))


def _part_text(part: Message) -> str:
    if part.get("thought") or part.get("type", "text") not in (*_TEXTS, "refusal"):
        return ""
    text = part.get("text") or part.get("refusal")
    return text if isinstance(text, str) else ""


def is_cut_off(said: Any) -> bool:
    """Whether the provider stopped the model in the middle of what it says."""
    body = plain(said) or {}
    choice = _first(body.get("choices") or body.get("candidates")) or body
    marks = (choice.get(name) for name in ("finish_reason", "finishReason", "stop_reason", "status"))
    return any(isinstance(mark, str) and mark in _CUT_OFF for mark in marks)


def tokens_of(said: Any) -> Tokens | None:
    """What the provider counted, if what came is its whole response or has the ``usage`` of one.

    None if that counts nothing: a message of no tokens there is not.
    """
    body = plain(said) or {}
    usage = plain(body.get("usage")) or plain(body.get("usageMetadata", body.get("usage_metadata")))
    counted = _counted(usage or {})
    return counted if counted.total else None


def _counted(usage: Message) -> Tokens:
    if "prompt_tokens" in usage:
        cached = _count(plain(usage.get("prompt_tokens_details")) or {}, "cached_tokens")
        return Tokens(_count(usage, "prompt_tokens"), _count(usage, "completion_tokens"), cached)
    if "input_tokens" in usage:
        read, written = _count(usage, "cache_read_input_tokens"), _count(usage, "cache_creation_input_tokens")
        details = plain(usage.get("input_tokens_details")) or {}
        cached = read + _count(details, "cached_tokens")  # OpenAI's are counted among the input, Anthropic's are not
        return Tokens(_count(usage, "input_tokens") + read + written, _count(usage, "output_tokens"), cached, written)
    thoughts = _count(usage, "thoughtsTokenCount", "thoughts_token_count")
    return Tokens(
        _count(usage, "promptTokenCount", "prompt_token_count"),
        _count(usage, "candidatesTokenCount", "candidates_token_count") + thoughts,
        _count(usage, "cachedContentTokenCount", "cached_content_token_count"),
    )


def _count(usage: Message, *names: str) -> int:
    counts = (usage.get(name) for name in names)
    return next((count for count in counts if isinstance(count, int) and not isinstance(count, bool)), 0)

"""A whole message of a model: whose it is, told by its shape, and the calls in it.

Messages come as the providers' SDKs make them, or as dicts; a response is taken for the message in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from toolcrib.formats import anthropic, openai, openai_responses
from toolcrib.formats.plain import plain
from toolcrib.formats.streamed import StreamedMessage

_MAX_WRAPPED = 5
"""A response holds choices, a choice a message, a message its content."""
_SPEAKERS = ("assistant", "model")
"""Who a model is in a conversation."""
_ANSWERS = ("function_call_output", "tool_search_output")


def calls_of(message: Any) -> tuple[str, list[Mapping[str, Any]]]:
    """The format of a model's message and its calls, in order; ``("", [])`` if there is none in it."""
    if isinstance(message, StreamedMessage):
        message = message.message
    stopped = None
    for _ in range(_MAX_WRAPPED):
        if isinstance(message, Sequence) and not isinstance(message, str | bytes):
            speaker, calls = _calls_among(blocks := _mappings(message))
            if stopped in anthropic.CUT_OFF and calls and calls[-1] is blocks[-1]:
                calls[-1] = anthropic.cut_off(calls[-1])
            if calls or not message:
                return speaker, calls
            last = plain(message[-1])  # of a conversation the last message counts
            if last is None or last.get("role") not in _SPEAKERS:
                return "", []
            message = last
        body = plain(message)
        if body is None:
            break
        if _format_of(body):
            return _calls_among([body])
        if isinstance(listed := body.get("tool_calls"), list | tuple) and listed:
            calls = _mappings(listed)  # whatever they look like: each waits for an answer under its id
            if stopped in openai.CUT_OFF and calls:
                calls[-1] = openai.cut_off(calls[-1])
            return "openai", calls
        message, stopped = _inside(body), body.get("finish_reason") or body.get("stop_reason")
    return "", []


def _mappings(blocks: Iterable[Any]) -> list[Mapping[str, Any]]:
    bodies = [each if type(each) is dict else plain(each) for each in blocks]
    return [body for body in bodies if body is not None]


def _inside(body: Mapping[str, Any]) -> Any:
    """What a response or a message holds: the first choice, the message, or the list in which its calls are."""
    for responses in ("choices", "candidates"):
        if isinstance(listed := body.get(responses), Sequence) and listed and not isinstance(listed, str):
            return listed[0]
    for key in ("message", "output", "parts", "content"):
        if body.get(key):
            return body[key]
    return None


def _calls_among(blocks: list[Mapping[str, Any]]) -> tuple[str, list[Mapping[str, Any]]]:
    """The calls among them that are of the same format as the first."""
    first, calls = "", []
    for block in blocks:
        its = _format_of(block)
        if its:
            first = first or its
            if its == first:
                calls.append(block)
    return first, _waiting(calls, blocks) if first == "openai-responses" else calls


def _waiting(calls: list[Mapping[str, Any]], blocks: list[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those without an answer among the items: in a conversation calls and answers stand side by side."""
    answered = [block.get("call_id") for block in blocks if block.get("type") in _ANSWERS]
    return [call for call in calls if call.get("call_id") not in answered] if answered else calls


_FUNCTION_CALL = frozenset({
    "id", "name", "args", "partial_args", "partialArgs", "will_continue", "willContinue",
})  # fmt: skip
"""What Gemini's ``response.function_calls`` are made of, without the parts that they came in."""
_BY_TYPE = {"tool_use": "anthropic", "function_call": "openai-responses", "tool_call": "openai"}


def _format_of(block: Mapping[str, Any]) -> str:
    """Whose call it is; empty if it is none."""
    kind = block.get("type")
    if type(kind) is str and kind in _BY_TYPE:
        return _BY_TYPE[kind]
    if kind == openai_responses.SEARCH_TYPE:
        return "openai-responses" if block.get("execution") == "client" else ""
    if kind == "function" and "function" in block:
        return "openai"
    if block.get("role") is not None or block.get("parts") is not None:
        return ""
    if block.get("function") is not None:
        return "openai"
    if block.get("functionCall") is not None or block.get("function_call") is not None:
        return "gemini"
    return "gemini" if "name" in block and block.keys() <= _FUNCTION_CALL else ""

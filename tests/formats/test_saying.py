"""What a loop reads of a model's message: what is appended, its text, its tokens."""

from __future__ import annotations

from typing import Any

import pytest
from google.genai import types as gemini
from openai.types.chat import ChatCompletion
from openai.types.responses import Response

from toolcrib.formats import StreamedMessage
from toolcrib.formats.saying import Tokens, appended, is_cut_off, text_of, tokens_of, told
from toolcrib.testing import SHAPES, call
from toolcrib.testing.script import turn_of
from toolcrib.testing.shapes import shape_named

CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
USED = {"type": "tool_use", "id": "1", "name": "f", "input": {}}
ITEM = {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"}
PART = {"functionCall": {"name": "f", "args": {}}}


@pytest.mark.parametrize("format", SHAPES)
def test_a_message_is_appended_as_its_provider_takes_it_back(format: str) -> None:
    shape = shape_named(format)
    turn = turn_of(["Let me see.", call("f")], shape.call_id)
    message = shape.message(turn)
    expected = message if isinstance(message, list) else [message]
    streamed = StreamedMessage()
    for event in shape.events(turn):
        streamed.add(event)
    for said in (message, shape.response(turn), streamed):
        assert appended(said) == expected
        assert text_of(appended(said)) == "Let me see."
    from_sdk = appended(shape.sdk(turn))
    assert text_of(from_sdk) == "Let me see."
    assert len(from_sdk) == len(expected)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ([CALL], {"role": "assistant", "content": None, "tool_calls": [CALL]}),
        ([USED], {"role": "assistant", "content": [USED]}),
        ([PART], {"role": "model", "parts": [PART]}),
        ([ITEM], ITEM),
        ("Hi.", {"role": "assistant", "content": "Hi."}),
        ({"role": "assistant", "content": "Hi.", "usage": {"n": 1}}, {"role": "assistant", "content": "Hi."}),
        ({"message": {"role": "assistant", "content": "Hi."}}, {"role": "assistant", "content": "Hi."}),
    ],
)  # fmt: skip
def test_parts_of_a_message_become_one(said: Any, expected: Any) -> None:
    assert appended(said) == [expected]


@pytest.mark.parametrize("said", [None, 7, b"bytes", "", [], {}, {"choices": []}, {"candidates": [{}]}, {"odd": 1}])
def test_what_is_no_message_is_nothing(said: Any) -> None:
    assert appended(said) == []
    assert tokens_of(said) is None
    assert not is_cut_off(said)


def test_neither_thoughts_nor_calls_are_text() -> None:
    thought = {"type": "thinking", "thinking": "Hm."}
    anthropic = {"role": "assistant", "content": [thought, USED, {"type": "text", "text": "A"}]}
    google = {"role": "model", "parts": [{"text": "Hm.", "thought": True}, {"text": "A"}, PART]}
    responses: list[Any] = [{"type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm."}]}, ITEM]
    assert (text_of([anthropic]), text_of([google]), text_of(responses)) == ("A", "A", "")
    assert text_of([{"role": "assistant", "content": None, "refusal": "I will not."}]) == "I will not."
    refused = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    assert text_of(appended([refused])) == "No."


def test_the_tokens_that_each_provider_counts() -> None:
    chat = shape_named("openai").response(turn_of("x", str))
    chat["usage"] = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
    chat["usage"]["prompt_tokens_details"] = {"cached_tokens": 4}
    assert tokens_of(chat) == tokens_of(ChatCompletion.model_validate(chat)) == Tokens(9, 2, 4)
    responses = shape_named("openai-responses").response(turn_of("x", str))
    responses["usage"] |= {"input_tokens": 9, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0}}
    assert tokens_of(responses) == tokens_of(Response.model_validate(responses)) == Tokens(9, 1, 4)
    anthropic = {
        "usage": {
            "input_tokens": 3, "output_tokens": 2, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 1,
        }
    }  # fmt: skip
    assert tokens_of(anthropic) == Tokens(9, 2, 5, 1)
    google = {"promptTokenCount": 9, "candidatesTokenCount": 1, "thoughtsTokenCount": 1, "cachedContentTokenCount": 4}
    response = gemini.GenerateContentResponse.model_validate({"usageMetadata": google})
    assert tokens_of({"usageMetadata": google}) == tokens_of(response) == Tokens(9, 2, 4)


def test_tokens_add_up() -> None:
    assert Tokens(1, 2, 3, 4) + Tokens(1, 1, estimated=True) == Tokens(2, 3, 3, 4, estimated=True)
    assert Tokens(1, 2).total == 3


def test_a_message_to_a_model() -> None:
    assert told("gemini", "Hi.") == {"role": "user", "parts": [{"text": "Hi."}]}
    assert told("mistral", "Hi.", "system") == {"role": "system", "content": "Hi."}

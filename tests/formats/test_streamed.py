"""Messages that come in pieces, put together from the SDKs' own events and from dicts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anthropic.types import Message, MessageParam, RawMessageStreamEvent
from google.genai import types as gemini
from hypothesis import given
from hypothesis import strategies as st
from mistralai.client import models as mistral
from openai.lib.streaming.chat import ChatCompletionStreamState
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam
from openai.types.responses import ResponseFunctionToolCall, ResponseInputItemParam, ResponseStreamEvent
from pydantic import TypeAdapter
from tests.support.sdks import require_taken

from toolcrib import ToolRegistry, tool
from toolcrib.formats import StreamedMessage, calls_of


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def put_together(events: list[Any]) -> StreamedMessage:
    said = StreamedMessage()
    for event in events:
        said.add(event)
    return said


def chunk(delta: dict[str, Any], index: int = 0) -> ChatCompletionChunk:
    choice = {"index": index, "delta": delta, "finish_reason": None}
    body = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    return ChatCompletionChunk.model_validate(body)


def call_piece(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    return {
        "tool_calls": [
            {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        ]
    }


CHAT = [
    chunk({"role": "assistant", "content": "Let "}),
    chunk({"content": "me see."}),
    chunk(call_piece(0, "c1", "add", "")),
    chunk(call_piece(1, "c2", "add", '{"a"')),
    chunk(call_piece(0, None, None, '{"a": 1}')),
    chunk(call_piece(1, None, None, ": 2}")),
]


@pytest.mark.parametrize("events", [CHAT, [each.model_dump() for each in CHAT]], ids=["objects", "dicts"])
async def test_chunks_of_openai_chat(events: list[Any]) -> None:
    said = put_together(events)
    assert said.message["content"] == "Let me see."
    assert [call["id"] for call in said.message["tool_calls"]] == ["c1", "c2"]
    answers = await ToolRegistry([add]).execute_calls(said)
    assert [(each["tool_call_id"], each["content"]) for each in answers] == [("c1", "2"), ("c2", "3")]
    assert answers == await ToolRegistry([add]).execute_calls(said.message)


def test_providers_that_send_whole_calls_without_an_index() -> None:
    events = [
        {"data": {"choices": [{"delta": {"tool_calls": [{"id": each, "function": {"name": "add", "arguments": {}}}]}}]}}
        for each in ("D681PevKs", "9fJ2kLmNo")
    ]
    calls = put_together(events).message["tool_calls"]
    assert [(call["id"], call["function"]["arguments"]) for call in calls] == [("D681PevKs", "{}"), ("9fJ2kLmNo", "{}")]


def test_a_provider_that_gives_every_call_the_same_index() -> None:
    events = [chunk(call_piece(0, each, "add", "{}")) for each in ("c1", "c2")]
    assert [call["id"] for call in put_together(events).message["tool_calls"]] == ["c1", "c2"]


@pytest.mark.parametrize("no_id", [None, "", "null"])
def test_a_piece_without_an_id_goes_on_with_its_call(no_id: str | None) -> None:
    """Of which Mistral's SDK makes a text of null."""
    events = [chunk(call_piece(0, "c1", "add", '{"a"')), chunk(call_piece(0, no_id, "", ": 1}"))]
    [call] = put_together(events).message["tool_calls"]
    assert (call["id"], call["function"]) == ("c1", {"name": "add", "arguments": '{"a": 1}'})


async def test_a_call_of_openai_chat_that_was_cut_off_does_not_run() -> None:
    ended = chunk({}).model_dump()
    ended["choices"][0]["finish_reason"] = "length"
    said = put_together([chunk(call_piece(0, "c1", "forget", "")), ended, chunk({"content": None})])
    for message in (said, said.message):
        [answer] = await ToolRegistry([forget]).execute_calls(message)
        assert answer["tool_call_id"] == "c1" and "not JSON" in answer["content"]


def test_of_several_choices_the_first_counts() -> None:
    pieces = [(0, "Let "), (1, "No"), (0, "me "), (1, "."), (0, "see.")]
    said = put_together([chunk({"content": text}, index) for index, text in pieces])
    assert said.message["content"] == "Let me see."
    candidates = [{"candidates": [{"index": index, "content": {"parts": [{"text": text}]}}]} for index, text in pieces]
    assert put_together(candidates).message["parts"] == [{"text": "Let me see."}]


def test_a_refusal_is_part_of_the_message() -> None:
    said = put_together([chunk({"role": "assistant", "refusal": "I can"}), chunk({"refusal": "not."})])
    assert said.message == {"role": "assistant", "content": None, "refusal": "I cannot."}
    require_taken(ChatCompletionMessageParam, said.message)


def test_what_a_provider_wants_back_is_kept() -> None:
    """Reasoning and its signatures, without which DeepSeek, Gemini and OpenRouter refuse the next request."""
    details = {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1"}
    encrypted = {"type": "reasoning.encrypted", "index": 1, "data": "x"}
    events = [
        chunk({"role": "assistant", "content": "", "reasoning_content": "Add "}),
        chunk({"reasoning_content": "them.", "reasoning_details": [details | {"text": "Add "}]}),
        chunk({"reasoning_details": [details | {"text": "them."}]}),
        chunk({"reasoning_details": [details | {"signature": "sig"}, encrypted]}),
        chunk({"tool_calls": [{
            "index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a"'},
            "extra_content": {"google": {"thought_signature": "sig"}},
        }]}),
        chunk(call_piece(0, None, None, ": 1}")),
    ]  # fmt: skip
    assert put_together(events).message == put_together([each.model_dump() for each in events]).message == {
        "role": "assistant",
        "content": None,
        "reasoning_content": "Add them.",
        "reasoning_details": [
            details | {"text": "Add them.", "signature": "sig"},
            encrypted,
        ],
        "tool_calls": [
            {
                "id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'},
                "extra_content": {"google": {"thought_signature": "sig"}},
            }
        ],
    }  # fmt: skip


async def test_the_events_of_openais_own_helper() -> None:
    state: ChatCompletionStreamState[None] = ChatCompletionStreamState()
    said = put_together([event for each in CHAT for event in state.handle_chunk(each)])
    assert said.message == put_together(CHAT).message
    registry = ToolRegistry([add])
    assert await registry.execute_calls(said) == await registry.execute_calls(state.current_completion_snapshot)


@pytest.mark.parametrize("first", ["", "Well."])
def test_what_mistral_thinks_is_kept(first: str) -> None:
    deltas: list[dict[str, Any]] = [
        {"role": "assistant", "content": first},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "Add "}]}]},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "them."}], "closed": True}]},
        {"content": "Let me "},
        {"content": [{"type": "text", "text": "see."}, {"type": "reference", "reference_ids": [1]}]},
        {"content": [{"type": "reference", "reference_ids": [2]}]},
        {"tool_calls": [{"id": "D681PevKs", "function": {"name": "add", "arguments": '{"a": 1}'}, "index": 0}]},
    ]
    events = [
        mistral.CompletionEvent.model_validate(
            {"data": {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}}
        )
        for delta in deltas
    ]
    said = put_together(events).message
    assert said["content"] == [{"type": "text", "text": first}] * bool(first) + [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Add them."}], "closed": True},
        {"type": "text", "text": "Let me see."},
        {"type": "reference", "reference_ids": [1]},
        {"type": "reference", "reference_ids": [2]},
    ]
    assert [each["id"] for each in said["tool_calls"]] == ["D681PevKs"]
    mistral.AssistantMessage.model_validate(said)


def test_text_alone_is_a_message_without_calls() -> None:
    said = put_together(CHAT[:2])
    assert said.message == {"role": "assistant", "content": "Let me see."}
    assert calls_of(said) == ("", [])


async def test_events_of_openai_responses() -> None:
    item = ResponseFunctionToolCall(
        type="function_call", id="fc_1", call_id="call_1", name="add", arguments='{"a": 1}', status="completed"
    )
    begun = {**item.model_dump(), "arguments": "", "status": "in_progress"}
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    events = [
        adapter.validate_python(event)
        for event in (
            {"type": "response.output_item.added", "output_index": 0, "sequence_number": 1, "item": begun},
            {
                "type": "response.function_call_arguments.delta", "output_index": 0, "sequence_number": 2,
                "item_id": "fc_1", "delta": '{"a": 1}',
            },
            {"type": "response.output_item.done", "output_index": 0, "sequence_number": 3, "item": item.model_dump()},
        )
    ]  # fmt: skip
    said = put_together(events)
    assert [each["call_id"] for each in said.message] == ["call_1"]
    [answer] = await ToolRegistry([add]).execute_calls(said)
    assert answer == {"type": "function_call_output", "call_id": "call_1", "output": "2"}


async def test_items_of_openai_responses_go_back_as_they_came() -> None:
    """Reasoning that only OpenAI can read, and calls that its servers made, in the words of its API."""
    items: list[dict[str, Any]] = [
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"},
        {"type": "mcp_call", "id": "mcp_1", "name": "add", "arguments": "{}", "server_label": "sums", "output": "2"},
        {
            "type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}',
            "async": True,
        },
        {"type": "custom_tool_call", "call_id": "call_2", "name": "add", "input": "1"},
    ]  # fmt: skip
    adapter: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
    said = put_together([
        adapter.validate_python(
            {"type": "response.output_item.done", "output_index": index, "sequence_number": index, "item": item}
        )
        for index, item in enumerate(items)
    ])  # fmt: skip
    assert said.message == items
    require_taken(list[ResponseInputItemParam], said.message)
    answers = await ToolRegistry([add]).execute_calls(said)
    assert [answer["call_id"] for answer in answers] == ["call_1"]


USAGE = {"input_tokens": 1, "output_tokens": 1}
ANTHROPIC: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "m", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None,
            "stop_sequence": None, "usage": USAGE,
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "Add "}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "them."}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "sig"}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "content_block_start", "index": 1,
        "content_block": {"type": "tool_use", "id": "t1", "name": "add", "input": {}},
    },
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": '{"a": '}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": "1}"}},
    {"type": "content_block_stop", "index": 1},
    {"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": None}, "usage": USAGE},
    {"type": "message_stop"},
]  # fmt: skip


def test_whatever_grows_in_a_block_of_anthropic_is_kept() -> None:
    """As its summary does where the API makes a conversation shorter."""
    begun = {"type": "compaction", "content": None}
    pieces = [{"type": "compaction_delta", "content": each} for each in ("They ", "added.")]
    citations = [
        {"type": "citations_delta", "citation": {"type": "char_location", "cited_text": each}} for each in "ab"
    ]
    said = put_together([
        ANTHROPIC[0],
        {"type": "content_block_start", "index": 0, "content_block": begun},
        *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in pieces),
        {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
        *({"type": "content_block_delta", "index": 1, "delta": delta} for delta in citations),
        {"type": "content_block_start", "index": 2, "content_block": {"type": "redacted_thinking", "data": "x"}},
    ])  # fmt: skip
    assert said.message["content"] == [
        {"type": "compaction", "content": "They added."},
        {"type": "text", "text": "", "citations": [each["citation"] for each in citations]},
        {"type": "redacted_thinking", "data": "x"},
    ]


@pytest.mark.parametrize("as_objects", [True, False])
async def test_events_of_anthropic(as_objects: bool) -> None:
    adapter: TypeAdapter[Any] = TypeAdapter(RawMessageStreamEvent)
    said = put_together([adapter.validate_python(event) if as_objects else event for event in ANTHROPIC])
    thinking, call = said.message["content"]
    assert thinking == {"type": "thinking", "thinking": "Add them.", "signature": "sig"}
    assert call["input"] == {"a": 1}
    [answer] = await ToolRegistry([add]).execute_calls(said)
    assert answer["content"][0]["content"] == "2"


def anthropic_call(*pieces: str, stopped: str = "tool_use") -> list[dict[str, Any]]:
    """The events of a message with one call, whose input comes in pieces."""
    deltas = [
        {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": piece}}
        for piece in pieces
    ]
    ended = {"type": "message_delta", "delta": {"stop_reason": stopped, "stop_sequence": None}, "usage": USAGE}
    return [*ANTHROPIC[:7], *deltas, ANTHROPIC[10], ended, ANTHROPIC[12]]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"a": ', "not JSON"),
        ('{"a": NaN}', "not JSON"),
        ('{"a": 1e999}', "not JSON"),
        ('{"a": "\\ud800"}', "not JSON"),
        ("[1]", "must be an object"),
        ("7", "must be an object"),
    ],
)
async def test_an_input_of_anthropic_that_is_no_object_goes_back_as_one(text: str, says: str) -> None:
    """The API refuses any other, and with it the whole conversation."""
    said = put_together(anthropic_call(text))
    assert said.message["content"][1]["input"] == {"INVALID_JSON": text}
    require_taken(MessageParam, said.message)
    registry = ToolRegistry([add])
    [answer] = await registry.execute_calls(said)
    assert answer == (await registry.execute_calls(said.message))[0]
    [block] = answer["content"]
    assert (block["tool_use_id"], block["is_error"]) == ("t1", True)
    assert says in block["content"]


@tool
async def forget(everything: bool = True) -> str:
    """Forget."""
    raise AssertionError("it ran")


@pytest.mark.parametrize("stopped", ["max_tokens", "model_context_window_exceeded", "refusal"])
@pytest.mark.parametrize("pieces", [(), ("{}",), ('{"everything"', ": true}")])
async def test_a_call_that_was_cut_off_does_not_run(pieces: tuple[str, ...], stopped: str) -> None:
    """What came of it may look whole: the SDK completes its JSON."""
    begun = {"type": "tool_use", "id": "t1", "name": "forget", "input": {}}
    start = {"type": "content_block_start", "index": 1, "content_block": begun}
    events = [start if each == ANTHROPIC[6] else each for each in anthropic_call(*pieces, stopped=stopped)]
    streamed = put_together(events)
    require_taken(MessageParam, streamed.message)
    whole = ANTHROPIC[0]["message"] | {"content": [{"type": "text", "text": "So:"}, begun], "stop_reason": stopped}
    registry = ToolRegistry([forget, add])
    for said in (streamed, streamed.message, whole, Message.model_validate(whole)):
        [answer] = await registry.execute_calls(said)
        [block] = answer["content"]
        assert (block["tool_use_id"], block["is_error"]) == ("t1", True)
        assert "not JSON" in block["content"]


async def test_the_calls_before_one_that_was_cut_off_run() -> None:
    calls = [{"type": "tool_use", "id": f"t{n}", "name": "add", "input": {"a": n}} for n in (1, 2)]
    whole = {"role": "assistant", "content": calls, "stop_reason": "max_tokens"}
    [answer] = await ToolRegistry([add]).execute_calls(whole)
    assert [block["is_error"] for block in answer["content"]] == [False, True]
    ended = whole | {"content": [*calls, {"type": "text", "text": "And th"}]}
    [answer] = await ToolRegistry([add]).execute_calls(ended)
    assert [block["is_error"] for block in answer["content"]] == [False, False]


async def test_chunks_of_gemini() -> None:
    parts = [
        gemini.Part(text="Let me "),
        gemini.Part(text="see."),
        gemini.Part(function_call=gemini.FunctionCall(name="add", args={"a": 1}), thought_signature=b"sig"),
    ]
    events = [
        gemini.GenerateContentResponse(
            candidates=[gemini.Candidate(content=gemini.Content(role="model", parts=[part]))]
        )
        for part in parts
    ]
    said = put_together(events)
    whole = gemini.Content.model_validate(said.message)
    assert whole.parts is not None
    assert (whole.parts[0].text, whole.parts[1].thought_signature) == ("Let me see.", b"sig")
    [answer] = await ToolRegistry([add]).execute_calls(said)
    assert answer["parts"][0]["functionResponse"]["response"] == {"output": 2}


@given(st.lists(st.sampled_from([*ANTHROPIC, *(each.model_dump() for each in CHAT), {}, None, 7, {"type": 3}])))
def test_pieces_in_any_order_are_some_message(events: list[Any]) -> None:
    json.dumps(put_together(events).message)

"""An agent's builder hands tools to models and answers their calls: what breaks such loops, one by one.

Of the same kind: the loops of frameworks in ``tests/frameworks/test_loops.py``, odd signatures in
``tests/define/test_odd_signatures.py``, and what type checkers have to catch in ``tests/typing``.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import json
from typing import Any

import pytest
from anthropic.types import Message, ToolResultBlockParam
from google.genai import types as gemini
from mistralai.client import models as mistral
from openai.types.chat import ChatCompletion, ChatCompletionMessage, ChatCompletionToolMessageParam
from openai.types.responses import Response, ResponseFunctionToolCall
from openai.types.responses.response_input_param import FunctionCallOutput
from tests.support.sdks import require_taken

from toolcrib import Image, ToolContext, ToolRegistry, ToolValidationError, tool

PNG = b"\x89PNG\r\n\x1a\n\xff\xfe"


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool(name="math.root")
async def root(n: float) -> float:
    """The square root."""
    return float(n**0.5)


@tool
async def chart() -> bytes:
    """A chart."""
    return PNG


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([add, root, chart])


def chat_message(*calls: tuple[str, str, str]) -> ChatCompletionMessage:
    """A message of OpenAI Chat with calls of (id, name, arguments)."""
    listed = [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in calls
    ]
    return ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": listed})


def anthropic_message(*blocks: dict[str, Any]) -> Message:
    usage = {"input_tokens": 1, "output_tokens": 1}
    body = {"id": "m", "type": "message", "role": "assistant", "model": "m", "stop_reason": "tool_use", "usage": usage}
    return Message.model_validate(body | {"content": list(blocks)})


def function_call(call_id: str = "call_1", arguments: str = '{"a": 1}') -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", id="fc_1", call_id=call_id, name="add", arguments=arguments)


# The objects of the SDKs, alone and in their messages


async def test_an_openai_tool_call_is_taken_as_its_sdk_has_it(registry: ToolRegistry) -> None:
    message = chat_message(("c1", "add", '{"a": 1}'))
    assert message.tool_calls is not None
    answer = await registry.execute_call("openai", message.tool_calls[0])
    assert answer == {"role": "tool", "tool_call_id": "c1", "content": "2"}
    require_taken(ChatCompletionToolMessageParam, answer)


async def test_an_anthropic_block_is_taken_as_its_sdk_has_it(registry: ToolRegistry) -> None:
    message = anthropic_message({"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}})
    answer = await registry.execute_call("anthropic", message.content[0])
    assert answer == {"type": "tool_result", "tool_use_id": "t1", "content": "2", "is_error": False}
    require_taken(ToolResultBlockParam, answer)


async def test_a_message_of_openai_chat(registry: ToolRegistry) -> None:
    message = chat_message(("c1", "add", '{"a": 1}'), ("c2", "math_root", '{"n": 9}'))
    answers = [
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "tool", "tool_call_id": "c2", "content": "3.0"},
    ]
    assert await registry.execute_calls(message) == answers
    assert await registry.execute_calls(message.model_dump()) == answers
    choice = {"index": 0, "finish_reason": "tool_calls", "message": message.model_dump()}
    body = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    completion = ChatCompletion.model_validate(body)
    for given in (completion, completion.choices[0]):
        assert await registry.execute_calls(given) == answers


async def test_a_response_of_openai_is_answered_under_its_call_id(registry: ToolRegistry) -> None:
    item = function_call()
    answers = [{"type": "function_call_output", "call_id": "call_1", "output": "2"}]
    require_taken(FunctionCallOutput, answers[0])
    body = {
        "id": "r", "object": "response", "created_at": 1, "model": "m", "status": "completed", "tools": [],
        "parallel_tool_calls": True, "tool_choice": "auto",
        "output": [{"type": "reasoning", "id": "rs_1", "summary": []}, item.model_dump()],
    }  # fmt: skip
    response = Response.model_validate(body)
    for message in (response, response.output, body, body["output"], [item]):
        assert await registry.execute_calls(message) == answers
    for call in (item, item.model_dump()):
        assert await registry.execute_call("openai-responses", call) == answers[0]
        assert await registry.execute_call("openai", call) == answers[0], "its shape says whose it is"


async def test_a_message_of_anthropic_is_answered_by_one_message(registry: ToolRegistry) -> None:
    message = anthropic_message(
        {"type": "text", "text": "Let me see."},
        {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 1}},
        {"type": "tool_use", "id": "t2", "name": "add", "input": {}},
    )
    for given in (message, message.model_dump(), {"role": "assistant", "content": message.content}):
        [answer] = await registry.execute_calls(given)
        assert answer["role"] == "user"
        assert [(block["tool_use_id"], block["is_error"]) for block in answer["content"]] == [
            ("t1", False),
            ("t2", True),
        ]


async def test_a_message_of_gemini_in_any_of_its_spellings(registry: ToolRegistry) -> None:
    call = gemini.FunctionCall(name="add", args={"a": 1})
    content = gemini.Content(role="model", parts=[gemini.Part(text="So."), gemini.Part(function_call=call)])
    answer = {"role": "user", "parts": [{"functionResponse": {"name": "add", "response": {"output": 2}}}]}
    response = gemini.GenerateContentResponse(candidates=[gemini.Candidate(content=content)])
    spellings = (content, response, content.model_dump(), content.model_dump(by_alias=True), {"parts": content.parts})
    for given in spellings:
        assert await registry.execute_calls(given) == [answer]
    gemini.Content.model_validate(answer)
    assert content.parts is not None
    for part in (content.parts[1], content.parts[1].model_dump(), {"functionCall": {"name": "add", "args": {"a": 1}}}):
        assert await registry.execute_call("gemini", part) == answer["parts"][0]
    for bare in (response.function_calls, [call.model_dump()], [call.model_dump(by_alias=True)], call):
        assert await registry.execute_calls(bare) == [answer], "a call without its part"
    [refused] = await registry.execute_calls([gemini.FunctionCall(name="nothing")])
    assert "no tool is called 'nothing'" in refused["parts"][0]["functionResponse"]["response"]["error"]


async def test_a_message_of_mistral(registry: ToolRegistry) -> None:
    calls = [
        mistral.ToolCall(id="D681PevKs", function=mistral.FunctionCall(name="add", arguments={"a": 1})),
        mistral.ToolCall(id="9fJ2kLmNo", function=mistral.FunctionCall(name="add", arguments='{"a": 2}')),
    ]
    answers = await registry.execute_calls(mistral.AssistantMessage(tool_calls=calls))
    assert [(each["tool_call_id"], each["content"]) for each in answers] == [("D681PevKs", "2"), ("9fJ2kLmNo", "3")]
    for answer in answers:
        mistral.ToolMessage.model_validate(answer)
    assert [await registry.execute_call("mistral", call) for call in calls] == answers


class UnknownMessage:
    """A message of an SDK that nobody here knows."""

    def __init__(self) -> None:
        self.tool_calls = [{"id": "c1", "function": {"name": "add", "arguments": '{"a": 1}'}}]


class OldMessage(UnknownMessage):
    def model_dump(self) -> dict[str, Any]:
        return vars(self)


class BrokenMessage(UnknownMessage):
    def model_dump(self, **how: Any) -> dict[str, Any]:
        raise RuntimeError(f"it cannot be written {how}")


class OddMessage(UnknownMessage):
    def model_dump(self, **how: Any) -> str:
        return f"no mapping {how}"

    def to_dict(self) -> None:
        """Nothing."""


@pytest.mark.parametrize("kind", [UnknownMessage, OldMessage, BrokenMessage, OddMessage])
async def test_an_object_of_an_unknown_class_is_read_as_well_as_it_can_be(
    registry: ToolRegistry, kind: type[UnknownMessage]
) -> None:
    assert await registry.execute_calls(kind()) == [{"role": "tool", "tool_call_id": "c1", "content": "2"}]


# What models get wrong


async def test_broken_json_is_answered_under_the_id_that_it_came_with(registry: ToolRegistry) -> None:
    first, third = await registry.execute_calls(chat_message(("c1", "add", '{"a": 1}'), ("c3", "add", '{"a": ')))
    assert (first["tool_call_id"], third["tool_call_id"]) == ("c1", "c3")
    assert json.loads(third["content"])["error_code"] == "invalid_arguments"
    answer = await registry.execute_call("openai-responses", function_call("call_9", "{"))
    assert answer["call_id"] == "call_9" and "not JSON" in answer["output"]


@pytest.mark.parametrize(
    ("name", "arguments", "says"),
    [
        ("add", "[1, 2]", "must be an object of names and values"),
        ("add", '{"a": NaN}', "NaN and Infinity are no numbers"),
        ("add", '{"a": -Infinity}', "NaN and Infinity are no numbers"),
        ("add", '{"a": "' + "x" * 10_000_000 + '"}', "10,000,009 characters"),
        ("add", '{"a": [' + "1," * 200_000 + "1]}", "more than 100,000 values"),
        ("add", "7", "must be an object"),
        ("Add", '{"a": 1}', "did you mean 'add'?"),
        ("delete_everything", "{}", "no tool is called 'delete_everything'"),
        ("", "{}", "has no 'name'"),
    ],
)
async def test_each_call_gets_its_answer_and_nothing_runs_that_should_not(name: str, arguments: str, says: str) -> None:
    ran: list[int] = []

    @tool(name="add")
    async def counted(a: int) -> int:
        """Add."""
        ran.append(a)
        return a

    registry = ToolRegistry([counted])
    [answer] = await registry.execute_calls(chat_message(("c1", name, arguments)))
    assert answer["tool_call_id"] == "c1" and says in answer["content"]
    assert ran == []


@pytest.mark.parametrize("value", ["1e999", '"\\ud800"', '["\\ud800"]', "[1e999]"])
async def test_what_is_read_as_json_and_is_none_is_refused_as_such(registry: ToolRegistry, value: str) -> None:
    [answer] = await registry.execute_calls(chat_message(("c1", "add", f'{{"a": {value}}}')))
    told = json.loads(answer["content"])
    assert told["error_code"] == "invalid_arguments" and "are not JSON" in told["error"]


@pytest.mark.parametrize(
    "call", [{"type": "function"}, {"function": None}, {"type": "custom", "custom": {"name": "x"}}]
)
async def test_a_call_of_no_known_shape_is_answered_under_its_id(registry: ToolRegistry, call: dict[str, Any]) -> None:
    [answer] = await registry.execute_calls({"role": "assistant", "tool_calls": [{"id": "c1", **call}]})
    assert answer["tool_call_id"] == "c1" and "has no 'name'" in answer["content"]


@pytest.mark.parametrize("name", [{}, {"a": 1}, [], 3, None, True], ids=repr)
async def test_a_name_that_is_no_text_is_answered_under_its_id(registry: ToolRegistry, name: Any) -> None:
    [chat] = await registry.execute_calls({"tool_calls": [{"id": "c1", "function": {"name": name, "arguments": "{}"}}]})
    assert chat["tool_call_id"] == "c1" and "has no 'name'" in chat["content"]
    [item] = await registry.execute_calls([{"type": "function_call", "call_id": "c2", "name": name, "arguments": "{"}])
    assert item["call_id"] == "c2" and "has no 'name'" in item["output"]
    [message] = await registry.execute_calls([{"type": "tool_use", "id": "c3", "name": name, "input": {}}])
    assert message["content"][0]["tool_use_id"] == "c3" and message["content"][0]["is_error"]
    [turn] = await registry.execute_calls([{"functionCall": {"id": "c4", "name": name, "args": {}}}])
    assert turn["parts"][0]["functionResponse"]["name"] == "c4", "Gemini takes a text alone"


async def test_of_a_conversation_the_last_message_counts(registry: ToolRegistry) -> None:
    asked = chat_message(("c1", "add", '{"a": 1}'))
    messages = [{"role": "user", "content": "Add."}, asked]
    answers = await registry.execute_calls(messages)
    assert [each["tool_call_id"] for each in answers] == ["c1"]
    assert await registry.execute_calls([*messages, *answers]) == []


async def test_of_a_conversation_with_gemini_the_last_message_counts(registry: ToolRegistry) -> None:
    asked = {"role": "model", "parts": [{"functionCall": {"name": "add", "args": {"a": 1}}}]}
    [answer] = await registry.execute_calls(["Add.", asked])
    assert answer["parts"][0]["functionResponse"]["response"] == {"output": 2}
    assert await registry.execute_calls(["Add.", asked, answer]) == []
    assert await registry.execute_calls(["Add.", asked, "And now?"]) == []


async def test_a_call_in_a_conversation_that_has_its_answer_does_not_run_again(registry: ToolRegistry) -> None:
    items = [{"role": "user", "content": "Add."}, function_call("c1"), function_call("c2")]
    answers = await registry.execute_calls(items)
    assert [each["call_id"] for each in answers] == ["c1", "c2"]
    assert await registry.execute_calls([*items, *answers]) == []
    [later] = await registry.execute_calls([*items, *answers, function_call("c3")])
    assert later["call_id"] == "c3"


def nested(depth: int, innermost: Any) -> dict[str, Any]:
    for _ in range(depth):
        innermost = {"a": innermost}
    return {"a": innermost}


@pytest.mark.parametrize("innermost", [1, None])
async def test_arguments_that_are_nested_too_deep_are_refused(registry: ToolRegistry, innermost: Any) -> None:
    block = {"type": "tool_use", "id": "t", "name": "add", "input": nested(5000, innermost)}
    [answer] = await registry.execute_calls(anthropic_message(block))
    assert "are not JSON: Recursion limit reached" in answer["content"][0]["content"]


class Unreadable:
    def __repr__(self) -> str:
        raise RuntimeError("it cannot be shown")


async def test_whatever_breaks_in_one_call_costs_the_others_nothing(
    registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    broken = {"id": "c1", "function": {"name": "add", "arguments": Unreadable()}}
    good = {"id": "c2", "function": {"name": "add", "arguments": '{"a": 1}'}}
    first, second = await registry.execute_calls({"tool_calls": [broken, good]})
    told = json.loads(first["content"])
    assert (first["tool_call_id"], told["error_code"]) == ("c1", "error")
    assert "its log has the reason" in told["error"] and "it cannot be shown" in caplog.text
    assert second == {"role": "tool", "tool_call_id": "c2", "content": "2"}


async def test_arguments_as_a_text_of_a_text_are_understood(registry: ToolRegistry) -> None:
    [answer] = await registry.execute_calls(chat_message(("c1", "add", json.dumps('{"a": 1}'))))
    assert answer["content"] == "2"


async def test_a_doubled_id_runs_once() -> None:
    ran: list[int] = []

    @tool
    async def note(n: int) -> int:
        """Note it."""
        ran.append(n)
        return n

    message = chat_message(("c1", "note", '{"n": 1}'), ("c1", "note", '{"n": 2}'))
    first, second = await ToolRegistry([note]).execute_calls(message)
    assert (first["content"], ran) == ("1", [1])
    assert second["tool_call_id"] == "c1" and "an id of its own" in second["content"]


async def test_a_message_leaves_nothing_behind_for_the_garbage_collector(registry: ToolRegistry) -> None:
    message = chat_message(*((f"c{n}", "add", '{"a": 1}') for n in range(5)))
    await registry.execute_calls(message)
    gc.collect()
    gc.disable()
    try:
        await registry.execute_calls(message)
        assert gc.collect() == 0
    finally:
        gc.enable()


async def test_a_call_without_an_id_is_answered_all_the_same(registry: ToolRegistry) -> None:
    [answer] = await registry.execute_calls({"tool_calls": [{"function": {"name": "add", "arguments": '{"a": 1}'}}]})
    assert answer == {"role": "tool", "tool_call_id": "", "content": "2"}


async def test_calls_without_ids_are_not_taken_for_one(registry: ToolRegistry) -> None:
    function = mistral.FunctionCall(name="add", arguments='{"a": 1}')
    for call in (mistral.ToolCall(function=function), {"function": function.model_dump()}):
        answers = await registry.execute_calls({"tool_calls": [call, call]})
        assert [each["content"] for each in answers] == ["2", "2"]


@tool
async def forget(everything: bool = True) -> str:
    """Forget."""
    raise AssertionError("it ran")


async def test_a_call_of_gemini_that_goes_on_elsewhere_does_not_run() -> None:
    call = gemini.FunctionCall(name="forget", will_continue=True)
    rest = gemini.FunctionCall(partial_args=[gemini.PartialArg(json_path="$.everything", bool_value=False)])
    said = gemini.Content(role="model", parts=[gemini.Part(function_call=each) for each in (call, rest)])
    for given in (said, said.model_dump(), said.model_dump(by_alias=True)):
        [answer] = await ToolRegistry([forget]).execute_calls(given)
        first, second = (part["functionResponse"]["response"]["error"] for part in answer["parts"])
        assert "not JSON" in first and "has no 'name'" in second


@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize("arguments", ["", '{"everything"'])
async def test_a_call_that_was_cut_off_at_openai_does_not_run(reason: str, arguments: str) -> None:
    registry = ToolRegistry([add, forget])
    message = chat_message(("c1", "add", '{"a": 1}'), ("c2", "forget", arguments)).model_dump()
    choice = {"index": 0, "finish_reason": reason, "message": message}
    completion = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice]}
    for given in (choice, completion, ChatCompletion.model_validate(completion)):
        first, second = await registry.execute_calls(given)
        assert (first["content"], second["tool_call_id"]) == ("2", "c2")
        assert "not JSON" in second["content"]


@pytest.mark.parametrize("arguments", ["", "{}", '{"everything"'])
async def test_an_incomplete_item_of_openai_does_not_run(arguments: str) -> None:
    item = ResponseFunctionToolCall(
        type="function_call", call_id="c1", name="forget", arguments=arguments, status="incomplete"
    )
    [answer] = await ToolRegistry([forget]).execute_calls([item])
    assert answer["call_id"] == "c1" and "not JSON" in answer["output"]


@pytest.mark.parametrize(
    "message",
    [
        None, 7, "add", b"add", [], {}, [[]], [None], {"tool_calls": 3}, {"tool_calls": []}, {"content": "Hello."},
        {"role": "assistant", "content": [{"type": "text", "text": "Hello."}]}, {"output": []},
        {"parts": [{"text": ""}]},
        {"choices": []}, {"candidates": [{}]}, {"choices": [{"message": {"content": "Hello."}}]}, object(),
    ],
)  # fmt: skip
async def test_a_message_without_calls_has_no_answers(registry: ToolRegistry, message: Any) -> None:
    assert await registry.execute_calls(message) == []


async def test_all_wrong_arguments_are_told_in_one_answer() -> None:
    @tool
    async def book(city: str, nights: int, breakfast: bool = False) -> str:
        """Book a room."""
        return "booked"

    result = await ToolRegistry([book]).execute("book", {"nights": "two", "breakfast": "yes", "town": "Oslo"})
    assert result.error_code == "invalid_arguments"
    for name in ("'city'", "'nights'", "'breakfast'", "'town'"):
        assert name in str(result.error)
    assert result.metadata["arguments"].keys() == {"city", "nights", "breakfast", "town"}


# What tools return


async def test_an_image_is_one_for_providers_that_take_images(registry: ToolRegistry) -> None:
    data = base64.b64encode(PNG).decode()
    [answer] = await registry.execute_calls(
        anthropic_message({"type": "tool_use", "id": "t", "name": "chart", "input": {}})
    )
    source = {"type": "base64", "media_type": "image/png", "data": data}
    assert answer["content"][0]["content"] == [{"type": "image", "source": source}]
    require_taken(ToolResultBlockParam, answer["content"][0])
    item = {"type": "function_call", "call_id": "c", "name": "chart", "arguments": "{}"}
    [output] = await registry.execute_calls([item])
    assert output["output"] == [{"type": "input_image", "image_url": f"data:image/png;base64,{data}"}]
    require_taken(FunctionCallOutput, output)
    [turn] = await registry.execute_calls({"parts": [{"functionCall": {"name": "chart", "args": {}}}]})
    inline = gemini.Content.model_validate(turn).parts[0].function_response.parts[0].inline_data  # type: ignore[index, union-attr]
    assert (inline.mime_type, inline.data) == ("image/png", PNG)  # type: ignore[union-attr]


async def test_an_image_is_base64_with_its_media_type_for_others(registry: ToolRegistry) -> None:
    [answer] = await registry.execute_calls(chat_message(("c1", "chart", "")))
    told = json.loads(answer["content"])
    assert (told["type"], told["media_type"]) == ("image", "image/png")
    assert base64.b64decode(told["data"]) == PNG


async def test_text_and_images_may_stand_together() -> None:
    @tool
    async def both() -> list[Any]:
        """Text and image."""
        return ["The chart:", Image(PNG), {"rows": 3}]

    [answer] = await ToolRegistry([both]).execute_calls([{"type": "tool_use", "id": "t", "name": "both", "input": {}}])
    kinds = [block["type"] for block in answer["content"][0]["content"]]
    assert kinds == ["text", "image", "text"]


class Plot:
    """Shows itself as an image in a notebook, if it can."""

    def __init__(self, png: bytes | None) -> None:
        self.png = png

    def _repr_png_(self) -> bytes:
        if self.png is None:
            raise RuntimeError("there is no data to draw")
        return self.png

    def __repr__(self) -> str:
        return "<an empty plot>"


async def test_what_cannot_show_itself_as_an_image_is_described() -> None:
    @tool
    async def plots(among: bool) -> Any:
        """Plots."""
        return [Plot(PNG), Plot(None)] if among else Plot(None)

    registry = ToolRegistry([plots])
    block = {"type": "tool_use", "id": "t", "name": "plots"}
    [answer] = await registry.execute_calls([block | {"input": {"among": True}}])
    image, text = answer["content"][0]["content"]
    assert (image["type"], text) == ("image", {"type": "text", "text": '"<an empty plot>"'})
    [answer] = await registry.execute_calls([block | {"input": {"among": False}}])
    assert answer["content"][0]["content"] == '"<an empty plot>"'


async def test_an_async_generator_streams_its_items_and_returns_them_all() -> None:
    @tool
    async def count(n: int):
        """Count."""
        for number in range(n):
            yield number

    registry = ToolRegistry([count])
    [answer] = await registry.execute_calls(chat_message(("c1", "count", '{"n": 3}')))
    assert answer["content"] == "[0, 1, 2]"
    events = [event async for event in registry.stream("count", {"n": 3})]
    assert [event.item for event in events[:-1]] == [0, 1, 2]
    assert events[-1].result is not None and events[-1].result.data == [0, 1, 2]


class Files:
    def __init__(self, root: str) -> None:
        self.root = root

    @tool
    def read(self, path: str) -> str:
        """Read a file."""
        return f"{self.root}/{path}"

    @tool
    async def size(self, path: str) -> int:
        """How large a file is."""
        return len(path)


async def test_a_method_is_bound_to_its_instance() -> None:
    files = Files("/srv")
    registry = ToolRegistry()
    registry.register(files.read)
    [definition] = registry.definitions("openai")
    assert definition["function"]["parameters"]["properties"].keys() == {"path"}
    [answer] = await registry.execute_calls(chat_message(("c1", "read", '{"path": "a"}')))
    assert answer["content"] == "/srv/a"


def test_the_tools_of_an_instance_register_together() -> None:
    registry = ToolRegistry([Files("/srv")])
    assert sorted(registry.names()) == ["read", "size"]


# Deadlines and order


async def test_a_call_has_a_deadline_of_its_own_never_longer_than_the_tools() -> None:
    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Wait."""
        await asyncio.sleep(60)

    @tool
    async def patient() -> None:
        """Wait, without a deadline."""
        await asyncio.sleep(60)

    registry = ToolRegistry([slow, patient])
    for name, seconds in (("slow", 30), ("patient", 0.05)):
        result = await registry.execute(name, timeout_seconds=seconds)
        assert (result.error_code, "0.05 s" in str(result.error)) == ("timeout", True)
    for wrong in (0, -1, float("nan"), float("inf"), True, "2"):
        refused = await registry.execute("slow", timeout_seconds=wrong)  # type: ignore[arg-type]
        assert refused.error_code == "invalid_arguments" and "timeout_seconds" in str(refused.error)


async def test_calls_run_at_once_each_with_its_own_deadline_and_are_answered_in_order() -> None:
    together = asyncio.Barrier(3)

    @tool(timeout_seconds=30)
    async def meet(n: int) -> int:
        """Wait until all three are here."""
        await together.wait()
        return n

    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Wait."""
        await asyncio.sleep(60)

    calls = [("c0", "slow", ""), *((f"c{n}", "meet", f'{{"n": {n}}}') for n in (1, 2, 3))]
    answers = await ToolRegistry([meet, slow]).execute_calls(chat_message(*calls))
    assert [each["tool_call_id"] for each in answers] == ["c0", "c1", "c2", "c3"]
    assert [each["content"] for each in answers[1:]] == ["1", "2", "3"]
    assert json.loads(answers[0]["content"])["error_code"] == "timeout"


async def test_no_more_run_at_once_than_may() -> None:
    running, most = 0, 0

    @tool
    async def step() -> None:
        """Take a step."""
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1

    message = chat_message(*((f"c{n}", "step", "") for n in range(20)))
    assert len(await ToolRegistry([step]).execute_calls(message, at_once=3)) == 20
    assert most == 3


@pytest.mark.parametrize("wrong", [0, -1, 2.5, True, None, "2"])
async def test_how_many_run_at_once_is_a_number_above_0(registry: ToolRegistry, wrong: Any) -> None:
    with pytest.raises(ToolValidationError, match="at_once must be a whole number above 0, not"):
        await registry.execute_calls(chat_message(("c1", "add", '{"a": 1}')), at_once=wrong)


async def test_a_tool_that_cancels_itself_harms_no_other_call() -> None:
    @tool
    async def gives_up() -> None:
        """Cancel itself."""
        raise asyncio.CancelledError

    first, second = await ToolRegistry([gives_up, add]).execute_calls(
        chat_message(("c1", "gives_up", ""), ("c2", "add", '{"a": 1}'))
    )
    assert json.loads(first["content"])["error_code"] == "tool_failed"
    assert second["content"] == "2"


async def test_cancelling_the_message_cancels_its_calls() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            cancelled.set()

    calls = asyncio.create_task(ToolRegistry([wait]).execute_calls(chat_message(("c1", "wait", ""))))
    await started.wait()
    calls.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calls
    assert cancelled.is_set()


# Frameworks


def test_names_are_sanitised_for_langchain_as_everywhere(registry: ToolRegistry) -> None:
    assert [each.name for each in registry.to_langchain_tools()] == ["add", "math_root", "chart"]


async def test_a_timeout_through_langchain_is_said_once() -> None:
    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Wait."""
        await asyncio.sleep(60)

    [structured] = ToolRegistry([slow]).to_langchain_tools()
    message = await structured.ainvoke({"type": "tool_call", "id": "c1", "name": "slow", "args": {}})
    assert message.status == "error"
    assert message.content.count("'slow'") == 1


# Without an event loop


def test_a_call_without_an_event_loop(registry: ToolRegistry) -> None:
    assert registry.execute_sync("add", {"a": 1}).data == 2
    assert registry.execute_sync("nothing").error_code == "tool_not_found"


async def test_a_call_without_await_beside_a_running_loop(registry: ToolRegistry) -> None:
    assert registry.execute_sync("add", {"a": 1}).data == 2


def test_calls_without_an_event_loop_share_one(registry: ToolRegistry) -> None:
    loops: set[int] = set()

    @tool
    async def where() -> None:
        """Note the loop."""
        loops.add(id(asyncio.get_running_loop()))

    registry.register(where)
    registry.execute_sync("where")
    registry.execute_sync("where")
    assert len(loops) == 1


async def test_a_tool_that_waits_for_itself_is_told_so() -> None:
    registry = ToolRegistry([add])

    @tool
    async def inside() -> Any:
        """Call another tool without await."""
        return registry.execute_sync("add", {"a": 1}).data

    registry.register(inside)
    result = await asyncio.to_thread(registry.execute_sync, "inside")
    assert result.success is False and "await" in str(result.error)


def test_progress_reaches_who_streams(registry: ToolRegistry) -> None:
    @tool
    def crawl(context: ToolContext) -> str:
        """Crawl, in a thread."""
        context.progress(0.4, "page 3 of 8")
        return "done"

    registry.register(crawl)

    async def events() -> list[Any]:
        return [event async for event in registry.stream("crawl")]

    first, last = asyncio.run(events())
    assert (first.kind, first.fraction, first.message) == ("progress", 0.4, "page 3 of 8")
    assert last.result.data == "done"


# What a loop knows of the answers beside what it appends


@tool(is_terminal=True)
async def finish(summary: str) -> str:
    """Say that the task is done."""
    return summary


SHAPES_OF_A_CALL: dict[str, Any] = {
    "openai": {"id": "1", "type": "function", "function": {"name": "finish", "arguments": '{"summary": "done"}'}},
    "openai-responses": {"type": "function_call", "call_id": "1", "name": "finish", "arguments": '{"summary": "done"}'},
    "anthropic": {"type": "tool_use", "id": "1", "name": "finish", "input": {"summary": "done"}},
    "gemini": {"functionCall": {"id": "1", "name": "finish", "args": {"summary": "done"}}},
}


@pytest.mark.parametrize("format", SHAPES_OF_A_CALL)
async def test_an_answer_says_whether_it_ends_the_task(format: str, registry: ToolRegistry) -> None:
    registry.register(finish)
    said = SHAPES_OF_A_CALL[format]
    answer = await registry.execute_call(format, said)
    assert (answer.is_terminal, answer.result.data) == (True, "done")
    assert json.loads(json.dumps(answer)) == dict(answer)
    answers = await registry.execute_calls([said])
    assert (answers.is_terminal, answers.terminal) == (True, answers.results[0])
    assert json.loads(json.dumps(answers)) == list(answers)
    wrong = json.loads(json.dumps(said).replace("summary", "other"))
    assert not (await registry.execute_call(format, wrong)).is_terminal, "it did not run"


async def test_the_results_stand_in_the_order_of_the_calls(registry: ToolRegistry) -> None:
    message = chat_message(("1", "add", '{"a": 1}'), ("2", "nothing", "{}"), ("3", "add", "no JSON"))
    answers = await registry.execute_calls(message)
    codes = [each.error_code for each in answers.results]
    assert (codes, answers.is_terminal, answers.terminal) == (
        [None, "tool_not_found", "invalid_arguments"],
        False,
        None,
    )
    assert (await registry.execute_calls({"role": "assistant", "content": "Hi."})).results == []

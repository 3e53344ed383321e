"""A scripted model speaks as each provider's models do, and refuses what the providers refuse."""

from __future__ import annotations

from typing import Any

import pytest
from anthropic.types import Message, MessageParam, RawMessageStreamEvent
from google.genai import types as gemini
from mistralai.client import models as mistral
from openai.types.chat import ChatCompletion, ChatCompletionChunk, ChatCompletionMessage
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import BaseModel, TypeAdapter
from tests.support.sdks import require_taken

from toolcrib import ExportError, ToolRegistry, ToolValidationError, tool
from toolcrib.formats import StreamedMessage
from toolcrib.testing import SHAPES, ConversationRefusedError, ScriptedModel, ScriptEndedError, call
from toolcrib.testing.script import turn_of
from toolcrib.testing.shapes import shape_named

SDK: dict[str, type[Any]] = {
    "openai": ChatCompletionMessage,
    "openrouter": ChatCompletionMessage,
    "openai-responses": Response,
    "anthropic": Message,
    "gemini": gemini.Content,
    "mistral": mistral.AssistantMessage,
}
EVENTS: dict[str, Any] = {
    "openai": ChatCompletionChunk,
    "openrouter": ChatCompletionChunk,
    "openai-responses": ResponseStreamEvent,
    "anthropic": RawMessageStreamEvent,
    "gemini": gemini.GenerateContentResponse,
    "mistral": mistral.CompletionEvent,
}
RESPONSES: dict[str, type[Any]] = {
    "openai": ChatCompletion,
    "openrouter": ChatCompletion,
    "openai-responses": Response,
    "anthropic": Message,
    "gemini": gemini.GenerateContentResponse,
    "mistral": mistral.ChatCompletionResponse,
}
QUESTION = {"role": "user", "content": "How is the weather?", "parts": [{"text": "How is the weather?"}]}


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return {"Paris": "rain", "Oslo": "snow"}[city]


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([weather])


def definitions(registry: ToolRegistry, format: str) -> list[Any]:
    given = registry.definitions("openai" if format == "mistral" else format)
    return [{"functionDeclarations": given}] if format == "gemini" else given


def text_of(message: Any) -> str:
    """The text that a message ends with, whoever's it is."""
    if isinstance(message, BaseModel):
        message = message.model_dump(exclude_none=True)
    if isinstance(message, dict) and "output" in message:
        message = message["output"]
    if isinstance(message, list):
        message = message[-1]
    content = message.get("content", message.get("parts"))
    return str(content if isinstance(content, str) else content[-1]["text"])


@pytest.mark.parametrize("way", ["dicts", "SDK objects", "stream"])
@pytest.mark.parametrize("format", SHAPES)
async def test_a_conversation_to_its_end(registry: ToolRegistry, format: str, way: str) -> None:
    script = [
        ["Let me see.", call("weather", city="Paris"), call("weather", city="Oslo")],
        [call("weather", raw='{"city": '), call("forecast")],
        "Rain and snow.",
    ]
    model = ScriptedModel(script, format=format, as_sdk=way == "SDK objects")
    tools, messages = definitions(registry, format), [QUESTION]
    while True:
        if way == "stream":
            said = StreamedMessage()
            async for event in model.stream(messages, tools):
                said.add(event)
            message = said.message
        else:
            message = await model(messages, tools)
        if way == "SDK objects":
            assert isinstance(message, SDK[format])
        messages.append(message)
        answers = await registry.execute_calls(message)
        if not answers:
            break
        messages += answers
    assert text_of(message) == "Rain and snow."
    assert model.remaining == 0
    assert [request.tool_names for request in model.requests] == [["weather"]] * 3
    told = [str(answer) for answer in model.requests[-1].answers.values()]
    assert told[:2] == ["rain", "snow"]
    assert "not JSON" in told[2] and "no tool is called 'forecast'" in told[3]


@pytest.mark.parametrize("format", SHAPES)
def test_events_and_responses_are_those_of_the_sdk(format: str) -> None:
    shape = shape_named(format)
    for said in (
        "Good morning.",
        call("weather", city="Paris"),
        ["So: ", call("a"), call("b", {"x": [1, {"y": None}]})],
    ):
        turn = turn_of(said, shape.call_id)
        RESPONSES[format].model_validate(shape.response(turn))
        adapter = TypeAdapter(EVENTS[format])
        for event in shape.events(turn):
            adapter.validate_python(event)


@pytest.mark.parametrize("raw", ['{"city": ', "[1]", '"Paris"'])
async def test_broken_words_are_where_anthropic_has_them(registry: ToolRegistry, raw: str) -> None:
    """As StreamedMessage puts them together, whole and in a stream: the API takes no input that is no object."""
    model = ScriptedModel([call("weather", raw=raw)] * 2, format="anthropic")
    whole = await model([QUESTION])
    require_taken(MessageParam, whole)
    said = StreamedMessage()
    async for event in model.stream([QUESTION]):
        said.add(event)
    assert said.message["content"][0]["input"] == whole["content"][0]["input"] == {"INVALID_JSON": raw}
    [answer] = await registry.execute_calls(whole)
    assert answer["content"][0]["is_error"]


async def test_ids_are_drawn_in_order_unless_they_are_given() -> None:
    script = [
        [call("weather", city="Paris"), call("weather", city="Oslo", call_id="mine")],
        call("weather", city="Rome"),
    ]
    model = ScriptedModel(script)
    message = await model([QUESTION])
    assert [each["id"] for each in message["tool_calls"]] == ["call_1", "mine"]
    answers = [{"role": "tool", "tool_call_id": each["id"], "content": ""} for each in message["tool_calls"]]
    later = await model([QUESTION, message, *answers])
    assert [each["id"] for each in later["tool_calls"]] == ["call_3"]
    [mistral_call] = (await ScriptedModel([call("f")], format="mistral")([]))["tool_calls"]
    assert len(mistral_call["id"]) == 9 and mistral_call["id"].isalnum()


async def test_gemini_may_send_no_ids(registry: ToolRegistry) -> None:
    calls = [call("weather", city=city, call_id="") for city in ("Paris", "Oslo")]
    model = ScriptedModel([calls, "Done."], format="gemini")
    message = await model(["How is the weather?"])
    assert all("id" not in part["functionCall"] for part in message["parts"])
    await model(["How is the weather?", message, *await registry.execute_calls(message)])
    assert [each.answer for each in model.requests[-1].conversation.exchanges] == ["rain", "snow"]


async def test_arguments_may_be_called_as_the_parameters_of_call() -> None:
    made = call("f", {"raw": 1, "call_id": 2}, name=3)
    assert made.arguments == {"raw": 1, "call_id": 2, "name": 3}
    assert str(made) == "f(raw=1, call_id=2, name=3)"


# What a provider refuses


def one_call(format: str) -> ScriptedModel:
    return ScriptedModel([call("weather", city="Paris"), "Done."], format=format)


@pytest.mark.parametrize("format", SHAPES)
async def test_a_call_without_its_answer_is_refused(registry: ToolRegistry, format: str) -> None:
    model = one_call(format)
    message = await model([QUESTION])
    for conversation in ([QUESTION, message], [message], [QUESTION, message, QUESTION]):
        with pytest.raises(ConversationRefusedError, match="no answer under the id of each call: 'call.*1' .weather"):
            await model(conversation)
    answers = await registry.execute_calls(message)
    if format != "openai-responses":
        with pytest.raises(ConversationRefusedError, match="no answer under the id"):
            await model([QUESTION, message, QUESTION, *answers])
    assert len(model.requests) == 1, "a request that is refused takes no turn"
    assert text_of(await model([QUESTION, message, *answers])) == "Done."


@pytest.mark.parametrize("format", SHAPES)
async def test_an_answer_that_nobody_asked_for_is_refused(registry: ToolRegistry, format: str) -> None:
    model = one_call(format)
    message = await model([QUESTION])
    answers = await registry.execute_calls(message)
    for conversation in ([QUESTION, *answers], [QUESTION, *answers, message], [QUESTION, message, *answers, *answers]):
        with pytest.raises(ConversationRefusedError, match="to no call that waits"):
            await model(conversation)


async def test_an_answer_under_another_id_is_refused(registry: ToolRegistry) -> None:
    model = one_call("openai")
    message = await model([QUESTION])
    with pytest.raises(ConversationRefusedError, match="'' is to no call"):
        await model([QUESTION, message, {"role": "tool", "tool_call_id": "", "content": "rain"}])


async def test_calls_in_another_shape_are_refused() -> None:
    message = await one_call("anthropic")([QUESTION])
    with pytest.raises(ConversationRefusedError, match="in the shape of 'anthropic'"):
        await one_call("openai")([QUESTION, message])


# The script


@pytest.mark.parametrize("only", ["Only this.", call("weather")])
async def test_a_script_may_be_one_turn(only: Any) -> None:
    model = ScriptedModel(only)
    assert await model([QUESTION]) == await ScriptedModel([only])([QUESTION])
    assert model.remaining == 0


async def test_the_end_of_the_script_is_told_with_what_the_model_heard_last() -> None:
    model = ScriptedModel("Only this.")
    await model([QUESTION])
    with pytest.raises(ScriptEndedError, match=r"once more than its script has turns \(1\).*How is the weather"):
        await model([QUESTION])
    assert issubclass(ScriptEndedError, AssertionError)


async def test_a_turn_may_be_an_error_or_depend_on_what_was_asked() -> None:
    model = ScriptedModel([ConnectionError("away"), lambda request: f"I was told {request.messages[0]['content']!r}."])
    with pytest.raises(ConnectionError):
        await model([QUESTION])
    assert (await model([QUESTION]))["content"] == "I was told 'How is the weather?'."


async def test_requests_are_copies() -> None:
    messages: list[Any] = [{"role": "user", "content": ["a"]}]
    model = ScriptedModel(["Yes."])
    await model(messages)
    messages[0]["content"].append("b")
    messages.append("c")
    assert model.requests[0].messages == [{"role": "user", "content": ["a"]}]


@pytest.mark.parametrize("format", ["openai", "openai-responses", "openrouter", "anthropic", "gemini", "mcp"])
async def test_the_tools_handed_over_are_known_in_any_format(registry: ToolRegistry, format: str) -> None:
    model = ScriptedModel(["a", "b", "c"])
    for tools in (registry.definitions(format), registry, registry.get_all()):
        await model([], tools)
        assert model.requests[-1].tool_names == ["weather"]


def test_what_is_no_script_is_refused_when_it_is_written() -> None:
    with pytest.raises(ToolValidationError, match=r"says text or calls, not 3"):
        ScriptedModel(["a", ["b", 3]])
    with pytest.raises(ToolValidationError, match="raw and other arguments"):
        call("f", raw="{", a=1)
    with pytest.raises(ToolValidationError, match="are a mapping, not '{'; raw= takes text"):
        call("f", "{")  # type: ignore[arg-type]
    with pytest.raises(ExportError, match="no model speaks 'basic'; there are 'openai'"):
        ScriptedModel([], format="basic")

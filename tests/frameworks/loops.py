"""The agent loop of each framework, with a scripted model in it that says what it was told of its calls."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from agents import Agent as AgentsAgent
from agents import Model as AgentsModel
from agents import ModelResponse as AgentsResponse
from agents import RunConfig, Runner, Usage
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import tool_call
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.base.llms.types import ChatMessage, ImageBlock, TextBlock, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import BinaryContent, ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, DeltaToolCalls, FunctionModel

from toolcrib import ToolContext, ToolRegistry

Calls = Sequence[tuple[str, dict[str, Any]]]
NOBODY = ToolContext()


@dataclass
class Told:
    """What a model was told of one of its calls."""

    text: str
    images: list[bytes] = field(default_factory=list)


class Loop(Protocol):
    marks_failures: bool
    """Whether its messages have a place for the fact that a call failed."""

    async def run(
        self, registry: ToolRegistry, *turns: Calls, context: ToolContext = ..., listen: bool = ...
    ) -> Outcome: ...


@dataclass
class Outcome:
    told: list[Told]
    failed: list[bool]
    events: list[tuple[str, Any]] = field(default_factory=list)
    """What the tools told while they ran: the kind, and the message or the item."""


def call_id(turn: int, place: int) -> str:
    return f"call_{turn}_{place}"


class LangChain:
    marks_failures = True

    async def run(
        self, registry: ToolRegistry, *turns: Calls, context: ToolContext = NOBODY, listen: bool = False
    ) -> Outcome:
        agent = create_agent(_chat_model(turns), registry.to_langchain_tools(context=context))
        question: Any = {"messages": [{"role": "user", "content": "Go."}]}
        events: list[tuple[str, Any]] = []
        if not listen:
            done = await agent.ainvoke(question)
        else:
            async for event in agent.astream_events(question, version="v2"):
                if event["event"] == "on_custom_event":
                    kind = event["name"].removeprefix("tool_")
                    data: Any = event["data"]
                    events.append((kind, data["message" if kind == "progress" else "item"]))
                elif event["event"] == "on_chain_end" and not event.get("parent_ids"):
                    done = event["data"]["output"]
        messages = [message for message in done["messages"] if isinstance(message, ToolMessage)]
        return Outcome(
            [_told_by_langchain(message) for message in messages],
            [message.status == "error" for message in messages],
            events,
        )


class _ScriptedChatModel(FakeMessagesListChatModel):
    def bind_tools(self, tools: Any, **options: Any) -> Any:
        return self


def _chat_model(turns: Sequence[Calls]) -> _ScriptedChatModel:
    said = [
        AIMessage(
            "",
            tool_calls=[tool_call(name=name, args=given, id=call_id(turn, n)) for n, (name, given) in enumerate(calls)],
        )
        for turn, calls in enumerate(turns)
    ]
    return _ScriptedChatModel(responses=[*said, AIMessage("Done.")])


def _told_by_langchain(message: ToolMessage) -> Told:
    if isinstance(message.content, str):
        return Told(message.content)
    told = Told("")
    for block in message.content:
        assert isinstance(block, dict)
        if block["type"] == "image":
            told.images.append(base64.b64decode(block["base64"]))
        else:
            told.text += block["text"]
    return told


class PydanticAI:
    marks_failures = True

    async def run(
        self, registry: ToolRegistry, *turns: Calls, context: ToolContext = NOBODY, listen: bool = False
    ) -> Outcome:
        heard: list[ToolReturnPart] = []

        def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            heard[:] = [part for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]
            turn = sum(isinstance(message, ModelResponse) for message in messages)
            if turn == len(turns):
                return ModelResponse([TextPart("Done.")])
            return ModelResponse(
                [
                    ToolCallPart(name, given, tool_call_id=call_id(turn, n))
                    for n, (name, given) in enumerate(turns[turn])
                ]
            )

        async def streamed(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | DeltaToolCalls]:
            for place, part in enumerate(model(messages, info).parts):
                if isinstance(part, ToolCallPart):
                    yield {
                        place: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)
                    }
                else:
                    yield "Done."

        agent = PydanticAgent(
            FunctionModel(model, stream_function=streamed), toolsets=[registry.to_pydantic_ai(context=context)]
        )
        events: list[tuple[str, Any]] = []

        async def listener(ctx: Any, stream: Any) -> None:
            events.extend(
                [
                    (event.kind, event.message or event.item)
                    async for event in stream
                    if getattr(event, "name", "") == "tool_progress"
                ]
            )

        await agent.run("Go.", event_stream_handler=listener if listen else None)
        return Outcome(
            [_told_by_pydantic(part) for part in heard], [part.outcome != "success" for part in heard], events
        )


def _told_by_pydantic(part: ToolReturnPart) -> Told:
    content = part.content if isinstance(part.content, list) else [part.content]
    told = Told("" if any(isinstance(each, BinaryContent) for each in content) else part.model_response_str())
    for each in content:
        if isinstance(each, BinaryContent):
            assert each.is_image
            told.images.append(each.data)
        elif told.images or not told.text:
            told.text += str(each)
    return told


class OpenAIAgents:
    marks_failures = False

    async def run(
        self, registry: ToolRegistry, *turns: Calls, context: ToolContext = NOBODY, listen: bool = False
    ) -> Outcome:
        model = _ScriptedAgentsModel(turns)
        agent = AgentsAgent("Tester", model=model, tools=registry.to_openai_agents(context=context))
        await Runner.run(agent, "Go.", run_config=RunConfig(tracing_disabled=True))
        return Outcome([_told_by_agents(output) for output in model.heard], [False] * len(model.heard))


class _ScriptedAgentsModel(AgentsModel):
    def __init__(self, turns: Sequence[Calls]) -> None:
        self.turns = turns
        self.turn = 0
        self.heard: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **more: Any) -> AgentsResponse:
        if not isinstance(input, str):
            self.heard = [item["output"] for item in input if item.get("type") == "function_call_output"]
        output: list[Any] = []
        if self.turn < len(self.turns):
            for place, (name, given) in enumerate(self.turns[self.turn]):
                output.append(
                    ResponseFunctionToolCall(
                        type="function_call", call_id=call_id(self.turn, place), name=name, arguments=json.dumps(given)
                    )
                )
        else:
            text = {"type": "output_text", "text": "Done.", "annotations": []}
            said = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [text]}
            output.append(ResponseOutputMessage.model_validate(said))
        self.turn += 1
        return AgentsResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


def _told_by_agents(output: Any) -> Told:
    if isinstance(output, str):
        return Told(output)
    told = Told("")
    for item in output:
        if item["type"] == "input_image":
            told.images.append(base64.b64decode(item["image_url"].partition(";base64,")[2]))
        else:
            told.text += item["text"]
    return told


class LlamaIndex:
    marks_failures = True

    async def run(
        self, registry: ToolRegistry, *turns: Calls, context: ToolContext = NOBODY, listen: bool = False
    ) -> Outcome:
        heard: list[ChatMessage] = []

        def model(messages: Sequence[ChatMessage], **options: Any) -> ChatMessage:
            heard[:] = [message for message in messages if message.role == "tool"]
            turn = sum(message.role == "assistant" for message in messages)
            if turn == len(turns):
                return ChatMessage(role="assistant", content="Done.")
            return ChatMessage(
                role="assistant",
                blocks=[
                    ToolCallBlock(tool_call_id=call_id(turn, n), tool_name=name, tool_kwargs=given)
                    for n, (name, given) in enumerate(turns[turn])
                ],
            )

        agent = FunctionAgent(
            tools=registry.to_llama_index(context=context),
            llm=MockFunctionCallingLLM(response_generator=model, is_chat_model=True),
            streaming=False,
        )
        handler = agent.run("Go.")
        try:
            events = [
                (event.kind, event.message or event.item)
                async for event in handler.stream_events()
                if type(event).__name__ == "ToolProgressEvent"
            ]
            output: Any = await handler
        except BaseException:
            await handler.cancel_run()
            raise
        failed = {call.tool_id: call.tool_output.is_error for call in output.tool_calls}
        ids = [message.additional_kwargs["tool_call_id"] for message in heard]
        return Outcome([_told_by_llama_index(message) for message in heard], [failed[each] for each in ids], events)


def _told_by_llama_index(message: ChatMessage) -> Told:
    told = Told("")
    for block in message.blocks:
        if isinstance(block, ImageBlock):
            told.images.append(base64.b64decode(block.resolve_image(as_base64=True).read()))
        else:
            assert isinstance(block, TextBlock)
            told.text += block.text
    return told


LOOPS: dict[str, Loop] = {
    "langchain": LangChain(),
    "pydantic-ai": PydanticAI(),
    "openai-agents": OpenAIAgents(),
    "llama-index": LlamaIndex(),
}

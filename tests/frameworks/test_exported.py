"""What each framework is handed, beside what its agent loop shows."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

import pytest
from agents.strict_schema import ensure_strict_json_schema
from agents.tool_context import ToolContext as AgentsContext
from llama_index.core.base.llms.types import AudioBlock, DocumentBlock, ImageBlock
from llama_index.core.tools.calling import acall_tool
from pydantic_ai import (
    Agent,
    BinaryContent,
    ModelMessage,
    ModelResponse,
    RunContext,
    RunUsage,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UnexpectedModelBehavior,
)
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.models.test import TestModel

from toolcrib import Audio, ExportError, File, Image, Link, ToolContext, ToolRegistry, tool


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


CLOSED = {"type": "object", "additionalProperties": False}


@tool(parameters=CLOSED | {"properties": {"city": {"type": "string"}}, "required": ["city"]})
async def weather(city: str) -> str:
    """The weather in a city."""
    return f"rain in {city}"


def test_strict_only_where_the_schema_is_strict_as_it_is() -> None:
    loose, strict = ToolRegistry([add, weather]).to_openai_agents()
    assert not loose.strict_json_schema and strict.strict_json_schema
    assert loose.params_json_schema["required"] == ["a"]
    assert strict.params_json_schema == ensure_strict_json_schema(dict(weather.spec.parameters))


@pytest.mark.parametrize(
    "parameter", [{"type": "string", "format": "uri"}, {"type": "array", "items": {"type": "string", "minLength": 2}}]
)
def test_a_keyword_that_strict_mode_may_not_know_is_not_handed_over_as_strict(parameter: dict[str, Any]) -> None:
    parameters = CLOSED | {"properties": {"p": parameter}, "required": ["p"]}

    @tool(parameters=parameters)
    async def one(p: Any) -> None:
        """Take one."""

    assert not ToolRegistry([one]).to_openai_agents()[0].strict_json_schema


@pytest.mark.parametrize("export", ["to_langchain_tools", "to_openai_agents", "to_llama_index"])
def test_names_that_become_one_are_refused(export: str) -> None:
    registry = ToolRegistry([add.with_spec(add.spec.with_changes(name=name)) for name in ("a.b", "a_b")])
    with pytest.raises(ExportError, match=r"'a.b' and 'a_b' are both called 'a_b' for"):
        getattr(registry, export)()


@pytest.mark.parametrize("export", ["to_langchain_tools", "to_openai_agents", "to_llama_index"])
def test_a_registry_without_tools(export: str) -> None:
    assert getattr(ToolRegistry(), export)() == []


def test_llama_index_gets_a_description_that_it_takes() -> None:
    long = add.with_spec(add.spec.with_changes(description="x" * 3000))
    [made] = ToolRegistry([long]).to_llama_index()
    assert len(made.metadata.to_openai_tool()["function"]["description"]) == 1024


async def test_llama_index_takes_one_argument_by_its_name_alone() -> None:
    [made] = ToolRegistry([weather]).to_llama_index()
    assert (await acall_tool(made, {"city": "Oslo"})).content == "rain in Oslo"
    wrong = await acall_tool(made, {"town": "Oslo"})
    assert wrong.is_error and "'town'" in wrong.content
    assert made(city="Oslo").content == "rain in Oslo"


@pytest.mark.parametrize(("media_type", "format"), [("audio/wav", "wav"), ("audio/mpeg", "mp3")])
async def test_llama_index_gets_audio_under_its_names_of_formats(media_type: str, format: str) -> None:
    @tool
    async def speak() -> Audio:
        """Speak."""
        return Audio(b"said", media_type)

    [made] = ToolRegistry([speak]).to_llama_index()
    [block] = (await acall_tool(made, {})).blocks
    assert isinstance(block, AudioBlock)
    assert (block.resolve_audio().read(), block.format) == (b"said", format)


async def test_llama_index_gets_bytes_that_could_be_base64_as_they_are() -> None:
    @tool
    async def look() -> list[Any]:
        """Look."""
        return [Image(b"AAAA"), File(b"said", "text/plain", "said.txt")]

    [made] = ToolRegistry([look]).to_llama_index()
    image, file = (await acall_tool(made, {})).blocks
    assert isinstance(image, ImageBlock) and isinstance(file, DocumentBlock)
    assert (image.resolve_image().read(), file.resolve_document().read()) == (b"AAAA", b"said")


async def test_a_toolset_of_pydantic_ai_lives() -> None:
    registry = ToolRegistry()

    @tool
    async def learn() -> str:
        """Learn to add."""
        registry.register(add)
        return "learned"

    registry.register(learn)
    seen: list[list[str]] = []

    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        seen.append([each.name for each in info.function_tools])
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        calls = [ToolCallPart("learn", {}), ToolCallPart("add", {"a": 1})]
        return ModelResponse([TextPart("Done.") if turn == 2 else calls[turn]])

    toolset = registry.to_pydantic_ai(id="crib")
    assert toolset.id == "crib"
    await Agent(FunctionModel(model), toolsets=[toolset]).run("Go.")
    assert seen == [["learn"], ["learn", "add"], ["learn", "add"]]


async def test_pydantic_ai_gets_one_part_as_it_is_and_several_as_a_list() -> None:
    registry = ToolRegistry()
    image, link = Image(b"\x89PNG"), Link("https://example.com")

    @registry.register
    def picture() -> Image:
        """A picture."""
        return image

    @registry.register
    def page() -> Link:
        """A page."""
        return link

    @registry.register
    def both() -> list[Any]:
        """Both."""
        return ["Look:", image]

    done = await Agent(TestModel(), toolsets=[registry.to_pydantic_ai()]).run("Go.")
    told = {
        part.tool_name: part.content
        for message in done.all_messages()
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    binary = BinaryContent(image.data, media_type="image/png")
    assert told == {"picture": binary, "page": "https://example.com", "both": ["Look:", binary]}


async def test_progress_where_no_run_of_pydantic_ai_can_hear_it() -> None:
    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.progress(0.5, "half")
        return "done"

    toolset, ctx = ToolRegistry([work]).to_pydantic_ai(), RunContext(deps=None, model=TestModel(), usage=RunUsage())
    assert await toolset.call_tool("work", {}, ctx, (await toolset.get_tools(ctx))["work"]) == "done"


async def test_max_retries_of_pydantic_ai_hold_for_wrong_arguments() -> None:
    def model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse([ToolCallPart("add", {"a": "one"})])

    agent = Agent(FunctionModel(model), toolsets=[ToolRegistry([add]).to_pydantic_ai()], retries=2)
    with pytest.raises(UnexpectedModelBehavior, match="'add' exceeded max retries count of 2"):
        await agent.run("Go.")


@pytest.mark.parametrize("arguments", ["[1]", "no JSON", '{"a": NaN}'])
async def test_arguments_that_are_no_json_object_through_the_agents_sdk(arguments: str) -> None:
    [made] = ToolRegistry([add]).to_openai_agents()
    ctx = AgentsContext(context=None, tool_name="add", tool_call_id="c1", tool_arguments=arguments)
    told = await made.on_invoke_tool(ctx, arguments)
    assert "invalid_arguments" in told and "'add'" in told


async def test_arguments_that_cannot_be_read_are_a_call_that_is_counted_and_heard_of() -> None:
    heard: list[tuple[str, str]] = []

    class Listener:
        def begin(self, call: Any) -> None:
            pass

        def end(self, begun: None, call: Any) -> None:
            heard.append((call.name, call.error_type))

    registry = ToolRegistry([add])
    registry.observe(Listener())
    [made] = registry.to_openai_agents()
    ctx = AgentsContext(context=None, tool_name="add", tool_call_id="c1", tool_arguments="{")
    assert "are not JSON" in await made.on_invoke_tool(ctx, "{")
    assert heard == [("add", "invalid_arguments")]
    assert registry.usage()["add"].errors == 1


async def test_a_tool_that_was_removed_meanwhile() -> None:
    registry = ToolRegistry([add])
    [made] = registry.to_openai_agents()
    registry.remove("add")
    ctx = AgentsContext(context=None, tool_name="add", tool_call_id="c1", tool_arguments="{}")
    assert "tool_not_found" in await made.on_invoke_tool(ctx, '{"a": 1}')


@pytest.mark.parametrize("export", ["to_langchain_tools", "to_openai_agents", "to_llama_index"])
def test_what_is_handed_out_can_be_copied_and_does_not_show_the_callers_context(export: str) -> None:
    registry = ToolRegistry([add])
    [handed] = getattr(registry, export)(context=ToolContext("ada", {"token": "swordfish"}))
    assert "swordfish" not in repr(handed)
    again = ToolRegistry([copy.deepcopy(handed)])
    assert again.execute_sync("add", {"a": 1}).data == 2
    assert registry.usage()["add"].calls == 1


async def test_layers_that_are_added_later_are_around_what_was_handed_out() -> None:
    registry = ToolRegistry([add])
    outer = registry.to_langchain_tools()

    def doubling(run: Any) -> Any:
        async def doubled(tool: Any, arguments: Any, context: Any) -> Any:
            return 2 * await run(tool, arguments, context)

        return doubled

    registry.use(doubling)
    assert await outer[0].ainvoke({"a": 1}) == 4


@pytest.mark.parametrize(
    ("add", "package", "lacks"),
    [
        ("add_openai_agents", "openai-agents", "agents.tool"),
        ("add_pydantic_ai", "pydantic-ai-slim", "pydantic_ai.toolsets"),
        ("add_langchain", "langchain-core", "langchain_core.tools"),
        ("add_llama_index", "llama-index-core", "llama_index.core.workflow"),
    ],
)
def test_a_framework_that_is_too_old_is_told_from_one_that_is_not_there(add: str, package: str, lacks: str) -> None:
    program = (
        "import sys; from toolcrib import MissingDependencyError, ToolRegistry\n"
        f"import {lacks.partition('.')[0]}; sys.modules[{lacks!r}] = None\n"
        f"try: ToolRegistry().{add}([])\n"
        "except MissingDependencyError as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(f"a new enough {package} is not installed; run in Toolcrib's folder: pip install '.[")


def test_a_registry_imports_no_framework() -> None:
    program = (
        "import sys; from toolcrib import ToolRegistry, tool\n"
        "def f(): 'F.'\n"
        "ToolRegistry([tool(f)]).register_many([])\n"
        "print([each for each in ('agents', 'langchain_core', 'llama_index', 'pydantic_ai') if each in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

"""Tools that were made for another framework, in a registry: they go the whole way of a call."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from datetime import date
from typing import Annotated, Any

import agents
import langchain_core.tools as langchain
import pydantic_ai
import pytest
from agents.tool_context import ToolContext as AgentsContext
from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import InjectedToolArg, InjectedToolCallId, ToolException
from llama_index.core.base.llms.types import ImageBlock
from llama_index.core.tools import FunctionTool as LlamaIndexTool
from llama_index.core.workflow import Context
from pydantic import BaseModel, Field
from pydantic_ai.messages import CachePoint, TextContent
from pydantic_ai.toolsets import CombinedToolset, DynamicToolset

from toolcrib import Image, Link, Tool, ToolContext, ToolExistsError, ToolRegistry, ToolValidationError, tool

PNG = b"\x89PNG\r\n\x1a\nrest"
Make = Callable[[Callable[..., Any]], Any]
MAKERS: dict[str, Make] = {
    "langchain": langchain.tool,
    "pydantic_ai": pydantic_ai.Tool,
    "openai_agents": agents.function_tool,
    "llama_index": LlamaIndexTool.from_defaults,
}


@pytest.fixture(params=MAKERS)
def framework(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def make(framework: str) -> Make:
    return MAKERS[framework]


def added(registry: ToolRegistry, framework: str, *things: Any) -> list[Tool]:
    tools: list[Tool] = getattr(registry, f"add_{framework}")(things)
    return tools


async def multiply(a: int, b: int) -> int:
    """Multiply two numbers."""
    return a * b


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


async def test_name_description_and_schema_are_kept_and_it_runs(framework: str, make: Make) -> None:
    registry = ToolRegistry()
    [first, second] = added(registry, framework, make(multiply), make(shout))
    assert (first.name, second.name) == ("multiply", "shout")
    assert "Multiply two numbers." in first.description
    assert first.spec.parameters["properties"]["a"]["type"] == "integer"
    assert set(first.spec.parameters["required"]) == {"a", "b"}
    assert (await registry.execute("multiply", {"a": 6, "b": 7})).data == 42
    assert (await registry.execute("shout", {"text": "hi"})).data == "HI"
    assert registry.execute_sync("shout", {"text": "hi"}).data == "HI"


async def test_register_knows_whose_tool_it_is(make: Make) -> None:
    registry = ToolRegistry([make(multiply)])
    assert registry.register(make(shout)).name == "shout"
    registry.update("shout", make(shout))
    assert (await registry.execute("shout", {"text": "hi"})).data == "HI"
    assert (await registry.execute("multiply", {"a": 6, "b": 7})).data == 42


async def test_arguments_are_checked_by_the_schema(framework: str, make: Make) -> None:
    registry = ToolRegistry()
    added(registry, framework, make(multiply))
    result = await registry.execute("multiply", {"a": "six"})
    assert result.error_code == "invalid_arguments"
    assert "'a'" in str(result.error) and "'b'" in str(result.error)


async def test_what_the_tool_raises_is_a_failure_with_its_reason(framework: str, make: Make) -> None:
    async def broken(n: int) -> str:
        """Fail."""
        raise LookupError("the shelf is empty")

    registry = ToolRegistry()
    added(registry, framework, make(broken))
    result = await registry.execute("broken", {"n": 1})
    assert result.error_code == "tool_failed"
    assert "the shelf is empty" in str(result.error)


async def test_a_deadline_and_cancellation(framework: str, make: Make) -> None:
    ended: list[str] = []
    started, over = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("wait")
            over.set()
        return ""

    registry = ToolRegistry()
    added(registry, framework, make(wait))
    assert (await registry.execute("wait", timeout_seconds=0.05)).error_code == "timeout"
    started.clear()
    over.clear()
    call = asyncio.create_task(registry.execute("wait"))
    await started.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await over.wait()
    assert ended == ["wait", "wait"]


def in_combined_toolsets(function: Callable[..., Any]) -> Any:
    return CombinedToolset([CombinedToolset([pydantic_ai.FunctionToolset([function]).prefixed("a").renamed({})])])


@pytest.mark.parametrize("make", [*MAKERS.values(), in_combined_toolsets])
async def test_a_plain_function_has_a_thread_and_the_honest_answer_of_one(make: Make) -> None:
    leave = threading.Event()

    def block() -> str:
        """Wait."""
        leave.wait()
        return "late"

    registry = ToolRegistry([make(block)])
    [name] = registry.names()
    result = await registry.execute(name, timeout_seconds=0.05)
    leave.set()
    assert result.error_code == "timeout"
    assert result.metadata["still_running"]
    assert str(result.error).endswith("its thread is still running")


async def test_all_are_added_or_none(framework: str, make: Make) -> None:
    @tool(name="shout")
    async def ours() -> None:
        """Ours."""

    registry = ToolRegistry([ours])
    with pytest.raises(ToolExistsError, match="'shout'"):
        added(registry, framework, make(multiply), make(shout))
    assert registry.names() == ["shout"]


def test_one_name_twice_is_said_in_a_sentence(framework: str, make: Make) -> None:
    registry = ToolRegistry()
    with pytest.raises((ToolExistsError, ToolValidationError), match=r"shout") as raised:
        added(registry, framework, make(shout), make(shout))
    assert "\n" not in str(raised.value)
    assert len(registry) == 0


def test_what_is_no_tool_of_that_framework_is_named(framework: str) -> None:
    with pytest.raises(ToolValidationError, match=r"<object object at .*> is not a tool of"):
        added(ToolRegistry(), framework, object())


async def test_one_tool_needs_no_list_and_what_is_no_list_is_told(framework: str, make: Make) -> None:
    registry = ToolRegistry()
    add = getattr(registry, f"add_{framework}")
    assert [each.name for each in add(make(multiply))] == ["multiply"]
    for thing in (3, multiply):
        with pytest.raises(ToolValidationError, match=r"^(3|<function multiply at .*>) is not a tool of"):
            add(thing)


# Out of one registry and into another


@pytest.fixture(params=["langchain_tools", "pydantic_ai", "openai_agents", "llama_index"])
def out_and_in(request: pytest.FixtureRequest) -> Callable[[ToolRegistry], ToolRegistry]:
    def go(registry: ToolRegistry) -> ToolRegistry:
        back = ToolRegistry()
        handed = getattr(registry, f"to_{request.param}")()
        getattr(back, f"add_{request.param.removesuffix('_tools')}")(handed)
        return back

    return go


class Node(BaseModel):
    name: str
    parts: list[Node] = []


@tool(name="shop.save", tags=["shop"], is_terminal=True)
async def save(
    node: Node, amount: Annotated[int, Field(ge=1, description="How many")] = 1, note: str | None = None
) -> str:
    """Save something."""
    return f"{node.name} {amount} {note}"


async def test_out_and_in_again_it_is_the_same(out_and_in: Callable[[ToolRegistry], ToolRegistry]) -> None:
    @tool
    async def nothing() -> None:
        """Do nothing."""

    registry = ToolRegistry([save, nothing])
    back = out_and_in(registry)
    assert back.names() == ["shop_save", "nothing"]
    assert back.definitions("openai") == registry.definitions("openai")
    assert back.get("shop_save").spec == save.spec.with_changes(name="shop_save")
    assert (await back.execute("shop_save", {"node": {"name": "a"}})).data == "a 1 None"
    wrong = await back.execute("shop_save", {"node": {"name": "a", "parts": [{"title": "b"}]}})
    assert wrong.error_code == "invalid_arguments" and "'node.parts.0.name'" in str(wrong.error)


async def test_out_and_in_again_a_failure_is_the_same_and_said_once(
    out_and_in: Callable[[ToolRegistry], ToolRegistry],
) -> None:
    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Wait."""
        await asyncio.Event().wait()

    @tool
    async def broken() -> None:
        """Fail."""
        raise LookupError("empty")

    back = out_and_in(ToolRegistry([slow, broken]))
    late = await back.execute("slow")
    assert (late.error_code, late.error) == ("timeout", "tool 'slow' passed its deadline of 0.05 s; it was stopped")
    assert (await back.execute("broken")).error == "tool 'broken' failed: LookupError: empty"


async def test_out_and_in_again_the_rules_of_both_hold(out_and_in: Callable[[ToolRegistry], ToolRegistry]) -> None:
    asked: list[str] = []

    @tool(safety_level="dangerous")
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    def approve(spec: Any, arguments: Any) -> bool:
        asked.append(spec.name)
        return True

    back = out_and_in(ToolRegistry([wipe], approve=approve))
    assert (await back.execute("wipe")).error_code == "approval_required"
    assert asked == []
    open_to_all = ToolRegistry(back, highest_safety_level="dangerous")
    assert (await open_to_all.execute("wipe")).data == "wiped"
    assert asked == ["wipe"]


async def test_out_and_in_again_progress_is_heard(out_and_in: Callable[[ToolRegistry], ToolRegistry]) -> None:
    @tool
    async def work(context: ToolContext) -> str:
        """Work."""
        context.progress(0.5, "half")
        return context.call_id

    back = out_and_in(ToolRegistry([work]))
    events = [event async for event in back.stream("work", context=ToolContext(call_id="c1"))]
    assert [event.message for event in events] == ["half", ""]
    assert events[-1].result is not None and events[-1].result.data == "c1"


async def test_handed_on_to_another_framework(make: Make, framework: str) -> None:
    registry = ToolRegistry([make(multiply)])
    [langchain_tool] = registry.to_langchain_tools()
    assert await langchain_tool.ainvoke({"a": 6, "b": 7}) == 42
    assert registry.definitions("openai")[0]["function"]["name"] == "multiply"


# What each has of its own


async def test_langchain_errors_content_and_injected_arguments() -> None:
    class Place(BaseModel):
        city: str = Field(min_length=2, pattern="^[A-Z]")

    @langchain.tool(args_schema=Place)
    def weather(city: str) -> Any:
        """The weather."""
        if city == "Atlantis":
            raise ToolException("no such city")
        return [{"type": "text", "text": "Look:"}, {"type": "image", "base64": "iVBORw==", "mime_type": "image/png"}]

    weather.handle_tool_error = lambda error: f"Sorry, {error}."
    registry = ToolRegistry([weather])
    [text, image] = (await registry.execute("weather", {"city": "Paris"})).data
    assert text == "Look:" and isinstance(image, Image)
    assert (
        await registry.execute("weather", {"city": "Atlantis"})
    ).error == "tool 'weather' failed: Sorry, no such city."
    assert (await registry.execute("weather", {"city": "x"})).error_code == "invalid_arguments"

    @langchain.tool
    def secret(text: str, user: Annotated[str, InjectedToolArg]) -> str:
        """Tell."""
        return user

    @langchain.tool
    def numbered(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Tell."""
        return tool_call_id

    @langchain.tool
    def configured(text: str, config: RunnableConfig) -> str:
        """Tell."""
        return f"{text} {sorted(config)[:1]}"

    with pytest.raises(ToolValidationError, match=r"LangChain's tool 'secret' wants 'user' from a run of LangChain"):
        registry.add_langchain([secret])
    with pytest.raises(ToolValidationError, match=r"LangChain's tool 'numbered' wants 'tool_call_id' from a run"):
        registry.add_langchain([numbered])
    registry.add_langchain([configured])
    assert (await registry.execute("configured", {"text": "hi"})).data.startswith("hi ['")


async def test_a_langchain_schema_that_is_no_models_stays_as_it_is() -> None:
    node = {
        "type": "object",
        "properties": {"size": {"type": "integer"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        "required": ["size"],
    }
    schema = {"type": "object", "$defs": {"Node": node}, "properties": {"node": {"$ref": "#/$defs/Node"}}}
    measure = langchain.StructuredTool.from_function(
        lambda node: node["size"], name="measure", description="Measure.", args_schema=schema
    )
    registry = ToolRegistry([measure])
    assert registry.get("measure").spec.parameters == schema
    assert (await registry.execute("measure", {"node": {"size": 1, "parts": [{"size": 2}]}})).data == 1
    wrong = await registry.execute("measure", {"node": {"size": 1, "parts": [{"size": "two"}]}})
    assert wrong.error_code == "invalid_arguments" and "'node.parts.0.size'" in str(wrong.error)


async def test_what_a_langchain_model_complains_of_is_a_wrong_argument_under_whichever_title() -> None:
    class Booking(BaseModel):
        model_config = {"title": "A booking"}
        day: date

    @langchain.tool(args_schema=Booking)
    def book(day: date) -> str:
        """Book."""
        return f"{day:%d.%m.%Y}"

    registry = ToolRegistry([book])
    assert (await registry.execute("book", {"day": "2026-01-31"})).data == "31.01.2026"
    wrong = await registry.execute("book", {"day": "tomorrow"})
    assert wrong.error_code == "invalid_arguments"
    assert str(wrong.error).startswith("argument 'day' of tool 'book': input should be a valid date")


async def test_a_langchain_message_that_is_an_error_is_a_failure() -> None:
    @langchain.tool
    def find(name: str) -> ToolMessage:
        """Find."""
        status = "success" if name == "Ada" else "error"
        return ToolMessage(f"{status}: {name}", tool_call_id="c1", status=status)

    registry = ToolRegistry([find])
    assert (await registry.execute("find", {"name": "Ada"})).data == "success: Ada"
    assert (await registry.execute("find", {"name": "Bob"})).error == "tool 'find' failed: error: Bob"


async def test_a_langchain_tool_that_is_a_class() -> None:
    class Counting(langchain.BaseTool):
        name: str = "count"
        description: str = "Count."
        seen: list[str] = []

        def _run(self, text: str) -> int:
            self.seen.append(text)
            return len(self.seen)

    counting = Counting()
    registry = ToolRegistry([counting])
    assert (await registry.execute("count", {"text": "a"})).data == 1
    assert (await registry.execute("count", {"text": "b"})).data == 2
    assert counting.seen == ["a", "b"]


async def test_a_langchain_argument_called_type() -> None:
    @langchain.tool
    def kind(type: str) -> str:
        """Say its kind."""
        return type

    registry = ToolRegistry([kind])
    assert (await registry.execute("kind", {"type": "tool_call"})).data == "tool_call"


async def test_langchain_tools_of_one_text() -> None:
    old = langchain.Tool(name="echo", func=lambda text: f"<{text}>", description="Echo.")
    registry = ToolRegistry([old])
    [parameter] = registry.get("echo").spec.parameters["properties"]
    assert (await registry.execute("echo", {parameter: "hi"})).data == "<hi>"


async def test_functions_that_pydantic_ai_has_decorated_and_its_toolsets_are_registered_too() -> None:
    toolset = pydantic_ai.FunctionToolset[Any]()

    @toolset.tool
    async def greet(ctx: pydantic_ai.RunContext[Any], loud: bool = False) -> str:
        """Greet the user."""
        return f"Hello {ctx.deps}{'!' * loud}"

    @toolset.tool_plain
    def double(number: int) -> int:
        """Double a number."""
        return 2 * number

    registry = ToolRegistry([greet, double])
    assert list(registry.get("greet").spec.parameters["properties"]) == ["loud"]
    assert (await registry.execute("greet", {"loud": True})).data == "Hello None!"
    assert (await registry.execute("double", {"number": 2})).data == 4
    named = ToolRegistry()
    named.add_pydantic_ai([greet], deps="Ada")
    assert (await named.execute("greet")).data == "Hello Ada"
    both = ToolRegistry().register(toolset)
    assert [each.name for each in both] == ["greet", "double"]
    assert [each.name for each in ToolRegistry([toolset.filtered(lambda ctx, each: each.name == "double")])] == [
        "double"
    ]


async def test_pydantic_ai_toolsets_contexts_and_retries() -> None:
    toolset = pydantic_ai.FunctionToolset[dict[str, str]]()

    @toolset.tool
    async def greet(ctx: pydantic_ai.RunContext[dict[str, str]], loud: bool = False) -> str:
        """Greet."""
        assert ctx.tool_call_id == "c1" and ctx.tool_name == "greet"
        return f"hello {ctx.deps['user']}{'!' * loud}"

    @toolset.tool_plain(timeout=5, requires_approval=True)
    async def wipe() -> str:
        """Wipe."""
        return "wiped"

    @toolset.tool_plain
    async def picky(n: Annotated[int, Field(gt=3)]) -> Any:
        """Take large numbers."""
        if n == 4:
            raise pydantic_ai.ModelRetry("four is unlucky")
        if n == 5:
            raise pydantic_ai.ToolFailed("five is gone")
        return ["Look:", pydantic_ai.BinaryContent(PNG, media_type="image/png")]

    @toolset.tool_plain
    async def both() -> pydantic_ai.ToolReturn[str]:
        """Give both."""
        return pydantic_ai.ToolReturn("one", content=["two", pydantic_ai.ImageUrl("https://x.test/a.png")])

    registry = ToolRegistry()
    registry.add_pydantic_ai(toolset, deps={"user": "ada"})
    assert registry.names() == ["greet", "wipe", "picky", "both"]
    result = await registry.execute("greet", {"loud": True}, context=ToolContext(call_id="c1"))
    assert result.data == "hello ada!"
    assert (await registry.execute("wipe")).error_code == "approval_required"
    assert registry.get("wipe").spec.timeout_seconds == 5
    assert (await registry.execute("picky", {"n": 1})).error_code == "invalid_arguments"
    unlucky = await registry.execute("picky", {"n": 4})
    assert unlucky.error == "tool 'picky' failed: four is unlucky" and unlucky.metadata["retryable"]
    assert (await registry.execute("picky", {"n": 5})).error == "tool 'picky' failed: five is gone"
    assert (await registry.execute("picky", {"n": 6})).data == ["Look:", Image(PNG)]
    assert (await registry.execute("both")).data == ["one", "two", Link("https://x.test/a.png")]


def deletions() -> tuple[pydantic_ai.FunctionToolset[Any], list[str]]:
    toolset, ran = pydantic_ai.FunctionToolset[Any](), list[str]()

    @toolset.tool
    async def delete(ctx: pydantic_ai.RunContext[Any], path: str) -> str:
        """Delete a file."""
        if path == ".env" and not ctx.tool_call_approved:
            raise pydantic_ai.ApprovalRequired
        ran.append(path)
        return "deleted"

    return toolset, ran


WRAPPED: dict[str, Callable[[Any], Any]] = {
    "all": lambda toolset: toolset.approval_required(),
    "some": lambda toolset: toolset.approval_required(lambda ctx, definition, arguments: arguments["path"] == ".env"),
    "inside": lambda toolset: toolset.approval_required().filtered(lambda ctx, definition: True),
    "combined": lambda toolset: CombinedToolset([toolset.approval_required()]),
}


@pytest.mark.parametrize("wrapped", WRAPPED)
async def test_a_pydantic_ai_toolset_that_wants_approval_gets_it_here(wrapped: str) -> None:
    toolset, ran = deletions()
    asked: list[Any] = []

    def approve(spec: Any, arguments: Any) -> bool:
        asked.append(dict(arguments))
        return len(asked) == 2

    registry = ToolRegistry(approve=approve)
    registry.add_pydantic_ai(WRAPPED[wrapped](toolset))
    for done in (False, True):
        result = await registry.execute("delete", {"path": ".env"})
        assert (result.success, result.error_code) == (done, None if done else "approval_required")
    assert ran == [".env"]
    assert asked == [{"path": ".env"}] * 2


async def test_a_pydantic_ai_tool_that_asks_for_approval_by_itself_does_not_run_without() -> None:
    toolset, ran = deletions()
    registry = ToolRegistry()
    registry.add_pydantic_ai(toolset)
    assert (await registry.execute("delete", {"path": "notes"})).data == "deleted"
    refused = await registry.execute("delete", {"path": ".env"})
    assert refused.error_code == "approval_required" and "with approval_required()" in str(refused.error)
    assert ran == ["notes"]


async def test_a_pydantic_ai_tool_that_defers_its_call_fails() -> None:
    async def later() -> str:
        """Do it later."""
        raise pydantic_ai.CallDeferred

    result = await ToolRegistry([pydantic_ai.Tool(later)]).execute("later")
    assert result.error == "tool 'later' failed: it is run by somebody else, outside of the agent"


async def test_a_pydantic_ai_toolset_that_is_made_for_each_step() -> None:
    made: list[Any] = []

    def make(ctx: pydantic_ai.RunContext[Any]) -> pydantic_ai.FunctionToolset[Any]:
        made.append(ctx.deps)
        return pydantic_ai.FunctionToolset([multiply])

    registry = ToolRegistry()
    registry.add_pydantic_ai(DynamicToolset(make), deps="Ada")
    assert (await registry.execute("multiply", {"a": 6, "b": 7})).data == 42
    assert made == ["Ada", "Ada"]


class Span(BaseModel):
    model_config = {"strict": True}
    first: date
    last: date


async def test_a_strict_pydantic_ai_model_takes_from_json_what_it_takes_from_a_model() -> None:
    async def days(span: Span, more: int = 0) -> int:
        """Count the days."""
        return (span.last - span.first).days + more

    registry = ToolRegistry([pydantic_ai.Tool(days)])
    assert (await registry.execute("days", {"span": {"first": "2026-01-01", "last": "2026-01-31"}})).data == 30


def test_a_pydantic_ai_toolset_that_is_open_is_refused_for_it_would_wait_for_ever() -> None:
    class Remote(pydantic_ai.FunctionToolset[Any]):
        is_running = True

    with pytest.raises(ToolValidationError, match=r"pydantic-ai's Remote 'far' is open, .*; add it first"):
        ToolRegistry().add_pydantic_ai(Remote([multiply], id="far").prefixed("x"))


async def test_what_pydantic_ai_marks_for_itself_in_what_is_returned() -> None:
    async def tell() -> pydantic_ai.ToolReturn:
        """Tell."""
        return pydantic_ai.ToolReturn("one", content=[TextContent("two", metadata=2), CachePoint()])

    assert (await ToolRegistry([pydantic_ai.Tool(tell)]).execute("tell")).data == ["one", "two"]


def test_a_pydantic_ai_tool_that_others_run_is_refused() -> None:
    definition = pydantic_ai.tools.ToolDefinition(name="elsewhere", description="Runs elsewhere.")
    with pytest.raises(ToolValidationError, match=r"pydantic-ai's tool 'elsewhere' is run by somebody else"):
        ToolRegistry().add_pydantic_ai(pydantic_ai.ExternalToolset([definition]))


async def test_agents_sdk_contexts_failures_and_images() -> None:
    @agents.function_tool
    async def who(ctx: AgentsContext[dict[str, str]], n: Annotated[int, Field(gt=3)]) -> str:
        """Say who calls."""
        return f"{ctx.context['user']} {ctx.tool_call_id} {ctx.tool_arguments}"

    @agents.function_tool(failure_error_function=lambda ctx, error: f"Sorry: {error}", needs_approval=True)
    async def broken() -> str:
        """Fail."""
        raise LookupError("empty")

    @agents.function_tool
    async def chart() -> Any:
        """A chart."""
        return agents.ToolOutputImage(image_url="data:image/png;base64,iVBORw==")

    registry = ToolRegistry(approve=lambda spec, arguments: True)
    registry.add_openai_agents([who, broken, chart], run_context={"user": "ada"})
    result = await registry.execute("who", {"n": 4}, context=ToolContext(call_id="c1"))
    assert result.data == 'ada c1 {"n": 4}'
    assert (await registry.execute("who", {"n": 1})).error_code == "invalid_arguments"
    assert registry.get("broken").spec.safety_level == "dangerous"
    assert (await registry.execute("broken")).error == "tool 'broken' failed: Sorry: empty"
    assert isinstance((await registry.execute("chart")).data, Image)


async def test_agents_sdk_outputs_as_objects_and_arguments_that_its_own_check_refuses() -> None:
    @agents.function_tool
    async def chart(day: date) -> Any:
        """A chart."""
        return [{"type": "text", "text": f"{day:%A}"}, {"type": "image", "image_url": "data:image/png;base64,iVBORw=="}]

    @agents.function_tool
    async def measure() -> Any:
        """Measure."""
        return {"type": "image", "width": 3}

    registry = ToolRegistry([chart, measure])
    text, image = (await registry.execute("chart", {"day": "2026-01-31"})).data
    assert text == "Saturday" and isinstance(image, Image)
    assert (await registry.execute("measure")).data == {"type": "image", "width": 3}
    wrong = await registry.execute("chart", {"day": "tomorrow"})
    assert wrong.error_code == "invalid_arguments"
    assert "'chart'" in str(wrong.error) and "JSON" not in str(wrong.error)


async def test_what_an_agents_sdk_agent_that_is_a_tool_complains_of_is_no_wrong_argument() -> None:
    @agents.function_tool(failure_error_function=lambda ctx, error: f"Sorry: {error}")
    async def ask(question: str) -> str:
        """Ask an agent."""
        raise agents.ModelBehaviorError("the model said nothing")

    result = await ToolRegistry([ask]).execute("ask", {"question": "why"})
    assert result.error_code == "tool_failed"
    assert result.error == "tool 'ask' failed: Sorry: the model said nothing"


def test_a_tool_that_was_handed_out_and_is_to_ask_asks() -> None:
    [handed] = ToolRegistry([save]).to_openai_agents()
    handed.needs_approval = True
    assert ToolRegistry([handed]).get("shop_save").spec.safety_level == "dangerous"


@pytest.mark.parametrize(
    ("how", "complaint"),
    [({"is_enabled": False}, "is enabled by a run"), ({"tool_input_guardrails": [1]}, "guardrails")],
)
def test_agents_sdk_tools_that_need_a_run_are_refused(how: dict[str, Any], complaint: str) -> None:
    made = agents.function_tool(multiply)
    for field, value in how.items():
        setattr(made, field, value)
    with pytest.raises(ToolValidationError, match=complaint):
        ToolRegistry().add_openai_agents([made])
    with pytest.raises(ToolValidationError, match="only its function tools"):
        ToolRegistry().add_openai_agents([agents.WebSearchTool()])  # type: ignore[list-item]


async def test_llama_index_blocks_and_contexts() -> None:
    def chart() -> ImageBlock:
        """A chart."""
        return ImageBlock(image=PNG, image_mimetype="image/png")

    async def remember(ctx: Context, text: str) -> str:
        """Keep a text."""
        return text

    registry = ToolRegistry([LlamaIndexTool.from_defaults(chart)])
    assert (await registry.execute("chart")).data == [Image(PNG)]
    with pytest.raises(ToolValidationError, match=r"LlamaIndex's tool 'remember' has no schema: .* not fully defined"):
        registry.add_llama_index([LlamaIndexTool.from_defaults(remember)])  # it cannot read quoted annotations
    remember.__annotations__.update(ctx=Context, text=str)
    with pytest.raises(ToolValidationError, match=r"LlamaIndex's tool 'remember' wants the context of a workflow"):
        registry.add_llama_index([LlamaIndexTool.from_defaults(remember)])


async def test_llama_index_models_read_the_words_that_its_tools_have_for_them() -> None:
    def population(city: str) -> dict[str, Any]:
        """How many people live there."""
        return {"city": city, "rows": []}

    def names(city: str) -> list[str]:
        """Who lives there."""
        return [name for name in ("Ada", "Bob") if city == "Paris"]

    async def said(output: Any) -> str:
        return f"{len(output)} things"

    plain, told = (
        LlamaIndexTool.from_defaults(population),
        LlamaIndexTool.from_defaults(population, name="told", async_callback=said),
    )
    registry = ToolRegistry([plain, told, LlamaIndexTool.from_defaults(names)])
    assert (await registry.execute("population", {"city": "Oslo"})).data == {"city": "Oslo", "rows": []}
    assert (await registry.execute("told", {"city": "Oslo"})).data == "2 things"
    assert (await registry.execute("names", {"city": "Paris"})).data == ["Ada", "Bob"]
    assert (await registry.execute("names", {"city": "Oslo"})).data == []


# Names and descriptions


def test_names_that_we_do_not_take_and_missing_descriptions() -> None:
    def quiet(n: int) -> int:
        return n

    spaced = langchain.StructuredTool.from_function(shout, name="say it")
    with pytest.raises(ToolValidationError, match=r"^'say it' is not a tool name; use"):
        ToolRegistry([spaced])
    with pytest.raises(ToolValidationError, match=r"^tool 'quiet' has no description; a model needs one"):
        ToolRegistry([pydantic_ai.Tool(quiet)])

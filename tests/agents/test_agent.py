"""The loop: what it hands over, runs and appends, and how a run ends."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any
from unittest.mock import AsyncMock, Mock

import pytest

from toolcrib import SettingsError, ToolContext, ToolRegistry, ToolResult, tool
from toolcrib.agents import Agent, Prices, Run, replay
from toolcrib.dialects.flybrowser import BaseTool, ToolMetadata
from toolcrib.dialects.flybrowser import ToolRegistry as TheirRegistry
from toolcrib.dialects.flybrowser import ToolResult as TheirResult
from toolcrib.layers import budget, repeat_breaker
from toolcrib.testing import SHAPES, RecordingRegistry, ScriptedModel, call


@tool
async def weather(city: str) -> str:
    """The weather in a city."""
    return {"Paris": "rain", "Oslo": "snow"}[city]


@tool(safety_level="dangerous")
async def erase(name: str) -> str:
    """Erase a file."""
    return f"{name} is gone"


@tool(is_terminal=True)
async def done(answer: str) -> dict[str, str]:
    """Say that the task is done."""
    return {"answer": answer}


@tool(is_terminal=True)
async def give_up(reason: str) -> ToolResult:
    """Say that the task cannot be done."""
    return ToolResult.failure_result(reason, "task_failed")


def results(run: Run) -> list[Any]:
    return [None if each.result is None else each.result.data for each in run.transcript.calls]


@pytest.mark.parametrize("as_sdk", [False, True], ids=["dict", "sdk"])
@pytest.mark.parametrize("format", SHAPES)
async def test_the_loop_with_each_provider(format: str, as_sdk: bool) -> None:
    """The scripted model refuses a conversation in which a call has no answer."""
    both = [call("weather", city="Paris"), call("weather", city="Oslo")]
    model = ScriptedModel([["Let me look.", *both], "Rain and snow."], format=format, as_sdk=as_sdk)
    run = await Agent(model, [weather], system="Be kind.").run("How is the weather?")
    assert (run.answer, run.ended, run.success) == ("Rain and snow.", "answer", True)
    assert results(run) == ["rain", "snow"]
    assert [step.text for step in run.steps] == ["Let me look.", "Rain and snow."]
    first = model.requests[0]
    assert first.tool_names == ["weather"]
    assert [each["role"] for each in first.messages] == ["system", "user"]
    assert "Be kind." in json.dumps(first.messages[0])
    assert "How is the weather?" in json.dumps(first.messages[1])
    assert list(model.requests[1].answers.values()) or format == "gemini"


async def test_the_calls_of_a_message_run_at_once() -> None:
    there = asyncio.Barrier(3)

    @tool
    async def meet() -> str:
        """Wait for the others."""
        async with asyncio.timeout(60):
            await there.wait()
        return "met"

    run = await Agent(ScriptedModel([[call("meet")] * 3, "All met."]), [meet]).run("Meet")
    assert results(run) == ["met"] * 3


async def test_a_tool_that_is_terminal_ends_the_run_with_its_result() -> None:
    model = ScriptedModel([[call("weather", city="Paris"), call("done", answer="rain")], "Never said."])
    run = await Agent(model, [weather, done]).run("How is it?")
    assert (run.answer, run.ended, run.success) == ({"answer": "rain"}, "terminal", True)
    assert run.result is not None
    assert run.result.metadata["tool"] == "done"
    assert model.remaining == 1


async def test_a_terminal_tool_may_say_that_it_failed_and_wrong_arguments_do_not_end_the_run() -> None:
    model = ScriptedModel([call("give_up"), call("give_up", reason="It rains")])
    run = await Agent(model, [give_up]).run("Go out")
    assert (run.ended, run.success, len(run.steps)) == ("terminal", False, 2)
    assert run.reason == "the tool 'give_up' ended the run: It rains"


async def test_what_is_dangerous_needs_approval() -> None:
    asked: list[Any] = []

    def approve(spec: Any, arguments: Any) -> bool:
        asked.append((spec.name, dict(arguments)))
        return True

    script = [call("erase", name="a"), "Done."]
    registry = ToolRegistry([erase])
    refused = await Agent(ScriptedModel(script), registry).run("Erase a")
    [only] = refused.transcript.calls
    assert only.result is not None
    assert only.result.error_code == "approval_required"
    assert results(await Agent(ScriptedModel(script), registry, approve=approve).run("Erase a")) == ["a is gone"]
    assert asked == [("erase", {"name": "a"})]
    allowed = await Agent(ScriptedModel(script), registry, highest_safety_level="dangerous").run("Erase a")
    assert results(allowed) == ["a is gone"]
    own = await Agent(ScriptedModel(script), ToolRegistry([erase], approve=approve)).run("Erase a")
    assert results(own) == ["a is gone"]
    assert (await registry.execute("erase", {"name": "a"})).error_code == "approval_required", "its rules stay"


async def test_the_registrys_layers_and_observers_hold_and_those_of_the_agent_are_its_own() -> None:
    registry = RecordingRegistry(ToolRegistry([weather]))
    spent = budget(calls=2)
    registry.use(spent)
    script = [call("weather", city="Paris"), call("weather", city="Oslo"), call("weather", city="Paris"), "Enough."]
    run = await Agent(ScriptedModel(script), registry).run("How is it?")
    assert [each.result.error_code for each in run.transcript.calls if each.result] == [None, None, "budget_spent"]
    assert len(registry.calls) == 3
    again = await Agent(ScriptedModel(script[:1] * 3 + ["Enough."]), [weather], layers=[repeat_breaker(same=2)]).run(
        "?"
    )
    assert [each.result.error_code for each in again.transcript.calls if each.result] == [None, None, "repeated_call"]
    assert (await Agent(ScriptedModel([*script[:2], "Enough."]), registry).run("?")).success, "each run has its own"


async def test_the_context_reaches_the_tools() -> None:
    @tool
    async def who(context: ToolContext) -> str:
        """Who asks."""
        return context.principal

    run = await Agent(ScriptedModel([call("who"), "Ada."]), [who]).run("Who?", context=ToolContext("ada"))
    assert results(run) == ["ada"]


async def test_a_tool_that_is_registered_on_the_way_is_there_in_the_next_step() -> None:
    registry = ToolRegistry()

    @registry.register
    @tool
    async def learn() -> str:
        """Learn to tell the weather."""
        registry.register(weather)
        return "learnt"

    model = ScriptedModel([call("learn"), call("weather", city="Oslo"), "Snow."])
    run = await Agent(model, registry).run("How is it?")
    assert results(run) == ["learnt", "snow"]
    assert [request.tool_names for request in model.requests[:2]] == [["learn"], ["learn", "weather"]]


async def test_many_tools_can_be_searched_by_the_model() -> None:
    found = call("call_tool", name="weather", arguments={"city": "Oslo"})
    model = ScriptedModel([call("search_tools", query="weather"), found, "Snow."])
    run = await Agent(model, [weather, done], handover={"defer": True, "pinned": ["done"], "search": "own"}).run("?")
    assert run.transcript.calls[-1].name == "weather"
    assert results(run)[-1] == "snow"


async def test_a_run_goes_on_with_another_task() -> None:
    model = ScriptedModel([call("weather", city="Paris"), "Rain.", call("done", answer="x"), "As I said: rain."])
    agent = Agent(model, [weather, done], prices=Prices(1, 1), system="Be kind.")
    first = await agent.run("How is Paris?")
    second = await agent.run("Say that you are done.", after=first)
    third = await agent.run("What did you say of Paris?", after=second)
    assert (second.ended, third.answer) == ("terminal", "As I said: rain.")
    told = [each.get("content") for each in model.requests[3].messages if each["role"] in ("system", "user")]
    assert told == ["Be kind.", "How is Paris?", "Say that you are done.", "What did you say of Paris?"]
    assert [run.task for run in third.transcript.runs] == told[1:]
    assert len(third.steps) == 1
    with pytest.raises(SettingsError, match="format='openai'"):
        await Agent(ScriptedModel(["x"], format="gemini")).run("And?", after=third)


async def test_a_task_may_be_messages() -> None:
    model = ScriptedModel(["A cat."])
    picture = {"role": "user", "content": [{"type": "text", "text": "What is it?"}]}
    run = await Agent(model).run([picture])
    assert model.requests[0].messages == [picture]
    assert run.transcript.task == [picture]


@pytest.mark.parametrize("said", [{"role": "assistant", "content": "Hi."}, "Hi.", {"content": "Hi."}])
async def test_a_plain_function_is_a_model(said: Any) -> None:
    async def model(messages: Any, tools: Any) -> Any:
        return said

    def at_once(messages: Any, tools: Any) -> Any:
        return said

    for each in (model, at_once):
        run = await Agent(each).run("Hello")
        assert (run.answer, run.ended) == ("Hi.", "answer")
    assert run.messages[-1] == {"role": "assistant", "content": "Hi."}


async def test_a_model_whose_format_and_name_are_no_words_is_a_model_all_the_same() -> None:
    for model in (AsyncMock(return_value="Hi."), Mock(return_value="Hi.")):
        run = await Agent(model).run("Hello")
        assert (run.answer, run.transcript.format, run.transcript.model) == ("Hi.", "openai", type(model).__name__)


async def test_a_function_may_answer_in_any_shape_whatever_it_is_handed() -> None:
    turns = [
        {
            "role": "assistant",
            "content": [{"type": "tool_use", "id": "t1", "name": "weather", "input": {"city": "Oslo"}}],
        },
        {"role": "assistant", "content": [{"type": "text", "text": "Snow."}]},
    ]

    async def model(messages: Any, tools: Any) -> Any:
        return turns.pop(0)

    run = await Agent(model, [weather]).run("How is Oslo?")
    assert run.answer == "Snow."
    assert run.messages[2]["content"][0]["tool_use_id"] == "t1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"model": "gpt-5"}, "OpenAIModel"),
        ({"max_steps": 0}, "max_steps"),
        ({"max_seconds": 0}, "max_seconds"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"format": "latin"}, "latin"),
        ({"tools": [7]}, "7"),
    ],
)
def test_what_is_wrong_is_named_before_anything_runs(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Agent(**{"model": ScriptedModel(["x"]), **options})


@pytest.mark.parametrize("task", ["", None, 7, [], ["text"]])
async def test_a_wrong_task_is_refused(task: Any) -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(SettingsError, match="a task is a text"):
        await Agent(model).run(task)
    assert model.remaining == 1


async def test_a_tool_of_a_dialect_is_taken() -> None:
    class Shout(BaseTool):
        metadata = ToolMetadata(name="shout", description="Say it loudly", is_terminal=True)

        async def execute(self, text: str = "hey", **kwargs: Any) -> TheirResult:
            return TheirResult.success_result(text.upper())

    run = await Agent(ScriptedModel([call("shout")]), [Shout]).run("Shout")
    assert (run.answer, run.ended) == ("HEY", "terminal")


async def test_the_registry_of_a_dialect_is_taken_with_its_rules() -> None:
    theirs = TheirRegistry(approve=lambda spec, arguments: True)
    theirs.register_instance(erase)
    run = await Agent(ScriptedModel([call("erase", name="a"), "Done."]), theirs).run("Erase a")
    assert results(run) == ["a is gone"]
    assert (await replay(run.transcript, theirs)).same


def test_importing_toolcrib_does_not_import_the_agents() -> None:
    code = "import sys, toolcrib, toolcrib.registry; print([m for m in sys.modules if 'agents' in m])"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert told.stdout.strip() == "[]"

"""Limits, and models that go wrong: each ending is told, and what there is of an answer is kept."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from toolcrib import ToolContext, tool
from toolcrib.agents import Agent, AgentEvent, Prices, replay
from toolcrib.testing import ScriptedModel, call
from toolcrib.testing.conversation import read_conversation
from toolcrib.testing.shapes import shape_named


@tool
async def look() -> str:
    """Look."""
    return "nothing"


async def for_ever(messages: Any, tools: Any) -> Any:
    number = len(messages)
    calls = [{"id": f"c{number}", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    return {"role": "assistant", "content": f"Message {number}.", "tool_calls": calls}


async def test_the_limit_of_steps() -> None:
    run = await Agent(for_ever, [look], max_steps=3).run("Find it")
    assert (run.ended, run.success, len(run.steps)) == ("steps", False, 3)
    assert run.reason == "the model had not come to an end: the limit of 3 steps is reached"
    assert run.answer == "Message 5.", "what it said last is not lost"
    assert all(each.result is not None for each in run.transcript.calls), "its last calls were run"


async def test_a_model_that_calls_nothing_there_is_is_told_and_so_is_the_user() -> None:
    script = [call("find"), call("find")]
    run = await Agent(ScriptedModel(script), [look], max_steps=2).run("Find it")
    assert run.ended == "steps"
    assert run.reason.endswith("the last call failed: no tool is called 'find'")


async def test_the_limit_of_tokens_by_the_providers_count() -> None:
    async def model(messages: Any, tools: Any) -> Any:
        usage = {"prompt_tokens": 60, "completion_tokens": 20, "total_tokens": 80}
        return {"choices": [{"message": await for_ever(messages, tools)}], "usage": usage}

    run = await Agent(model, [look], max_tokens=150).run("Find it")
    assert (run.ended, len(run.steps), run.usage.total) == ("tokens", 2, 160)
    assert "the limit of 150 tokens is reached, 160 are spent" in run.reason
    assert not run.usage.estimated


async def test_an_answer_that_comes_with_the_last_token_is_an_answer() -> None:
    run = await Agent(ScriptedModel(["It is here."]), [look], max_tokens=1).run("Find it")
    assert (run.ended, run.answer) == ("answer", "It is here.")


async def test_tokens_are_estimated_for_a_model_that_does_not_tell() -> None:
    run = await Agent(for_ever, [look], max_tokens=100).run("Find it")
    assert (run.ended, run.usage.estimated) == ("tokens", True)
    assert "about" in run.reason


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": 0, "completion_tokens": 0}, {"prompt_tokens": None}, {"total_tokens": 80}, {"inputTokens": 80}],
)
async def test_tokens_are_estimated_for_a_provider_whose_count_says_nothing(usage: dict[str, Any]) -> None:
    async def model(messages: Any, tools: Any) -> Any:
        return {"choices": [{"message": await for_ever(messages, tools)}], "usage": usage}

    run = await Agent(model, [look], max_tokens=100).run("Find it")
    assert (run.ended, run.usage.estimated) == ("tokens", True)


@pytest.mark.parametrize("format", ["openai", "openai-responses", "anthropic", "gemini"])
async def test_the_limit_of_time_stops_the_tool_and_keeps_what_came(format: str) -> None:
    stopped, begun = [], asyncio.Event()

    @tool
    async def wait() -> str:
        """Wait for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            stopped.append("wait")
            raise
        return ""

    @tool
    async def quick() -> str:
        """Be there first."""
        await begun.wait()
        return "here"

    model = ScriptedModel([["One moment.", call("wait"), call("quick")], "It goes on."], format=format)
    agent = Agent(model, [wait, quick], max_seconds=0.5)
    run = await agent.run("Find it")
    assert (run.ended, stopped, run.answer) == ("seconds", ["wait"], "One moment.")
    assert "the limit of 0.5 seconds is reached; what was still running was stopped" in run.reason
    assert {each.name: each.result and each.result.data for each in run.transcript.calls} == {
        "wait": None, "quick": "here",
    }  # fmt: skip
    answers = [each.answer for each in read_conversation(shape_named(format), run.messages).exchanges]
    assert "stopped" in str(answers[0])
    assert answers[1] == "here"
    assert (await agent.run("Go on", after=run)).answer == "It goes on."


async def test_the_limit_of_time_stops_a_model_that_does_not_answer() -> None:
    async def model(messages: Any, tools: Any) -> Any:
        await asyncio.Event().wait()

    run = await Agent(model, [look], max_seconds=0.05).run("Find it")
    assert (run.ended, run.steps) == ("seconds", [])


async def test_the_limit_of_time_holds_for_a_model_that_is_a_plain_function() -> None:
    enough = threading.Event()

    def model(messages: Any, tools: Any) -> Any:
        enough.wait(5)
        return "It is here."

    run = await Agent(model, [look], max_seconds=0.05).run("Find it")
    enough.set()
    assert (run.ended, run.steps) == ("seconds", [])


async def test_a_plain_function_that_raises_has_failed() -> None:
    turns: Any = iter(["It is here."])
    model = Agent(lambda messages, tools: next(turns))
    assert (await model.run("Find it")).answer == "It is here."
    assert (await model.run("Find it")).ended == "model_failed"


async def test_a_terminal_result_that_came_in_time_is_the_answer() -> None:
    begun = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait for ever."""
        begun.set()
        await asyncio.Event().wait()

    @tool(is_terminal=True)
    async def done() -> str:
        """Be done."""
        await begun.wait()
        return "found"

    run = await Agent(ScriptedModel([[call("wait"), call("done")]]), [wait, done], max_seconds=0.5).run("Find it")
    assert (run.ended, run.answer) == ("terminal", "found")


async def test_a_model_that_raises_is_told_of_with_what_was_done_before() -> None:
    broken = RuntimeError("no credit left, key sk-abcdefghijklmnopqrst0123456789")
    run = await Agent(ScriptedModel([["I look.", call("look")], broken]), [look]).run("Find it")
    assert (run.ended, run.success, run.answer) == ("model_failed", False, "I look.")
    assert run.reason == "the model failed: RuntimeError: no credit left, key ********"
    assert run.error is broken
    assert len(run.transcript.calls) == 1


async def test_a_model_whose_own_work_was_cancelled_has_failed() -> None:
    async def model(messages: Any, tools: Any) -> Any:
        raise asyncio.CancelledError

    assert (await Agent(model).run("Find it")).reason == "the model failed: CancelledError"


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (None, "neither a text nor a call"),
        ("", "neither a text nor a call"),
        ({"role": "assistant", "content": ""}, "neither a text nor a call"),
        ({"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm.", "signature": "x"}]}, "neither"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "no assistant message"),
        ({"choices": []}, "no assistant message"),
        ({"choices": {"0": "Hi."}}, "no assistant message"),
        ({"content": [{"thought": True}], "candidates": 7}, "no assistant message"),
        (42, "no assistant message: 42"),
    ],
)
async def test_a_model_that_says_nothing_is_told_of(said: Any, told: str) -> None:
    async def model(messages: Any, tools: Any) -> Any:
        return said

    run = await Agent(model, [look]).run("Find it")
    assert (run.ended, run.success, run.answer) == ("nothing_said", False, None)
    assert told in run.reason


@pytest.mark.parametrize(
    "response",
    [
        {"choices": [{"finish_reason": "length", "message": {"role": "assistant", "content": "It is"}}]},
        {"type": "message", "stop_reason": "max_tokens", "content": [{"type": "text", "text": "It is"}]},
        {"candidates": [{"finishReason": "MAX_TOKENS", "content": {"role": "model", "parts": [{"text": "It is"}]}}]},
        {
            "object": "response", "status": "incomplete",
            "output": [
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "It is"}]},
            ],
        },
    ],
    ids=["openai", "anthropic", "gemini", "responses"],
)  # fmt: skip
async def test_an_answer_that_was_cut_off_is_no_success(response: Any) -> None:
    async def model(messages: Any, tools: Any) -> Any:
        return response

    run = await Agent(model).run("Where is it?")
    assert (run.ended, run.success, run.answer) == ("cut_off", False, "It is")


async def test_a_model_that_thought_until_it_was_cut_off_costs_what_it_cost() -> None:
    thought = {"type": "thinking", "thinking": "Hm.", "signature": "x"}

    async def model(messages: Any, tools: Any) -> Any:
        usage = {"input_tokens": 10, "output_tokens": 4000}
        return {"type": "message", "stop_reason": "max_tokens", "content": [thought], "usage": usage}

    agent = Agent(model, format="anthropic", prices=Prices(0, 1000))
    run = await agent.run("Where is it?")
    assert (run.ended, run.success, run.answer) == ("cut_off", False, None)
    assert (run.usage.total, run.cost) == (4010, 4.0)
    assert len(run.messages) == 1, "a thought alone is no message that a provider takes back"
    assert (await replay(run.transcript, [])).runs[0].ended == "nothing_said"


async def test_who_cancels_a_run_cancels_its_tool() -> None:
    begun, stopped = asyncio.Event(), []

    @tool
    async def wait() -> None:
        """Wait for ever."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.append(True)

    task = asyncio.create_task(Agent(ScriptedModel([call("wait")]), [wait]).run("Wait"))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stopped == [True]


# Events


async def test_a_run_is_told_as_it_goes_on() -> None:
    @tool
    async def count(to: int, context: ToolContext) -> int:
        """Count."""
        for number in range(to):
            context.progress(number / to, f"at {number}")
        return to

    script = [["I count.", call("count", to=2), call("count", to=1)], call("nothing"), "Two."]
    events = [event async for event in Agent(ScriptedModel(script), [count]).stream("Count")]
    told = [(event.kind, event.step, event.text or (event.call.name if event.call else "")) for event in events]
    assert told == [
        ("said", 1, "I count."),
        ("call", 1, "count"), ("progress", 1, "count"), ("progress", 1, "count"), ("result", 1, "count"),
        ("call", 1, "count"), ("progress", 1, "count"), ("result", 1, "count"),
        ("said", 2, ""), ("call", 2, "nothing"), ("result", 2, "nothing"),
        ("said", 3, "Two."), ("end", 3, ""),
    ]  # fmt: skip
    assert [event.event.message for event in events if event.event] == ["at 0", "at 1", "at 0"]
    assert [event.call.call_id for event in events if event.kind == "progress" and event.call] == ["call_1"] * 2 + [
        "call_2"
    ]
    run = events[-1].run
    assert run is not None
    assert run.answer == "Two."
    assert [event.to_json()["kind"] for event in events] == [event.kind for event in events]


async def test_who_stops_listening_ends_the_run() -> None:
    stopped = asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait for ever."""
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()

    events = Agent(ScriptedModel([call("wait")]), [wait]).stream("Wait")
    heard: list[AgentEvent] = []
    async for event in events:
        heard.append(event)
        if event.kind == "call":
            break
    await events.aclose()
    assert stopped.is_set()


async def test_who_hears_the_progress_of_his_context_goes_on_hearing_it() -> None:
    @tool
    async def work(context: ToolContext) -> None:
        """Work."""
        context.progress(0.5)

    heard: list[Any] = []
    context = ToolContext(listener=heard.append)
    events = [
        event async for event in Agent(ScriptedModel([call("work"), "Done."]), [work]).stream("?", context=context)
    ]
    assert [event.fraction for event in heard] == [0.5]
    assert "progress" in [event.kind for event in events]

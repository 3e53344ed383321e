"""A registry's tools in the agent loop of each framework, with the real packages and a scripted model."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from typing import Any

import pytest
from tests.frameworks.loops import LOOPS, Loop, call_id

from toolcrib import Image, ToolContext, ToolRegistry, ToolResult, tool

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cf50000003"
    "0101005abb2c3c0000000049454e44ae426082"
)


@pytest.fixture(params=LOOPS)
def loop(request: pytest.FixtureRequest) -> Loop:
    return LOOPS[request.param]


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def test_a_call(loop: Loop) -> None:
    outcome = await loop.run(ToolRegistry([add]), [("add", {"a": 1, "b": 2})])
    assert [told.text for told in outcome.told] == ["3"]
    assert outcome.failed == [False]


async def test_a_plain_function_and_a_structured_result(loop: Loop) -> None:
    @tool
    def describe(city: str) -> dict[str, Any]:
        """Describe a city."""
        return {"name": city, "rivers": ["Seine"]}

    [told] = (await loop.run(ToolRegistry([describe]), [("describe", {"city": "Paris"})])).told
    assert "Seine" in told.text and "Paris" in told.text


async def test_names_that_providers_do_not_take(loop: Loop) -> None:
    @tool(name="math.root")
    async def root(n: float) -> float:
        """The square root."""
        return math.sqrt(n)

    [told] = (await loop.run(ToolRegistry([root]), [("math_root", {"n": 9})])).told
    assert told.text == "3.0"


async def test_wrong_arguments_are_told_all_at_once_and_the_model_corrects_itself(loop: Loop) -> None:
    ran: list[int] = []

    @tool
    async def book(seats: int, day: str) -> str:
        """Book seats."""
        ran.append(seats)
        return "booked"

    outcome = await loop.run(
        ToolRegistry([book]), [("book", {"seats": "many", "date": "today"})], [("book", {"seats": 2, "day": "today"})]
    )
    wrong, right = outcome.told
    assert "'seats'" in wrong.text and "'day'" in wrong.text and "'date'" in wrong.text
    assert right.text == "booked"
    assert ran == [2]
    assert outcome.failed == ([True, False] if loop.marks_failures else [False, False])


async def test_a_timeout_is_told_once_and_the_run_goes_on(loop: Loop) -> None:
    @tool(timeout_seconds=0.05)
    async def slow() -> None:
        """Wait."""
        await asyncio.Event().wait()

    outcome = await loop.run(ToolRegistry([slow, add]), *[[("slow", {})]] * 3, [("add", {"a": 1})])
    *late, right = outcome.told
    for told in late:
        assert told.text.count("'slow'") == 1
        assert "deadline" in told.text and "timeout" in told.text
        assert "(timeout). Call it again with less to do, or go on without it." in told.text
    assert right.text == "2"
    assert outcome.failed[:3] == [loop.marks_failures] * 3


async def test_a_failure_and_a_refusal_are_told_and_the_run_goes_on(loop: Loop) -> None:
    @tool
    async def broken() -> None:
        """Fail."""
        raise LookupError("the shelf is empty")

    @tool(safety_level="dangerous")
    async def wipe() -> str:
        """Wipe the disk."""
        raise AssertionError

    registry = ToolRegistry([broken, wipe])
    outcome = await loop.run(registry, [("broken", {}), ("wipe", {})], [("broken", {})])
    assert "the shelf is empty" in outcome.told[0].text and "tool_failed" in outcome.told[0].text
    way_out = "(approval_required). Nothing was run; ask the user to approve it, or go on without it."
    assert way_out in outcome.told[1].text
    assert outcome.failed == [loop.marks_failures] * 3


async def test_what_may_go_well_another_time_is_said_to(loop: Loop) -> None:
    @tool
    async def shy() -> ToolResult:
        """Ask twice."""
        return ToolResult.failure_result("nobody is in", "tool_failed", retryable=True)

    [told] = (await loop.run(ToolRegistry([shy]), [("shy", {})])).told
    assert "nobody is in (tool_failed). Trying again may help." in told.text


async def test_usage_knows_the_calls_and_what_the_model_was_told(loop: Loop) -> None:
    @tool(name="math.root")
    async def root(n: float) -> float:
        """The square root."""
        return math.sqrt(n)

    @tool
    async def chart() -> list[Any]:
        """A chart."""
        return ["The chart:", Image(PNG)]

    registry = ToolRegistry([root, chart], count_tokens=len)
    outcome = await loop.run(registry, [("math_root", {"n": 9}), ("chart", {})], [("math_root", {"m": 9})])
    used = registry.usage()
    assert (used["math.root"].calls, used["math.root"].errors) == (2, 1)
    assert used["chart"].result_tokens == len("The chart:")
    right, _, wrong = outcome.told
    if loop is not LOOPS["pydantic-ai"]:  # it puts words of its own around what is to be corrected
        assert used["math.root"].result_tokens == len(right.text) + len(wrong.text)
    assert used["math.root"].result_tokens > len(right.text)


async def test_an_image_reaches_the_model_as_one(loop: Loop) -> None:
    @tool
    async def chart() -> list[Any]:
        """A chart."""
        return ["The chart:", Image(PNG)]

    [told] = (await loop.run(ToolRegistry([chart]), [("chart", {})])).told
    assert told.images == [PNG]
    assert told.text == "The chart:"


async def test_calls_of_one_message_run_at_once(loop: Loop) -> None:
    there: dict[str, asyncio.Event] = {"left": asyncio.Event(), "right": asyncio.Event()}

    @tool
    async def meet(side: str, other: str) -> str:
        """Wait for the other side."""
        there[side].set()
        await there[other].wait()
        return f"{side} met {other}"

    calls = [("meet", {"side": "left", "other": "right"}), ("meet", {"side": "right", "other": "left"})]
    outcome = await loop.run(ToolRegistry([meet]), calls)
    assert {told.text for told in outcome.told} == {"left met right", "right met left"}


async def test_cancelling_the_run_cancels_the_tool(loop: Loop) -> None:
    started, ended = asyncio.Event(), asyncio.Event()

    @tool
    async def wait() -> None:
        """Wait."""
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    run = asyncio.create_task(loop.run(ToolRegistry([wait]), [("wait", {})]))
    await started.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await ended.wait()


async def test_tools_run_in_the_context_that_was_given(loop: Loop) -> None:
    seen: list[ToolContext] = []

    @tool
    async def who(context: ToolContext) -> str:
        """Say who calls."""
        seen.append(context)
        return context.principal

    outcome = await loop.run(ToolRegistry([who]), [("who", {})], context=ToolContext("ada", {"trip": 7}))
    assert outcome.told[0].text == "ada"
    assert seen[0].values == {"trip": 7}
    if loop is not LOOPS["llama-index"]:  # its tools are not told the id of the call
        assert seen[0].call_id == call_id(0, 0)


async def test_progress_and_items_reach_those_who_listen_to_the_run(loop: Loop) -> None:
    @tool
    async def crawl(context: ToolContext) -> AsyncIterator[str]:
        """Read two pages."""
        context.progress(0.5, "page 1")
        yield "the first"
        context.progress(1, "page 2")
        yield "the second"

    outcome = await loop.run(ToolRegistry([crawl]), [("crawl", {})], listen=True)
    told = [("progress", "page 1"), ("item", "the first"), ("progress", "page 2"), ("item", "the second")]
    nowhere = loop is LOOPS["openai-agents"]  # it has no place for what a function tool tells while it runs
    assert outcome.events == ([] if nowhere else told)
    assert "the first" in outcome.told[0].text


async def test_parameters_of_any_name(loop: Loop) -> None:
    parameters = {"type": "object", "properties": {"self": {}, "config": {}, "run_manager": {}, "ctx": {}, "args": {}}}

    @tool(parameters=parameters)
    async def odd(**given: Any) -> list[str]:
        """Take what frameworks would keep."""
        return sorted(given)

    arguments = {"self": 1, "config": 2, "run_manager": 3, "ctx": 4, "args": 5}
    [told] = (await loop.run(ToolRegistry([odd]), [("odd", arguments)])).told
    assert told.text.replace("'", '"').replace('","', '", "') == '["args", "config", "ctx", "run_manager", "self"]'

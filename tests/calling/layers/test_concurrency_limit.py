"""So many calls at the same time."""

import asyncio
import contextvars
import threading
from typing import Any

import pytest
from tests.support.waiting import until

from toolcrib import Tool, ToolContext, ToolRegistry, tool
from toolcrib.calling.layers import stacked
from toolcrib.calling.places import Places
from toolcrib.calling.sharing import in_place, keep_place, shared_runs
from toolcrib.layers import concurrency_limit


class Slow:
    def __init__(self, *layers: Any) -> None:
        self.gate = asyncio.Event()
        self.running = self.most = 0

        @tool
        async def slow() -> None:
            """Wait."""
            self.running += 1
            self.most = max(self.most, self.running)
            try:
                await self.gate.wait()
            finally:
                self.running -= 1

        self.registry = ToolRegistry([slow], layers=layers)

    def start(self, count: int = 1, **options: Any) -> list[asyncio.Task[Any]]:
        return [asyncio.create_task(self.registry.execute("slow", **options)) for _ in range(count)]


async def test_one_more_is_busy() -> None:
    slow = Slow(concurrency_limit(2))
    calls = slow.start(2)
    await until(lambda: slow.running == 2)
    refused = await slow.registry.execute("slow")
    assert refused.error_code == "tool_busy" and refused.metadata["retryable"]
    assert refused.error is not None and "2 calls of the tool 'slow'" in refused.error
    slow.gate.set()
    await asyncio.gather(*calls)
    assert (await slow.registry.execute("slow")).success


async def test_some_may_wait() -> None:
    slow = Slow(concurrency_limit(1, waiting=2))
    calls = slow.start(3)
    await until(lambda: slow.running == 1)
    assert (await slow.registry.execute("slow")).error_code == "tool_busy"
    slow.gate.set()
    assert all(result.success for result in await asyncio.gather(*calls))
    assert slow.most == 1


async def test_waiting_ends_with_the_callers_time() -> None:
    slow = Slow(concurrency_limit(1, waiting=5))
    [first] = slow.start()
    await until(lambda: slow.running == 1)
    assert (await slow.registry.execute("slow", timeout_seconds=0.01)).error_code == "tool_busy"
    slow.gate.set()
    assert (await first).success and (await slow.registry.execute("slow")).success


async def test_cancelled_calls_leave_no_place_taken() -> None:
    slow = Slow(concurrency_limit(1, waiting=5))
    calls = slow.start(4)
    await until(lambda: slow.running == 1)
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)
    slow.gate.set()
    assert (await slow.registry.execute("slow", timeout_seconds=60)).success


async def test_by_principal() -> None:
    slow = Slow(concurrency_limit(1, per="principal"))
    calls = slow.start(context=ToolContext("ann")) + slow.start(context=ToolContext("bob"))
    await until(lambda: slow.running == 2)
    assert (await slow.registry.execute("slow", context=ToolContext("bob"))).error_code == "tool_busy"
    slow.gate.set()
    await asyncio.gather(*calls)


async def test_a_thread_that_goes_on_keeps_its_places_until_it_has_ended() -> None:
    go = threading.Event()

    @tool(timeout_seconds=0.05)
    def stuck(wait: bool) -> None:
        """Wait."""
        if wait:
            go.wait(60)

    registry = ToolRegistry([stuck], layers=[shared_runs(4), concurrency_limit(1)])
    assert (await registry.execute("stuck", {"wait": True})).metadata["still_running"]
    assert (await registry.execute("stuck", {"wait": False})).error_code == "tool_busy"
    go.set()

    async def free() -> bool:
        return (await registry.execute("stuck", {"wait": False})).error_code != "tool_busy"

    await until(free)


async def test_a_place_that_was_given_back_cannot_be_kept_any_more() -> None:
    """What a run leaves behind knows its place, which is somebody else's by then."""
    places, left = Places("places", 2), []

    async def leaves_something(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> None:
        left.append(contextvars.copy_context())

    @tool
    async def any_tool() -> None:
        """Do nothing."""

    await places.take("")
    await in_place(places, "", leaves_something, any_tool, {}, ToolContext())
    await places.take("")
    left[0].run(keep_place)()
    assert places.busy == 1


def test_a_layer_that_is_no_coroutine_function_leaves_no_place_taken() -> None:
    def raises(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        raise ValueError("at once")

    run = stacked([concurrency_limit(1), lambda run: raises])

    @tool
    async def any_tool() -> None:
        """Do nothing."""

    for _ in range(3):
        with pytest.raises(Exception, match="ValueError"):
            asyncio.run(run(any_tool, {}, ToolContext()))  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [{"most": 0}, {"most": 1.5}, {"most": 1, "waiting": -1}])
def test_wrong_numbers_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="whole number"):
        concurrency_limit(**wrong)

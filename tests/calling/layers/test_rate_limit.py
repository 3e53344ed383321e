"""So many calls in so much time."""

import asyncio
import threading
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clocks import Clock

from toolcrib import ToolContext, ToolRegistry, tool
from toolcrib.core.buckets import Buckets
from toolcrib.layers import rate_limit


@tool
async def ask(context: ToolContext) -> Any:
    """Ask."""
    return context.timeout_seconds


@tool
async def other() -> int:
    """Do something else."""
    return 2


def registry(*args: Any, **options: Any) -> ToolRegistry:
    return ToolRegistry([ask, other], layers=[rate_limit(*args, **options)])


async def test_what_is_too_much_is_refused_with_the_seconds() -> None:
    clock = Clock()
    limited = registry(2, 10, clock=clock)
    assert [(await limited.execute("ask")).success for _ in range(3)] == [True, True, False]
    refused = await limited.execute("ask")
    assert (refused.error_code, refused.metadata["retry_after_seconds"]) == ("rate_limited", 5.0)
    assert refused.metadata["retryable"] and refused.error is not None and "2 calls in 10 s" in refused.error
    assert (await limited.execute("other")).success
    clock.now += 5
    assert (await limited.execute("ask")).success


async def test_by_principal_or_by_anything() -> None:
    by_principal = registry(1, 10, per="principal", clock=Clock())
    assert (await by_principal.execute("ask", context=ToolContext("ann"))).success
    assert not (await by_principal.execute("other", context=ToolContext("ann"))).success
    assert (await by_principal.execute("other", context=ToolContext("bob"))).success
    by_category = registry(1, 10, per=lambda tool, context: tool.spec.category, clock=Clock())
    assert (await by_category.execute("ask")).success
    assert not (await by_category.execute("other")).success


async def test_those_who_wait_take_their_turns() -> None:
    clock = Clock()
    limited = registry(1, 2, wait=True, clock=clock, sleep=(slept := Waiting(clock)).sleep)
    calls = [asyncio.create_task(limited.execute("ask")) for _ in range(4)]
    await asyncio.sleep(0)
    assert slept.seconds == [2, 4, 6]
    slept.wake()
    assert all(result.success for result in await asyncio.gather(*calls))


class Waiting:
    """Sleeps that all end when they are told to."""

    def __init__(self, clock: Clock) -> None:
        self.seconds: list[float] = []
        self._clock = clock
        self._event = asyncio.Event()

    async def sleep(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await self._event.wait()

    def wake(self) -> None:
        self._event.set()


async def test_a_turn_beyond_the_deadline_is_not_waited_for_nor_taken() -> None:
    clock = Clock()
    limited = registry(1, 10, wait=True, clock=clock, sleep=clock.sleep)
    assert (await limited.execute("ask")).success
    for seconds in (3, 10):
        assert (await limited.execute("ask", timeout_seconds=seconds)).error_code == "rate_limited"
    assert clock.slept == []
    assert (await limited.execute("ask", timeout_seconds=11)).data == 1  # what is left of its time


async def test_a_cancelled_turn_is_given_back() -> None:
    clock = Clock()
    limited = registry(1, 10, wait=True, clock=clock, sleep=Waiting(clock).sleep)
    assert (await limited.execute("ask")).success
    call = asyncio.create_task(limited.execute("ask"))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    clock.now += 10
    assert (await limited.execute("ask", timeout_seconds=5)).success


def test_several_threads_do_not_pass_more() -> None:
    limited = registry(50, 10_000)
    passed: list[bool] = []

    def run() -> None:
        async def many() -> None:
            passed.extend([(await limited.execute("other")).success for _ in range(50)])

        asyncio.run(many())

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert passed.count(True) == 50


@given(st.lists(st.tuples(st.sampled_from(["take", "wait", "leave", "pass"]), st.floats(0, 5)), max_size=40))
def test_never_more_than_the_rate_and_the_burst(steps: list[tuple[str, float]]) -> None:
    """Whatever is taken, promised and given back: those who went by a moment are within what had come in by then."""
    clock = Clock()
    rate, burst = 2.0, 3.0
    buckets, began = Buckets(rate, burst, clock), clock()
    due: list[float] = []
    for kind, seconds in steps:
        if kind == "pass":
            clock.now += seconds
        elif kind == "leave":
            if due and due[-1] > clock():
                due.pop()
                buckets.give_back("a")
        else:
            patience = seconds if kind == "wait" else 0.0
            pause = buckets.take("a", patience)
            if pause == 0 or pause < patience:
                due.append(clock() + pause)
    for number, moment in enumerate(sorted(due), 1):
        assert number <= burst + (moment - began) * rate + 1e-6


INFINITE = float("inf")


@pytest.mark.parametrize(
    "wrong",
    [
        {"calls": 0},
        {"calls": 1, "seconds": -1},
        {"calls": 1, "per": "moon"},
        {"calls": 1, "seconds": INFINITE},
        {"calls": INFINITE},
    ],
)
def test_wrong_limits_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        rate_limit(**wrong)

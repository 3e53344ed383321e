"""A tool that fails again and again is left alone for a while."""

import asyncio
from typing import Any

import pytest
from tests.support.clocks import Clock
from tests.support.waiting import until

from toolcrib import InvalidArgumentsError, ToolContext, ToolRegistry, ToolResult, UnavailableError, tool
from toolcrib.layers import circuit_breaker


class Flaky:
    def __init__(self, **options: Any) -> None:
        self.clock = Clock()
        self.failure: Any = None
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()

        @tool
        async def flaky() -> Any:
            """Fail or not."""
            self.calls += 1
            await self.gate.wait()
            if isinstance(self.failure, BaseException):
                raise self.failure
            return self.failure

        @tool
        async def other() -> int:
            """Do something else."""
            return 1

        options = {"failures": 3, "within": 60, "cooldown": 30, "clock": self.clock, **options}
        self.registry = ToolRegistry([flaky, other], layers=[circuit_breaker(**options)])

    async def call(self, **options: Any) -> ToolResult:
        return await self.registry.execute("flaky", **options)

    async def break_down(self) -> None:
        self.failure = RuntimeError("no luck")
        for _ in range(3):
            assert (await self.call()).error_code == "tool_failed"


async def test_it_opens_says_why_and_for_how_long_and_closes_after_a_success() -> None:
    flaky = Flaky()
    await flaky.break_down()
    flaky.clock.now += 10
    refused = await flaky.call()
    assert (refused.error_code, refused.metadata["retry_after_seconds"], flaky.calls) == ("circuit_open", 20.0, 3)
    assert refused.metadata["retryable"]
    assert refused.error is not None and "failed 3 times" in refused.error and "no luck" in refused.error
    assert "another 20 s" in refused.error
    assert (await flaky.registry.execute("other")).success
    flaky.clock.now += 20
    flaky.failure = None
    assert (await flaky.call()).success and (await flaky.call()).success


async def test_a_failed_trial_opens_it_again() -> None:
    flaky = Flaky()
    await flaky.break_down()
    flaky.clock.now += 30
    assert (await flaky.call()).error_code == "tool_failed"
    assert (await flaky.call()).error_code == "circuit_open"
    assert flaky.calls == 4


async def test_one_trial_at_a_time() -> None:
    flaky = Flaky()
    await flaky.break_down()
    flaky.clock.now += 30
    flaky.failure = None
    flaky.gate.clear()
    trial = asyncio.create_task(flaky.call())
    await until(lambda: flaky.calls == 4)
    refused = await flaky.call()
    assert refused.error is not None and "trying it just now" in refused.error
    flaky.gate.set()
    assert (await trial).success and (await flaky.call()).success


@pytest.mark.parametrize("end", ["cancelled", InvalidArgumentsError("no"), ToolResult.failure_result("no", "own")])
async def test_a_trial_that_says_nothing_lets_the_next_try(end: Any) -> None:
    flaky = Flaky()
    await flaky.break_down()
    flaky.clock.now += 30
    flaky.failure = end
    flaky.gate.clear()
    trial = asyncio.create_task(flaky.call())
    await until(lambda: flaky.calls == 4)
    if end == "cancelled":
        trial.cancel()
    else:
        flaky.gate.set()
    await asyncio.wait([trial])
    flaky.gate.set()
    flaky.failure = None
    assert (await flaky.call()).success


@pytest.mark.parametrize(
    ("failure", "counts"),
    [
        (RuntimeError("no"), True),
        (TimeoutError("no"), True),
        (UnavailableError("no"), True),
        (ToolResult.failure_result("no", "timeout"), True),
        (InvalidArgumentsError("no"), False),
        (ToolResult.failure_result("no", "shop_closed"), False),
        (ToolResult.failure_result("no"), False),
    ],
)
async def test_what_counts(failure: Any, counts: bool) -> None:
    flaky = Flaky()
    flaky.failure = failure
    for _ in range(3):
        await flaky.call()
    assert ((await flaky.call()).error_code == "circuit_open") is counts


async def test_what_counts_can_be_said() -> None:
    flaky = Flaky(counts=lambda result: result.error_code == "shop_closed")
    flaky.failure = ToolResult.failure_result("no", "shop_closed")
    for _ in range(3):
        await flaky.call()
    assert (await flaky.call()).error_code == "circuit_open"


async def test_timeouts_count() -> None:
    flaky = Flaky()
    flaky.gate.clear()
    for _ in range(3):
        assert (await flaky.call(timeout_seconds=0.001)).error_code == "timeout"
    assert (await flaky.call()).error_code == "circuit_open"


async def test_failures_in_a_row_and_within_the_time() -> None:
    flaky = Flaky()
    for failure in (RuntimeError(), RuntimeError(), None, RuntimeError(), RuntimeError()):
        flaky.failure = failure
        await flaky.call()
    assert (await flaky.call()).error_code == "tool_failed"  # the third in a row
    slow = Flaky()
    slow.failure = RuntimeError()
    for _ in range(5):
        slow.clock.now += 31
        assert (await slow.call()).error_code == "tool_failed"


async def test_what_began_before_says_nothing_after() -> None:
    """Calls that were under way when it opened neither close it nor count for the time after."""
    flaky = Flaky()
    flaky.gate.clear()
    flaky.failure = RuntimeError("no luck")
    calls = [asyncio.create_task(flaky.call()) for _ in range(6)]
    await until(lambda: flaky.calls == 6)
    flaky.gate.set()
    await asyncio.gather(*calls)
    flaky.clock.now += 30
    flaky.failure = None
    assert (await flaky.call()).success
    flaky.failure = RuntimeError("no luck")
    assert [(await flaky.call()).error_code for _ in range(4)] == ["tool_failed"] * 3 + ["circuit_open"]


async def test_the_reason_is_told_to_whom_it_was_told_before() -> None:
    flaky = Flaky()
    flaky.failure = RuntimeError("no account 4711")
    for _ in range(3):
        await flaky.call(context=ToolContext("ann"))
    to_ann, to_bob = [(await flaky.call(context=ToolContext(name))).error or "" for name in ("ann", "bob")]
    assert "no account 4711" in to_ann
    assert "4711" not in to_bob and "'tool_failed'" in to_bob

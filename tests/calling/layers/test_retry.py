"""Only what can help to be tried again, and does no harm to be done twice."""

import asyncio
import pathlib
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.support.clocks import Clock
from tests.support.waiting import until

from toolcrib import (
    OverloadedError,
    RateLimitedError,
    Tool,
    ToolBusyError,
    ToolContext,
    ToolcribError,
    ToolFailedError,
    ToolRegistry,
    ToolResult,
    UnavailableError,
    tool,
)
from toolcrib.layers import retry


class DownError(ToolcribError):
    code = "down"
    retryable = True


class Failing:
    """A tool that fails so often, then answers with the number of its calls."""

    def __init__(self, *failures: Any, **fields: Any) -> None:
        self.calls = 0

        @tool(name="asked", **fields)
        async def asked(items: list[int]) -> Any:
            """Ask."""
            self.calls += 1
            items.append(self.calls)
            if self.calls <= len(failures):
                failure = failures[self.calls - 1]
                if isinstance(failure, BaseException):
                    raise failure
                return failure
            return [self.calls, items]

        self.tool: Tool = asked


def again(clock: Clock, *args: Any, **options: Any) -> Any:
    return retry(*args, clock=clock, sleep=clock.sleep, draw=lambda low, high: high, **options)


async def tried(failing: Failing, *args: Any, clock: Clock | None = None, **options: Any) -> ToolResult:
    context = options.pop("context", ToolContext())
    registry = ToolRegistry([failing.tool])
    registry.use(again(clock or Clock(), *args, **options))
    return await registry.execute("asked", {"items": []}, context=context)


async def test_the_third_attempt_succeeds_and_each_has_the_arguments_as_they_were() -> None:
    clock = Clock()
    result = await tried(Failing(DownError("no"), DownError("no")), clock=clock)
    assert result.data == [3, [3]]
    assert result.metadata["attempts"] == 3
    assert clock.slept == [0.5, 1.0]


async def test_a_first_attempt_that_succeeds_says_nothing() -> None:
    assert "attempts" not in (await tried(Failing())).metadata


async def test_it_gives_up_with_the_last_failure() -> None:
    failing = Failing(DownError("one"), DownError("two"), DownError("three"))
    result = await tried(failing, 2)
    assert (failing.calls, result.error, result.metadata["attempts"]) == (2, "two", 2)


@pytest.mark.parametrize(
    ("failure", "calls"),
    [
        (DownError("no"), 2),
        (UnavailableError("no"), 2),
        (ToolResult.failure_result("no", "down", retryable=True), 2),
        (ToolResult.failure_result("no", "down"), 1),
        (RuntimeError("no"), 1),
        (ToolFailedError("asked", "no"), 1),
    ],
)
async def test_what_says_that_it_helps(failure: Any, calls: int) -> None:
    failing = Failing(failure)
    await tried(failing)
    assert failing.calls == calls


async def test_exceptions_by_their_kind() -> None:
    for on in (ConnectionError, (ConnectionError, TimeoutError), [ConnectionError]):
        failing = Failing(ConnectionResetError("no"), ConnectionResetError("no"))
        assert (await tried(failing, on=on)).success
    other = Failing(ValueError("no"))
    assert not (await tried(other, on=(ConnectionError, TimeoutError))).success


@pytest.mark.parametrize(
    ("fields", "options", "calls"),
    [
        ({}, {}, 2),
        ({"safety_level": "low_risk"}, {}, 1),
        ({"safety_level": "low_risk", "cacheable": True}, {}, 2),
        ({"safety_level": "low_risk"}, {"tools": ["asked"]}, 2),
        ({"safety_level": "low_risk"}, {"tools": ["other"]}, 1),
        ({"safety_level": "low_risk"}, {"always": True}, 2),
    ],
)
async def test_what_does_no_harm(fields: dict[str, Any], options: dict[str, Any], calls: int) -> None:
    failing = Failing(DownError("no"), **fields)
    await tried(failing, **options)
    assert failing.calls == calls


@pytest.mark.parametrize("failure", [ToolBusyError("no"), RateLimitedError("no", 0.1), OverloadedError("no")])
async def test_what_never_started_does_none(failure: ToolcribError) -> None:
    failing = Failing(failure, safety_level="high")
    assert (await tried(failing)).success


async def test_retry_after_is_honoured() -> None:
    clock = Clock()
    assert (await tried(Failing(RateLimitedError("no", 7.5)), clock=clock)).success
    assert clock.slept == [7.5]
    told = ToolResult.failure_result("no", "down", retryable=True, retry_after_seconds=4)
    assert (await tried(Failing(told), clock=clock)).success
    assert clock.slept == [7.5, 4.0]


@pytest.mark.parametrize("isolation", ["inline", "thread"])
@pytest.mark.parametrize(("says", "slept"), [("7", [7.0]), ("soon", [0.5]), (None, [0.5]), ("31", [])])
async def test_retry_after_is_honoured_that_the_tools_own_client_has(
    says: str | None, slept: list[float], isolation: Any
) -> None:
    request = httpx.Request("GET", "https://example.com")
    answers = [httpx.Response(200, request=request)]
    answers.append(httpx.Response(429, request=request, headers={} if says is None else {"Retry-After": says}))

    @tool(isolation=isolation)
    def ask() -> int:
        """Ask a service."""
        return answers.pop().raise_for_status().status_code

    clock = Clock()
    registry = ToolRegistry([ask], layers=[again(clock, on=httpx.HTTPStatusError)])
    assert (await registry.execute("ask")).success is bool(slept)
    assert clock.slept == slept


@pytest.mark.parametrize("odd", ["soon", -3, None, float("nan"), [1]])
async def test_a_retry_after_that_is_none_is_not_believed(odd: Any) -> None:
    clock = Clock()
    told = ToolResult.failure_result("no", "down", retryable=True, retry_after_seconds=odd)
    assert (await tried(Failing(told), clock=clock)).success
    assert clock.slept == [0.5]


@pytest.mark.parametrize("seconds", [31, float("inf"), 10**400], ids=["longer", "for ever", "no float"])
async def test_a_longer_wait_than_allowed_is_not_waited(seconds: float) -> None:
    failing = Failing(RateLimitedError("no", seconds))
    clock = Clock()
    assert (await tried(failing, clock=clock)).error_code == "rate_limited"
    assert (failing.calls, clock.slept) == (1, [])


async def test_the_callers_deadline_bounds_it_all() -> None:
    clock = Clock()
    failing = Failing(*[DownError("no")] * 9)
    result = await tried(failing, 9, first_delay=1, clock=clock, context=ToolContext(timeout_seconds=4))
    assert clock.slept == [1, 2]  # the next wait would have been 4
    assert (failing.calls, result.error_code, result.metadata["attempts"]) == (3, "down", 3)


async def test_a_later_attempt_has_what_is_left_of_the_time() -> None:
    clock, given = Clock(), []

    @tool
    async def asked(context: ToolContext) -> None:
        """Ask."""
        given.append(context.timeout_seconds)
        if len(given) < 3:
            raise DownError("no")

    registry = ToolRegistry([asked], layers=[again(clock)])
    assert (await registry.execute("asked", timeout_seconds=100)).success
    assert given == [100, 99.5, 98.5]


async def test_items_that_somebody_heard_are_not_told_twice() -> None:
    calls = 0

    @tool
    async def counting() -> AsyncIterator[int]:
        """Count."""
        nonlocal calls
        calls += 1
        yield 1
        if calls == 1:
            raise DownError("no")

    registry = ToolRegistry([counting], layers=[again(Clock())])
    events = [event async for event in registry.stream("counting")]
    assert [event.item for event in events[:-1]] == [1]
    assert events[-1].result is not None and events[-1].result.error_code == "down"
    calls = 0
    assert (await registry.execute("counting")).data == [1]


async def test_a_cancelled_wait_ends() -> None:
    failing = Failing(DownError("no"))
    registry = ToolRegistry([failing.tool], layers=[retry(first_delay=30, longest_delay=60)])
    call = asyncio.create_task(registry.execute("asked", {"items": []}))
    await until(lambda: failing.calls)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert failing.calls == 1


def fail_twice(path: str) -> str:
    """Fail twice."""
    with pathlib.Path(path).open("a+", encoding="utf-8") as file:
        file.write(".")
        file.seek(0)
        if len(file.read()) < 3:
            raise RateLimitedError("not yet", 0.01)
    return "done"


@pytest.mark.parametrize("isolation", ["thread", "process"])
async def test_in_every_isolation(isolation: Any, tmp_path: Any) -> None:
    """Also from another process an error comes back with what it knows."""
    clock = Clock()
    registry = ToolRegistry([tool(isolation=isolation)(fail_twice)], layers=[again(clock, first_delay=0.001)])
    result = await registry.execute("fail_twice", {"path": str(tmp_path / "calls")})
    assert (result.data, result.metadata["attempts"], clock.slept) == ("done", 3, [0.01, 0.01])


@pytest.mark.parametrize("on", ["ValueError", [5], int])
def test_what_is_no_exception_is_refused(on: Any) -> None:
    with pytest.raises(TypeError, match="on is an exception's class"):
        retry(on=on)


@pytest.mark.parametrize(
    "wrong", [{"attempts": 0}, {"attempts": True}, {"attempts": 2.5}, {"first_delay": 0}, {"longest_delay": -1}]
)
def test_wrong_numbers_are_refused_with_their_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        retry(**wrong)

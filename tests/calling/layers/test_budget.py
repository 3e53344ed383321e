"""What a run of an agent may spend."""

import asyncio
from typing import Any

import pytest
from tests.support.clocks import Clock

from toolcrib import Image, ToolContext, ToolRegistry, tool
from toolcrib.layers import Budget, agent_run, budget


@tool
async def say(text: str = "") -> Any:
    """Say it again."""
    return text


@tool
async def given(context: ToolContext) -> Any:
    """The seconds of this call."""
    return context.timeout_seconds


@tool
async def boom() -> None:
    """Raise."""
    raise RuntimeError("x" * 400)


@tool
async def picture() -> Any:
    """A picture."""
    return [Image(b"\x89PNG" * 10_000), "a cat"]


def registry(layer: Budget) -> ToolRegistry:
    return ToolRegistry([say, given, boom, picture], layers=[layer])


async def test_calls() -> None:
    spending = registry(limited := budget(calls=2))
    with agent_run():
        assert (await spending.execute("say")).success
        assert not (await spending.execute("boom")).success
        spent = await spending.execute("say")
        assert limited.spent().calls == 2
    assert (spent.error_code, spent.metadata["limit"], spent.metadata["spent"], spent.metadata["of"]) == (
        "budget_spent", "calls", 2, 2,
    )  # fmt: skip
    assert spent.error is not None and "2 of 2 calls" in spent.error and "answer with what you have" in spent.error
    assert not spent.metadata["retryable"]
    with agent_run():
        assert (await spending.execute("say")).success


async def test_who_asks_before_the_first_call_starts_no_clock() -> None:
    clock = Clock()
    spending = registry(limited := budget(seconds=10, clock=clock))
    with agent_run():
        limited.spent()
        clock.now += 60
        assert limited.spent().seconds == 0
        assert (await spending.execute("given")).data == 10
        clock.now += 4
        assert (limited.spent().calls, limited.spent().seconds) == (1, 4)


async def test_runs_at_the_same_time_spend_their_own() -> None:
    spending = registry(budget(calls=3))

    async def one_run() -> list[bool]:
        with agent_run():
            results = await asyncio.gather(*(spending.execute("say") for _ in range(4)))
            return [result.success for result in results]

    assert list(await asyncio.gather(one_run(), one_run())) == [[True, True, True, False]] * 2


async def test_a_run_inside_spends_what_the_outer_one_has() -> None:
    spending = registry(limited := budget(calls=3))
    with agent_run():
        with agent_run():
            for _ in range(2):
                await spending.execute("say")
        with agent_run():
            assert limited.spent().calls == 0
            assert [(await spending.execute("say")).success for _ in range(2)] == [True, False]
        assert limited.spent().calls == 3


async def test_without_a_run_everything_is_one() -> None:
    spending = registry(budget(calls=1))
    assert [(await spending.execute("say")).success for _ in range(2)] == [True, False]


def test_calls_without_a_loop_are_in_the_run_too() -> None:
    spending = registry(limited := budget(calls=1))
    with agent_run():
        assert spending.execute_sync("say").success
        assert spending.execute_sync("say").error_code == "budget_spent"
        assert limited.spent().calls == 1


async def test_seconds_and_no_call_gets_more_than_is_left() -> None:
    clock = Clock()
    spending = registry(budget(seconds=10, clock=clock))
    with agent_run():
        assert (await spending.execute("given")).data == 10
        clock.now += 4
        assert (await spending.execute("given")).data == 6
        assert (await spending.execute("given", timeout_seconds=2)).data == 2
        clock.now += 6
        spent = await spending.execute("given")
        assert (spent.error_code, spent.metadata["limit"]) == ("budget_spent", "seconds")


async def test_tokens_of_arguments_results_and_errors() -> None:
    spending = registry(limited := budget(tokens=50, count_tokens=len))
    with agent_run():
        await spending.execute("say", {"text": "12345"})
        assert limited.spent().tokens == len('{"text":"12345"}') + 5
        await spending.execute("boom")
        assert limited.spent().tokens > 400
        spent = await spending.execute("say")
        assert (spent.error_code, spent.metadata["limit"]) == ("budget_spent", "tokens")
    with agent_run():
        await spending.execute("picture")
        assert limited.spent().tokens == len("{}") + len("a cat")


async def test_tokens_are_estimated_without_a_tokenizer() -> None:
    spending = registry(limited := budget(tokens=10_000))
    await spending.execute("say", {"text": "x" * 400})
    assert limited.spent().tokens == 103 + 100


async def test_a_tokenizer_that_raises_harms_no_call(caplog: pytest.LogCaptureFixture) -> None:
    def particular(text: str) -> int:
        if "<|endoftext|>" in text:
            raise ValueError("a special token")
        return 1

    spending = registry(limited := budget(tokens=100, count_tokens=particular))
    result = await spending.execute("say", {"text": "<|endoftext|>"})
    assert result.data == "<|endoftext|>"
    assert limited.spent().tokens == 10 and "count_tokens raised" in caplog.text


async def test_seconds_without_end_limit_nothing() -> None:
    result = await registry(budget(seconds=float("inf"))).execute("given")
    assert result.success and result.data is None


@pytest.mark.parametrize("wrong", [{}, {"calls": 0}, {"seconds": -1}, {"tokens": True}])
def test_wrong_budgets_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong), "needs")):
        budget(**wrong)

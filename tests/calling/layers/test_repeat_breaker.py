"""The same call again and again."""

import asyncio
import tracemalloc
from typing import Any

import pytest
from tests.support.clocks import Clock

from toolcrib import ToolContext, ToolRegistry, tool
from toolcrib.layers import agent_run, repeat_breaker


@tool
async def look(where: Any) -> str:
    """Look."""
    return "nothing"


@tool
async def walk() -> str:
    """Walk."""
    return "done"


def registry(*args: Any, **options: Any) -> ToolRegistry:
    return ToolRegistry([look, walk], layers=[repeat_breaker(*args, **options)])


async def codes(registry: ToolRegistry, *places: Any, **options: Any) -> list[str | None]:
    return [(await registry.execute("look", {"where": where}, **options)).error_code for where in places]


async def test_the_fourth_is_refused_with_what_to_do_instead() -> None:
    breaking = registry()
    assert await codes(breaking, 1, 1, 1, 1, 1) == [None] * 3 + ["repeated_call"] * 2
    refused = await breaking.execute("look", {"where": 1})
    assert refused.error is not None and "'look' has been called 3 times" in refused.error
    assert "change the arguments, use another tool, or answer" in refused.error
    assert not refused.metadata["retryable"]


async def test_another_call_in_between_begins_anew() -> None:
    breaking = registry(2)
    assert await codes(breaking, 1, 1, True, 1, 1) == [None] * 5
    assert (await breaking.execute("walk")).success
    assert await codes(breaking, 1, 1, 1) == [None, None, "repeated_call"]


async def test_equal_arguments_are_equal_whatever_their_order() -> None:
    assert await codes(registry(1), {"a": 1, "b": 2}, {"b": 2, "a": 1}) == [None, "repeated_call"]


async def test_it_is_forgotten_after_a_while() -> None:
    clock = Clock()
    breaking = registry(1, within=60, clock=clock)
    assert await codes(breaking, 1, 1) == [None, "repeated_call"]
    clock.now += 59
    assert await codes(breaking, 1) == ["repeated_call"]
    clock.now += 60
    assert await codes(breaking, 1) == [None]


async def test_every_principal_and_every_run_for_itself() -> None:
    breaking = registry(1)
    for name in ("ann", "bob"):
        assert await codes(breaking, 1, context=ToolContext(name)) == [None]
    assert await codes(breaking, 1, context=ToolContext("ann")) == ["repeated_call"]

    async def one_run() -> list[str | None]:
        with agent_run():
            return await codes(breaking, 7, 7)

    assert list(await asyncio.gather(one_run(), one_run())) == [[None, "repeated_call"]] * 2


async def test_long_arguments_are_not_kept() -> None:
    breaking = registry(1)
    tracemalloc.start()
    for number in range(20):
        await codes(breaking, "x" * 500_000, context=ToolContext(f"caller {number}"))
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 2_000_000


@pytest.mark.parametrize("same", [0, -1, 2.5, True])
def test_wrong_numbers_are_refused(same: Any) -> None:
    with pytest.raises(ValueError, match="same"):
        repeat_breaker(same)

"""What holds for all layers together: any order, any isolation, cancelled at any moment, nothing is left behind."""

import asyncio
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import Tool, ToolRegistry, ToolResult, tool
from toolcrib.layers import (
    Budget,
    Cache,
    Layer,
    around,
    budget,
    cache,
    circuit_breaker,
    concurrency_limit,
    logged,
    rate_limit,
    repeat_breaker,
    retry,
)


async def a_moment(*_: Any) -> None:
    await asyncio.sleep(0)


LAYERS: dict[str, Callable[[], Layer]] = {
    "around": lambda: around(before=a_moment, after=a_moment, error=a_moment),
    "budget": lambda: budget(calls=1000, seconds=1000, tokens=1_000_000),
    "cache": cache,
    "circuit_breaker": lambda: circuit_breaker(2),
    "concurrency_limit": lambda: concurrency_limit(1, waiting=3),
    "logged": logged,
    "rate_limit": lambda: rate_limit(1000, wait=True),
    "repeat_breaker": lambda: repeat_breaker(1000),
    "retry": lambda: retry(2, first_delay=0.0001, longest_delay=0.0002, always=True, on=ValueError),
}


def doubled(n: int) -> int:
    """Double."""
    if n < 0:
        raise ValueError("below zero")
    return 2 * n


def counted(n: int) -> Iterator[int]:
    """Count."""
    yield from range(n)


FUNCTIONS: tuple[Callable[[int], Any], ...] = (doubled, counted)


async def waiting(n: int) -> int:
    """Wait now and then."""
    for _ in range(3):
        await asyncio.sleep(0)
    return doubled(n)


@given(st.permutations(list(LAYERS)), st.lists(st.integers(-1, 3), max_size=5))
def test_any_order_of_layers_gives_the_same_answers(order: list[str], numbers: list[int]) -> None:
    plain = ToolRegistry([tool(name="double", cacheable=True)(waiting)])
    layered = ToolRegistry([tool(name="double", cacheable=True)(waiting)], layers=[
        LAYERS[name]() for name in order if name != "circuit_breaker"
    ])  # fmt: skip

    async def both() -> None:
        for number in numbers:
            one = await plain.execute("double", {"n": number})
            other = await layered.execute("double", {"n": number})
            assert (one.data, one.error, one.error_code) == (other.data, other.error, other.error_code)

    asyncio.run(both())


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
@pytest.mark.parametrize("layer", LAYERS)
async def test_every_layer_in_every_isolation_and_with_streams(layer: str, isolation: Any) -> None:
    tools: list[Tool] = [tool(isolation=isolation, cacheable=True)(function) for function in FUNCTIONS]
    registry = ToolRegistry(tools, layers=[LAYERS[layer]()])
    for _ in range(2):
        assert (await registry.execute("doubled", {"n": 2})).data == 4
        assert "below zero" in ((await registry.execute("doubled", {"n": -1})).error or "")
        events = [event async for event in registry.stream("counted", {"n": 3})]
        assert [event.item for event in events[:-1]] == [0, 1, 2]
        assert events[-1].result is not None and events[-1].result.data == [0, 1, 2]


async def cancelled_at(call: asyncio.Task[ToolResult], step: int) -> None:
    """Cancel the call after so many turns of the loop."""
    for _ in range(step):
        await asyncio.sleep(0)
    call.cancel()
    await asyncio.wait([call])


@given(st.permutations(list(LAYERS)), st.integers(0, 12), st.integers(0, 12), st.integers(1, 4))
def test_a_call_that_is_cancelled_at_any_moment_leaves_nothing_behind(
    order: list[str], step: int, other_step: int, number: int
) -> None:
    layers = [LAYERS[name]() for name in order]
    registry = ToolRegistry([tool(name="double", cacheable=True)(waiting)], layers=layers)

    async def run() -> None:
        for first in (1, -1):  # one that would succeed, and one that fails and is tried again
            calls = [asyncio.create_task(registry.execute("double", {"n": first})) for _ in range(number)]
            await asyncio.gather(cancelled_at(calls[0], step), cancelled_at(calls[-1], other_step))
            await asyncio.wait(calls)
        for fresh in (10, 11, 12):  # the one place is free, the one turn was given back, and so on
            result = await registry.execute("double", {"n": fresh}, timeout_seconds=60)
            assert result.data == 2 * fresh or result.error_code == "circuit_open"
        assert all(layer.under_way == 0 for layer in layers if isinstance(layer, Cache))
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


async def test_in_the_order_of_the_guide_a_models_calls_count_whatever_comes_of_them() -> None:
    """Kept answers count too, and a call that is tried again counts once."""
    guide = (Path(__file__).parents[3] / "docs/guides/layers.md").read_text(encoding="utf-8")
    order = re.findall(r"^\| `(\w+)\(", guide, re.MULTILINE)
    assert sorted(order) == sorted(LAYERS)
    made = LAYERS | {"repeat_breaker": lambda: repeat_breaker(2), "circuit_breaker": lambda: circuit_breaker(10)}
    layers = {name: made[name]() for name in order}
    registry = ToolRegistry([tool(name="double", cacheable=True)(waiting)], layers=layers.values())
    for number, code in ((3, None), (-1, "tool_failed")):
        codes = [(await registry.execute("double", {"n": number})).error_code for _ in range(3)]
        assert codes == [code, code, "repeated_call"]
    spending = layers["budget"]
    assert isinstance(spending, Budget) and spending.spent().calls == 6


async def test_half_open_does_not_stay_so() -> None:
    """Whenever the call that tries a tool again is cancelled, the next one may try."""
    for step in range(12):
        now = [0.0]
        layer = circuit_breaker(1, cooldown=1, clock=lambda now=now: now[0])  # type: ignore[misc]
        registry = ToolRegistry([tool(name="double")(waiting)], layers=[around(before=a_moment), layer])
        await registry.execute("double", {"n": -1})
        assert (await registry.execute("double", {"n": 1})).error_code == "circuit_open"
        now[0] += 1
        call = asyncio.create_task(registry.execute("double", {"n": 1}))
        await cancelled_at(call, step)
        assert (await registry.execute("double", {"n": 1})).success

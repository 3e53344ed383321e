"""Hooks before and after a call and at its error; what breaks in them is theirs."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from toolcrib import (
    DeniedError,
    InvalidArgumentsError,
    ToolContext,
    ToolcribError,
    ToolRegistry,
    ToolResult,
    tool,
)
from toolcrib.core.tool import Runner
from toolcrib.layers import Layer, around


@tool
async def double(number: int, times: int = 1) -> int:
    """Double."""
    return number << times


@tool
async def boom() -> Any:
    """Raise."""
    raise RuntimeError("no luck")


@tool
async def told() -> Any:
    """Fail without raising."""
    return ToolResult.failure_result("it is closed", "shop_closed", until="nine")


@tool
async def size(items: list[int]) -> int:
    """Count."""
    return len(items)


def registry(layer: Layer) -> ToolRegistry:
    made = ToolRegistry([double, boom, told, size])
    made.use(layer)
    return made


def sync_and_async(function: Any) -> list[Any]:
    async def asynchronous(*given: Any) -> Any:
        await asyncio.sleep(0)
        return function(*given)

    return [function, asynchronous]


@pytest.mark.parametrize("before", sync_and_async(lambda tool, arguments, context: {**arguments, "times": 3}))
async def test_before_may_change_the_arguments(before: Any) -> None:
    assert (await registry(around(before=before)).execute("double", {"number": 1})).data == 8


@pytest.mark.parametrize("after", sync_and_async(lambda tool, arguments, result: result + arguments["times"]))
async def test_after_may_change_the_result(after: Any) -> None:
    assert (await registry(around(after=after)).execute("double", {"number": 1})).data == 3


@pytest.mark.parametrize("error", sync_and_async(lambda tool, arguments, error: f"sorry: {error.code}"))
async def test_error_may_answer_instead(error: Any) -> None:
    hooked = registry(around(error=error))
    assert (await hooked.execute("boom")).data == "sorry: tool_failed"
    assert (await hooked.execute("told")).data == "sorry: tool_failed"


async def test_what_returns_nothing_changes_nothing() -> None:
    seen: list[str] = []
    hooked = registry(
        around(
            before=lambda tool, arguments, context: seen.append("before"),
            after=lambda tool, arguments, result: seen.append(f"after {result}"),
            error=lambda tool, arguments, error: seen.append(f"error {error}"),
        )
    )
    assert (await hooked.execute("double", {"number": 2})).data == 4
    failed = await hooked.execute("told")
    assert (failed.error_code, failed.metadata["until"]) == ("shop_closed", "nine")
    assert (await hooked.execute("boom")).error_code == "tool_failed"
    assert seen == ["before", "after 4", "before", "error it is closed", "before", seen[-1]]
    assert "no luck" in seen[-1]


async def test_hooks_see_who_calls() -> None:
    def only_ann(tool: Any, arguments: Any, context: ToolContext) -> None:
        if context.principal != "ann":
            raise DeniedError("only ann may")

    hooked = registry(around(before=only_ann))
    assert (await hooked.execute("double", {"number": 1}, context=ToolContext("ann"))).data == 2
    assert (await hooked.execute("double", {"number": 1})).error_code == "denied"


async def test_changed_arguments_are_validated_again_and_the_caller_is_not_blamed() -> None:
    result = await registry(around(before=lambda tool, arguments, context: {"number": "x"})).execute(
        "double", {"number": 1}
    )
    assert result.error_code == "layer_failed"
    assert result.error is not None and "'before' hook '<lambda>'" in result.error and "number" in result.error


async def test_arguments_that_are_changed_in_place_do_not_pass_unseen() -> None:
    def careless(tool: Any, arguments: dict[str, Any], context: Any) -> None:
        arguments["items"].append("not a number")

    assert (await registry(around(before=careless)).execute("size", {"items": [1]})).data == 1


@pytest.mark.parametrize("kind", ["before", "after", "error"])
@pytest.mark.parametrize("raised", [KeyError("x"), SystemExit(3), asyncio.CancelledError(), TimeoutError()])
async def test_a_hook_that_breaks_is_told_as_such(kind: str, raised: BaseException) -> None:
    def breaks(*_: Any) -> None:
        raise raised

    hooks: dict[str, Any] = {kind: breaks}
    result = await registry(around(**hooks)).execute(
        "boom" if kind == "error" else "double", {} if kind == "error" else {"number": 1}
    )
    assert result.error_code == "layer_failed"
    assert result.error is not None and f"the {kind!r} hook 'breaks'" in result.error


async def test_a_value_that_the_tool_may_not_return_is_the_hooks_fault() -> None:
    result = await registry(around(after=lambda tool, arguments, result: "text")).execute("double", {"number": 1})
    assert result.error_code == "layer_failed"
    assert result.error is not None and "the 'after' hook" in result.error


async def test_a_hook_that_refuses_is_an_answer() -> None:
    def refuse(*_: Any) -> None:
        raise InvalidArgumentsError("not on Sundays", argument="day")

    result = await registry(around(before=refuse)).execute("double", {"number": 1})
    assert (result.error_code, result.error, result.metadata["argument"]) == (
        "invalid_arguments",
        "not on Sundays",
        "day",
    )


async def test_facts_of_a_run_stay_beside_a_changed_result() -> None:
    from toolcrib.core.result import Ran

    def telling(run: Runner) -> Runner:
        async def tell(tool: Any, arguments: Any, context: Any) -> Any:
            return Ran(await run(tool, arguments, context), {"where": "here"})

        return tell

    made = ToolRegistry([double], layers=[around(after=lambda tool, arguments, result: result + 1), telling])
    result = await made.execute("double", {"number": 1})
    assert (result.data, result.metadata["where"]) == (3, "here")


async def test_one_name_may_be_given_as_a_text() -> None:
    made = ToolRegistry([double, tool(name="tagged", tags=["numbers"])(double.function)])
    made.use(around(after=lambda tool, arguments, result: result + 10), tools="double")
    made.use(around(after=lambda tool, arguments, result: result + 100), tags="numbers")
    assert (await made.execute("double", {"number": 1})).data == 12
    assert (await made.execute("tagged", {"number": 1})).data == 102


async def test_generators_pass_through() -> None:
    @tool
    def numbers() -> Iterator[Any]:
        """Count."""
        yield from range(3)

    made = ToolRegistry([numbers], layers=[around(after=lambda tool, arguments, result: [*result, "end"])])
    events = [event async for event in made.stream("numbers")]
    assert [event.item for event in events[:-1]] == [0, 1, 2]
    assert events[-1].result is not None and events[-1].result.data == [0, 1, 2, "end"]


async def test_a_layer_of_ones_own_that_breaks_is_told_as_a_layer(caplog: pytest.LogCaptureFixture) -> None:
    def layer(run: Runner) -> Runner:
        async def broken(tool: Any, arguments: Any, context: Any) -> Any:
            await run(tool, arguments, context)
            return dict[str, int]()["secret detail"]

        return broken

    result = await ToolRegistry([double], layers=[layer]).execute("double", {"number": 1})
    assert result.error_code == "layer_failed" and result.metadata["tool"] == "double"
    assert result.error is not None and "KeyError" in result.error and "secret detail" not in result.error
    assert "secret detail" in caplog.text


async def test_a_runner_that_breaks_is_not_told_as_a_layer(caplog: pytest.LogCaptureFixture) -> None:
    async def broken(tool: Any, arguments: Any, context: Any) -> Any:
        raise KeyError("x")

    @tool
    async def fine() -> None:
        """Do nothing."""

    fine.runner = broken
    result = await ToolRegistry([fine], layers=[around()]).execute("fine")
    assert result.error_code == ToolcribError.code
    assert caplog.text

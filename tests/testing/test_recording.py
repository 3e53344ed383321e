"""A registry that records, and the calls that a test expects."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

import pytest

from toolcrib import (
    RateLimitedError,
    SafetyLevel,
    ToolContext,
    ToolNotFoundError,
    ToolRegistry,
    ToolValidationError,
    tool,
)
from toolcrib.testing import ANY, RecordedCall, RecordingRegistry, ScriptedModel, assert_calls, call, differences

RAN: list[str] = []


@tool
async def weather(city: str, days: int = 1) -> str:
    """The weather in a city."""
    RAN.append(city)
    return f"rain in {city}"


@tool
def pay(amount: float, context: ToolContext) -> int:
    """Pay."""
    RAN.append("paid")
    return 1


@tool(safety_level=SafetyLevel.DANGEROUS)
async def wipe() -> str:
    """Wipe."""
    return "wiped"


@pytest.fixture
def registry() -> ToolRegistry:
    RAN.clear()
    return ToolRegistry([weather, pay, wipe])


async def test_every_call_is_kept_with_its_result(registry: ToolRegistry) -> None:
    recorder = RecordingRegistry(registry)
    context = ToolContext("ada")
    await recorder.execute("weather", {"city": "Paris"}, context=context)
    await recorder.execute("weather", {"town": "Oslo"})
    await recorder.execute("wipe")
    await recorder.execute("nothing", {"a": 1})
    await recorder.execute("weather", ["Paris"])  # type: ignore[arg-type]
    assert [(each.name, each.arguments) for each in recorder.calls] == [
        ("weather", {"city": "Paris"}),
        ("weather", {"town": "Oslo"}),
        ("wipe", {}),
        ("nothing", {"a": 1}),
        ("weather", ["Paris"]),
    ]
    results = [each.result for each in recorder.calls]
    assert [result.error_code if result else "" for result in results] == [
        None, "invalid_arguments", "approval_required", "tool_not_found", "invalid_arguments",
    ]  # fmt: skip
    assert results[0] is not None and results[0].data == "rain in Paris"
    assert recorder.calls[0].context.principal == "ada"
    assert [result.data for result in recorder.results("weather")] == ["rain in Paris", None, None]
    assert recorder.definitions() == registry.definitions()


async def test_what_a_model_asks_for_in_vain_is_kept_in_its_place(registry: ToolRegistry) -> None:
    recorder = RecordingRegistry(registry)
    calls = [call("weather", raw='{"city": '), call("weather", city="Oslo"), call("nothing", a=1)]
    message = await ScriptedModel([calls])([])
    await recorder.execute_calls(message, timeout_seconds=60)
    assert_calls(recorder, calls)
    assert [each.result.success for each in recorder.calls if each.result] == [False, True, False]


async def test_later_layers_and_streams_are_recorded_too(registry: ToolRegistry) -> None:
    seen: list[str] = []

    def noting(run: Any) -> Any:
        async def noted(tool: Any, arguments: Any, context: Any) -> Any:
            seen.append(tool.name)
            return await run(tool, arguments, context)

        return noted

    registry.use(noting)
    recorder = RecordingRegistry(registry, answers={"weather": "sun"})
    recorder.use(noting)
    async for _ in recorder.stream("weather", {"city": "Paris"}):
        pass
    await asyncio.to_thread(recorder.execute_sync, "weather", {"city": "Oslo"})
    assert_calls(recorder, [call("weather", city="Paris"), call("weather", city="Oslo")])
    assert seen == ["weather"] * 4
    await registry.execute("weather", {"city": "Rome"})
    assert len(recorder.calls) == 2, "the registry itself is left as it is"


async def test_long_results_and_the_search_are_as_in_the_registry(registry: ToolRegistry) -> None:
    @tool(max_result_characters=10)
    async def reads() -> str:
        """Read a long text."""
        return "words and more words"

    registry.register_many([reads, registry.search_tool(), registry.call_tool()])
    recorder = RecordingRegistry(registry)
    assert list(recorder.names()) == list(registry.names())
    [answer] = await recorder.execute_calls(await ScriptedModel([call("reads")])([]))
    handle = answer["content"].partition('handle="')[2].partition('"')[0]
    asked = [
        call("read_result", handle=handle, offset=10),
        call("call_tool", name="weather", arguments={"city": "Oslo"}),
        call("call_tool", name="weather", arguments='{"city": "Rome"}'),
        call("call_tool", name="forecast", arguments={"days": 3}),
    ]
    [rest, weather, *_] = await recorder.execute_calls(await ScriptedModel([asked])([]))
    assert rest["content"].startswith("more words") and weather["content"] == "rain in Oslo"
    found = [call("weather", city="Oslo"), call("weather", city="Rome"), call("forecast", days=3)]
    assert_calls(recorder, ["reads", "read_result", *found])


async def test_a_call_that_is_cancelled_has_no_result(registry: ToolRegistry) -> None:
    started = asyncio.Event()

    async def forever(**arguments: Any) -> None:
        started.set()
        await asyncio.Event().wait()

    recorder = RecordingRegistry(registry, answers={"weather": forever})
    task = asyncio.create_task(recorder.execute("weather", {"city": "Paris"}))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [(each.name, each.result) for each in recorder.calls] == [("weather", None)]


# Answers


async def test_a_tool_with_an_answer_does_not_run_but_is_checked(registry: ToolRegistry) -> None:
    recorder = RecordingRegistry(registry, answers={"weather": "sun", "pay": lambda amount: amount and 2})
    assert (await recorder.execute("weather", {"city": "Paris"})).data == "sun"
    assert (await recorder.execute("pay", {"amount": 2.0})).data == 2
    assert (await recorder.execute("weather", {})).error_code == "invalid_arguments"
    assert RAN == []
    wrong = RecordingRegistry(registry, answers={"weather": 7, "pay": "much"})
    assert (await wrong.execute("weather", {"city": "Paris"})).error_code == "invalid_output"
    assert (await wrong.execute("pay", {"amount": 1})).error_code == "invalid_output"


async def test_an_answer_may_be_an_error(registry: ToolRegistry) -> None:
    answers = {"weather": RateLimitedError("too many questions", 3), "pay": ConnectionError}
    recorder = RecordingRegistry(registry, answers=answers)
    limited = await recorder.execute("weather", {"city": "Paris"})
    assert limited.error_code == "rate_limited" and limited.metadata["retryable"]
    failed = await recorder.execute("pay", {"amount": 1})
    assert failed.error_code == "tool_failed" and "ConnectionError" in str(failed.error)


async def test_the_rules_hold_for_answers_too(registry: ToolRegistry) -> None:
    recorder = RecordingRegistry(registry, answers={"wipe": "gone"})
    assert (await recorder.execute("wipe")).error_code == "approval_required"


async def test_an_answer_that_somebody_changes_is_whole_the_next_time() -> None:
    @tool
    async def rows() -> list[int]:
        """Rows."""
        return []

    recorder = RecordingRegistry(ToolRegistry([rows]), answers={"rows": [1]})
    (await recorder.execute("rows")).data.append(2)
    assert (await recorder.execute("rows")).data == [1]


def test_an_answer_for_a_tool_that_there_is_not_is_refused(registry: ToolRegistry) -> None:
    with pytest.raises(ToolNotFoundError, match="did you mean 'weather'"):
        RecordingRegistry(registry, answers={"wether": "sun"})


# Expecting


def made(*calls: Any) -> list[RecordedCall]:
    return [RecordedCall(each.name, each.arguments) for each in calls]


PARIS, OSLO, PAY = call("weather", city="Paris"), call("weather", city="Oslo", days=3), call("pay", amount=0.1 + 0.2)


@pytest.mark.parametrize(
    ("expected", "options"),
    [
        ([PARIS, OSLO, PAY], {}),
        (["weather", OSLO, "pay"], {}),
        ([call("weather", city=ANY), call("weather", {"city": str, "days": lambda n: n > 2}), "pay"], {}),
        ([PARIS, OSLO, call("pay", amount=pytest.approx(0.3))], {}),
        ([PAY, OSLO, PARIS], {"in_order": False}),
        (
            [call("pay", amount=ANY), call("weather", city=ANY), call("weather", city=ANY, days=ANY)],
            {"in_order": False},
        ),
        ([PARIS, PAY], {"exact": False}),
        ([OSLO], {"exact": False}),
        ([call("weather", days=3)], {"exact": False}),
        ([], {"exact": False}),
        (["pay", call("weather", days=3)], {"exact": False, "in_order": False}),
    ],
)
def test_calls_that_are_those_expected(expected: list[Any], options: dict[str, Any]) -> None:
    assert_calls(made(PARIS, OSLO, PAY), expected, **options)


def test_any_order_finds_the_pairs_whatever_is_written_first() -> None:
    both = [call("weather", city=ANY), PARIS]
    assert_calls(made(PARIS, call("weather", city="Rome")), both, in_order=False)
    assert_calls(made(call("weather", city="Rome"), PARIS), both, in_order=False)


def told(*arguments: Any, **options: Any) -> list[str]:
    with pytest.raises(AssertionError) as caught:
        assert_calls(*arguments, **options)
    return [" ".join(line.split()) for line in str(caught.value).splitlines()[2:]]


def test_a_difference_is_told_side_by_side() -> None:
    expected = [PARIS, call("weather", city="Oslo", days=2), call("wipe")]
    assert told(made(PARIS, OSLO, PAY), expected) == [
        "weather(city='Paris') weather(city='Paris')",
        "! weather(city='Oslo', days=2) weather(city='Oslo', days=3)",
        "days: 2 is expected, 3 came",
        "- wipe() (not called)",
        "+ (not expected) pay(amount=0.30000000000000004)",
    ]


def test_differences_in_number_order_and_kind() -> None:
    assert told(made(PARIS), []) == ["+ (not expected) weather(city='Paris')"]
    assert told([], PARIS) == ["- weather(city='Paris') (not called)"]
    assert told(made(PARIS, OSLO), [OSLO, PARIS])[0].startswith(("! ", "- ", "+ "))
    assert told(made(PAY), ["weather"], exact=False)[0] == "- weather(...) (not called)"
    assert told(made(call("f", raw="{")), [call("f")])[0] == "! f() f(raw='{')"
    assert told(made(PARIS, PARIS), [PARIS], in_order=False)[1] == "+ (not expected) weather(city='Paris')"
    assert told(made(call("f", n=True)), [call("f", n=1)])[1] == "n: 1 is expected, True came"
    with pytest.raises(ToolValidationError, match="calls are expected, not 3"):
        assert_calls([], [3])  # type: ignore[list-item]


def test_only_recorded_calls_can_be_compared(registry: ToolRegistry) -> None:
    wrong: list[Any] = [registry, None, [call("weather")]]
    for each in wrong:
        with pytest.raises(
            ToolValidationError, match="has recorded no calls; make a RecordingRegistry of the registry"
        ):
            assert_calls(each, ["weather"])


def test_differences_name_the_place() -> None:
    assert differences({"rows": [{"n": 1}, {"n": 2}]}, {"rows": [{"n": 1}, {"n": 3}]}) == [
        "rows[1].n: 2 is expected, 3 came"
    ]
    assert differences({"a": 1}, {"b": 2}) == [
        "a: 1 is expected, and nothing came", "b: 2 came, and nothing is expected",
    ]  # fmt: skip
    assert differences([1], [1, 2]) == ["[1]: 2 came, and nothing is expected"]
    assert differences(1.0, 1.001) and not differences(1.0, 1.001, 0.01)
    assert differences("1", 1) == ["'1' is expected, 1 came"]
    assert differences({"n": 68, "m": [2.0]}, {"n": 68.0, "m": [2]}) == []
    assert differences([1, 2**60], [True, 2**60 + 1]) == [
        "[0]: 1 is expected, True came", f"[1]: {2**60} is expected, {2**60 + 1} came",
    ]  # fmt: skip
    day = datetime.date(2026, 1, 2)
    assert differences({"day": day, "days": {day}}, {"day": "2026-01-02", "days": ["2026-01-02"]}) == []
    assert differences(day, "2026-01-03")[0].endswith("'2026-01-03' came")
    assert len(differences(list(range(100)), [])) == 20
    assert differences(f"{'a' * 500}b", f"{'a' * 500}c") == [
        f"from character 480 on '{'a' * 20}b' is expected, '{'a' * 20}c' came"
    ]
    assert differences("a" * 50, "a" * 60) == [f"from character 30 on '{'a' * 20}' is expected, '{'a' * 30}' came"]
    assert differences(lambda value: value > 3, "text")[0].endswith("'text' came")

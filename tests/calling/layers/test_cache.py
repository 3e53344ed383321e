"""Kept answers: for whom, for how long, and nobody else's."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.clocks import Clock
from tests.support.waiting import until

from toolcrib import Image, Tool, ToolContext, ToolcribError, ToolRegistry, ToolResult, tool
from toolcrib.calling.remembered import Remembered
from toolcrib.layers import Layer, cache
from toolcrib.ports import Decision, PolicyRequest


class Asked:
    """A tool that counts its calls and answers with what ``answer`` makes of the arguments."""

    def __init__(self, answer: Any = None, **fields: Any) -> None:
        self.calls = 0
        self.gate = asyncio.Event()
        self.gate.set()

        @tool(name="asked", cacheable=True, **fields)
        async def asked(what: Any = None) -> Any:
            """Ask."""
            self.calls += 1
            await self.gate.wait()
            made = [what] if answer is None else answer(what)
            if isinstance(made, Exception):
                raise made
            return made

        self.tool: Tool = asked
        self.registry = ToolRegistry([asked])

    def using(self, layer: Layer) -> ToolRegistry:
        self.registry.use(layer)
        return self.registry


async def test_equal_calls_run_once_and_the_second_says_so() -> None:
    asked = Asked()
    registry = asked.using(cache())
    first, second = [await registry.execute("asked", {"what": {"a": 1, "b": [2]}}) for _ in range(2)]
    third = await registry.execute("asked", {"what": {"b": [2], "a": 1}})
    assert asked.calls == 1
    assert first.data == second.data == third.data == [{"a": 1, "b": [2]}]
    assert [result.metadata.get("cached") for result in (first, second, third)] == [None, True, True]


async def test_only_tools_that_are_marked() -> None:
    calls = []

    @tool
    async def now() -> int:
        """Count."""
        calls.append(1)
        return len(calls)

    registry = ToolRegistry([now], layers=[cache()])
    assert [(await registry.execute("now")).data for _ in range(2)] == [1, 2]


@pytest.mark.parametrize("other", [True, 1.0, "1", [1], None, {"what": 1}])
async def test_arguments_that_only_look_alike_are_others(other: Any) -> None:
    asked = Asked()
    registry = asked.using(cache())
    for what in (1, other):
        result = await registry.execute("asked", {"what": what})
        assert result.data == [what] and type(result.data[0]) is type(what)


async def test_a_changed_answer_reaches_nobody_else() -> None:
    asked = Asked(lambda what: ToolResult.success_result({"list": [1]}, note=["n"]))
    registry = asked.using(cache())
    for _ in range(3):
        result = await registry.execute("asked")
        assert result.data == {"list": [1]} and result.metadata["note"] == ["n"]
        result.data["list"].append(2)
        result.metadata["note"].append("m")
    assert asked.calls == 1


CALLERS = [
    ToolContext(),
    ToolContext("ann"),
    ToolContext("bob"),
    ToolContext("ann", roles=("admin",)),
    ToolContext("ann", session="shop"),
    ToolContext("ann", values={"tenant": 1}),
    ToolContext("ann", values={"tenant": True}),
]


async def test_every_caller_has_answers_of_their_own() -> None:
    asked = Asked()
    registry = asked.using(cache())
    for count, caller in enumerate(CALLERS, 1):
        for _ in range(2):
            await registry.execute("asked", context=caller)
        assert asked.calls == count


async def test_shared_answers_are_for_tools_that_do_not_know_who_asks() -> None:
    seen = []

    @tool(cacheable=True)
    async def whose(context: ToolContext) -> str:
        """Say whose call it is."""
        seen.append(context.principal)
        return context.principal

    asked = Asked()
    registry = asked.using(cache(shared=True))
    registry.register(whose)
    for caller in CALLERS:
        await registry.execute("asked", context=caller)
        assert (await registry.execute("whose", context=caller)).data == caller.principal
    assert asked.calls == 1 and len(seen) == len(CALLERS)


async def test_a_caller_whose_values_are_no_json_is_left_out() -> None:
    asked = Asked()
    registry = asked.using(cache())
    for _ in range(2):
        await registry.execute("asked", context=ToolContext("ann", values={"session": object()}))
    assert asked.calls == 2


async def test_two_objects_of_one_class_do_not_share() -> None:
    class Shop:
        def __init__(self, name: str) -> None:
            self.shop = name

        @tool(cacheable=True)
        async def name(self) -> str:
            """The name of the shop."""
            return self.shop

    layer = cache()
    registries = [ToolRegistry([Shop(name).name], layers=[layer]) for name in ("one", "two")]
    for _ in range(2):
        assert [(await registry.execute("name")).data for registry in registries] == ["one", "two"]


async def test_an_updated_tool_starts_anew() -> None:
    one, other = Asked(lambda what: "one"), Asked(lambda what: "other")
    registry = one.using(cache())
    assert (await registry.execute("asked")).data == "one"
    registry.update("asked", other.tool)
    assert (await registry.execute("asked")).data == "other"


async def test_whoever_may_not_run_the_tool_gets_no_kept_answer() -> None:
    class OnlyAnn:
        remote = False

        def decide(self, request: PolicyRequest) -> Decision:
            return Decision(request.principal == "ann", "only ann")

    asked = Asked()
    registry = ToolRegistry([asked.tool], policy=OnlyAnn(), layers=[cache(shared=True)])
    assert (await registry.execute("asked", context=ToolContext("ann"))).success
    assert (await registry.execute("asked", context=ToolContext("eve"))).error_code == "denied"


@pytest.mark.parametrize("failure", [ToolcribError("no"), RuntimeError("no"), ToolResult.failure_result("no", "own")])
async def test_failures_are_not_kept(failure: Any) -> None:
    asked = Asked(lambda what: failure)
    registry = asked.using(cache())
    results = [await registry.execute("asked") for _ in range(2)]
    assert asked.calls == 2 and not any("cached" in result.metadata for result in results)


async def test_what_the_output_schema_forbids_is_not_kept() -> None:
    asked = Asked(lambda what: "text", returns={"type": "integer"})
    registry = asked.using(cache())
    for _ in range(2):
        assert (await registry.execute("asked")).error_code == "invalid_output"
    assert asked.calls == 2


async def test_answers_grow_old() -> None:
    clock, asked = Clock(), Asked()
    registry = asked.using(cache(10, clock=clock))
    for passes, calls in ((0, 1), (9.9, 1), (0.1, 2)):
        clock.now += passes
        await registry.execute("asked")
        assert asked.calls == calls


async def test_answers_are_bounded_in_number_and_in_bytes() -> None:
    asked = Asked(lambda what: "x" * 1000)
    registry = asked.using(cache(entries=2))
    for what in (1, 2, 3, 1):
        await registry.execute("asked", {"what": what})
    assert asked.calls == 4
    heavy = Asked(lambda what: "x" * 1000)
    registry = heavy.using(cache(bytes=1500))
    for what in (1, 2, 1):
        await registry.execute("asked", {"what": what})
    assert heavy.calls == 3


async def test_clear_forgets() -> None:
    asked, layer = Asked(), cache()
    registry = asked.using(layer)
    await registry.execute("asked")
    layer.clear()
    await registry.execute("asked")
    assert asked.calls == 2


async def test_what_cannot_be_copied_is_not_kept() -> None:
    asked = Asked(lambda what: threading.Lock())
    registry = asked.using(cache())
    results = await asyncio.gather(*(registry.execute("asked") for _ in range(3)))
    assert asked.calls == 3 and all(result.success for result in results)


async def test_parts_are_kept_too() -> None:
    asked = Asked(lambda what: [Image(b"\x89PNG"), "a chart"])
    registry = asked.using(cache())
    first, second = [await registry.execute("asked") for _ in range(2)]
    assert first.data == second.data and asked.calls == 1


async def test_equal_calls_at_the_same_time_run_once() -> None:
    asked = Asked()
    asked.gate.clear()
    registry = asked.using(cache())
    calls = [asyncio.create_task(registry.execute("asked")) for _ in range(5)]
    await until(lambda: asked.calls)
    asked.gate.set()
    results = await asyncio.gather(*calls)
    assert asked.calls == 1
    assert [result.metadata.get("cached") for result in results].count(True) == 4


async def test_those_who_wait_hear_of_a_failure_and_each_has_its_own() -> None:
    asked = Asked(lambda what: ToolcribError("no"))
    asked.gate.clear()
    registry = asked.using(cache())
    calls = [asyncio.create_task(registry.execute("asked")) for _ in range(3)]
    await until(lambda: asked.calls)
    asked.gate.set()
    assert [result.error for result in await asyncio.gather(*calls)] == ["no"] * 3
    assert asked.calls == 1


async def test_a_cancelled_call_leaves_the_others_alone() -> None:
    asked = Asked()
    asked.gate.clear()
    layer = cache()
    registry = asked.using(layer)
    first, *others = [asyncio.create_task(registry.execute("asked")) for _ in range(4)]
    await until(lambda: asked.calls)
    others[0].cancel()  # one who only waits
    first.cancel()  # and the one who makes the call
    await until(lambda: asked.calls == 2)
    asked.gate.set()
    assert [(await call).data for call in others[1:]] == [[None], [None]]
    assert asked.calls == 2
    assert layer.under_way == 0


async def test_who_waits_does_so_within_their_own_time_only() -> None:
    asked = Asked()
    asked.gate.clear()
    registry = asked.using(cache())
    slow = asyncio.create_task(registry.execute("asked"))
    await until(lambda: asked.calls)
    hurried = await registry.execute("asked", timeout_seconds=0.01)
    assert hurried.error_code == "timeout"
    asked.gate.set()
    assert (await slow).success and asked.calls == 1


async def test_a_caller_in_a_hurry_does_not_spoil_it_for_others() -> None:
    asked = Asked()
    asked.gate.clear()
    registry = asked.using(cache())
    hurried = asyncio.create_task(registry.execute("asked", timeout_seconds=0.05))
    await until(lambda: asked.calls)
    patient = asyncio.create_task(registry.execute("asked"))
    assert (await hurried).error_code == "timeout"
    asked.gate.set()
    assert (await patient).success


async def test_a_tool_that_passes_its_own_deadline_is_not_asked_by_all_who_waited() -> None:
    calls = []

    @tool(cacheable=True, timeout_seconds=0.05)
    async def slow() -> None:
        """Never end."""
        calls.append(1)
        await asyncio.Event().wait()

    registry = ToolRegistry([slow], layers=[cache()])
    results = await asyncio.gather(*(registry.execute("slow") for _ in range(5)))
    assert [result.error_code for result in results] == ["timeout"] * 5 and len(calls) == 1


async def test_a_tool_that_asks_itself_does_not_wait_for_itself() -> None:
    depth = []

    @tool(cacheable=True)
    async def inner() -> Any:
        """Ask oneself once."""
        depth.append(1)
        return 1 if len(depth) > 1 else (await registry.execute("inner")).data + 1

    registry = ToolRegistry([inner], layers=[cache()])
    assert (await registry.execute("inner")).data == 2


async def test_a_stream_tells_its_items_from_a_kept_answer_too() -> None:
    calls = []

    @tool(cacheable=True)
    async def numbers() -> AsyncIterator[int]:
        """Count."""
        calls.append(1)
        for number in range(3):
            yield number

    registry = ToolRegistry([numbers], layers=[cache()])
    assert (await registry.execute("numbers")).data == [0, 1, 2]
    for _ in range(2):  # nobody listened to the first, so it does not count for those who listen
        events = [event async for event in registry.stream("numbers")]
        assert [event.item for event in events[:-1]] == [0, 1, 2]
    assert len(calls) == 2
    assert (await registry.execute("numbers")).metadata["cached"]


def test_one_cache_for_several_threads_and_loops() -> None:
    started, go = threading.Event(), threading.Event()
    calls = []

    @tool(cacheable=True)
    def slow() -> int:
        """Wait."""
        calls.append(1)
        started.set()
        go.wait(60)
        return 7

    registry = ToolRegistry([slow], layers=[layer := cache()])
    results: list[ToolResult] = []

    def run() -> None:
        results.append(asyncio.run(registry.execute("slow")))

    threads = [threading.Thread(target=run) for _ in range(4)]
    threads[0].start()
    assert started.wait(60)
    for thread in threads[1:]:
        thread.start()
    go.set()
    for thread in threads:
        thread.join(60)
    assert [result.data for result in results] == [7] * 4 and len(calls) == 1
    assert layer.under_way == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.0, -0.0, 1.0, "", "1", "\ud800"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=4,
)


@given(st.lists(st.tuples(JSON, st.sampled_from(CALLERS)), max_size=12))
def test_with_a_cache_answers_are_as_without(calls: list[tuple[Any, ToolContext]]) -> None:
    @tool(cacheable=True)
    async def echo(context: ToolContext, what: Any = None) -> Any:
        """Say it again."""
        return [json.dumps(what, sort_keys=True), what, context.principal, context.roles, repr(context.values)]

    plain, cached = ToolRegistry([echo]), ToolRegistry([echo], layers=[cache(entries=3)])

    async def both() -> None:
        for what, caller in calls:
            results = [await one.execute("echo", {"what": what}, context=caller) for one in (plain, cached)]
            assert results[0].data == results[1].data and results[0].error == results[1].error

    asyncio.run(both())


@pytest.mark.parametrize("wrong", [{"seconds": 0}, {"entries": -1}, {"bytes": 0}])
def test_wrong_bounds_are_refused_with_their_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        cache(**wrong)


async def test_roles_may_come_as_a_list() -> None:
    asked = Asked()
    registry = asked.using(cache())
    for roles in (["admin"], ("admin",), "admin"):
        assert (await registry.execute("asked", context=ToolContext("ann", roles=roles))).success  # type: ignore[arg-type]
    assert asked.calls == 1


def test_remembered_is_what_keeps_them() -> None:
    kept: Remembered[str, int] = Remembered(2, weight=10)
    kept.put("a", 1, weight=6)
    kept.put("b", 2, weight=6)
    assert (kept.get("a"), kept.get("b")) == (None, 2)

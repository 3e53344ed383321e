"""The planner is exact: on small catalogues it answers as a search through every set of tools does."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.core.errors import InvalidArgumentsError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import check
from toolcrib.stacking.planner import Plan, Stack, plan, rank

NAMES = list("abcdefg")
CAPABILITIES = ["js", "html", "proxy", "store"]
ENTRIES = st.lists(st.sampled_from([*NAMES, "type:x", "type:y", "type:*"]), max_size=2, unique=True).map(tuple)


@st.composite
def catalogues(draw: st.DrawFn) -> list[ToolSpec]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=7, unique=True))
    return [
        ToolSpec(
            name=name,
            description=name,
            tool_type=draw(st.sampled_from(["", "x", "y"])),
            capabilities=draw(st.lists(st.sampled_from(CAPABILITIES), max_size=3, unique=True).map(tuple)),
            compatibilities=draw(ENTRIES),
            incompatible_with=draw(ENTRIES),
            required_config=draw(st.sampled_from([(), (), ("KEY",), ("KEY", "OTHER")])),
        )
        for name in names
    ]


WANTED = st.lists(st.sampled_from(CAPABILITIES), min_size=1, max_size=4, unique=True).map(tuple)


def covers(tools: tuple[ToolSpec, ...], wanted: tuple[str, ...]) -> bool:
    return set(wanted) <= {capability for tool in tools for capability in tool.capabilities}


def in_order(tools: tuple[ToolSpec, ...], wanted: tuple[str, ...]) -> list[str]:
    """The first in the alphabet that has the first capability nobody before it has, and so on."""
    order: list[ToolSpec] = []
    while not covers(tuple(order), wanted):
        uncovered = next(each for each in wanted if not any(each in tool.capabilities for tool in order))
        choices = [tool for tool in tools if tool not in order and uncovered in tool.capabilities]
        order.append(min(choices, key=lambda tool: tool.name))
    return [tool.name for tool in order]


def brute_force(specs: list[ToolSpec], wanted: tuple[str, ...], strict: bool) -> list[list[str]]:
    found = []
    for size in range(1, len(wanted) + 1):
        for tools in combinations(specs, size):
            needed = covers(tools, wanted) and not any(covers(some, wanted) for some in combinations(tools, size - 1))
            if needed and check(tools, strict=strict).compatible:
                found.append((rank(tools), in_order(tools, wanted)))
    return [names for _, names in sorted(found)]


@settings(max_examples=300)
@given(catalogues(), WANTED, st.booleans(), st.integers(1, 6))
def test_plans_equal_brute_force(specs: list[ToolSpec], wanted: tuple[str, ...], strict: bool, limit: int) -> None:
    found = plan(specs, wanted, limit=limit, strict=strict)
    assert [list(stack.names) for stack in found] == brute_force(specs, wanted, strict)[:limit]


@settings(max_examples=200)
@given(catalogues(), WANTED, st.booleans(), st.integers(1, 6), st.sets(st.sampled_from(NAMES)))
def test_what_can_run_here_comes_first_and_then_the_best_of_the_others(
    specs: list[ToolSpec], wanted: tuple[str, ...], strict: bool, limit: int, absent: set[str]
) -> None:
    found = plan(specs, wanted, limit=limit, strict=strict, lacks=lambda spec: ["x"] if spec.name in absent else [])
    ranked = sorted(
        brute_force(specs, wanted, strict),
        key=lambda tools: (not absent.isdisjoint(tools), len(tools), len(absent.intersection(tools))),
    )
    assert [list(stack.names) for stack in found] == ranked[:limit]
    assert [stack.runnable for stack in found] == [absent.isdisjoint(tools) for tools in ranked[:limit]]


def test_what_is_deprecated_comes_last_and_says_what_to_use() -> None:
    old = ToolSpec(name="a", description="d", tool_type="x", capabilities=("c",), deprecated=True, replaced_by="b")
    [best, other] = plan([old, ToolSpec(name="b", description="d", tool_type="x", capabilities=("c",))], ["c"])
    assert (best.names, best.runnable, other.names) == (("b",), True, ("a",))
    assert other.missing == ("'a' is deprecated; use 'b' instead",)


def test_what_is_deprecated_comes_behind_what_only_lacks_a_key() -> None:
    old = ToolSpec(name="a", description="d", capabilities=("c",), deprecated=True)
    keyed = ToolSpec(name="b", description="d", capabilities=("c",), required_config=("KEY",))
    found = plan([old, keyed], ["c"], lacks=lambda spec: ["x"])
    assert [stack.names for stack in found] == [("b",), ("a",)]


@given(catalogues(), WANTED, st.booleans())
def test_stacks_are_compatible_and_cover_what_was_asked(
    specs: list[ToolSpec], wanted: tuple[str, ...], strict: bool
) -> None:
    for stack in plan(specs, wanted, limit=50, strict=strict):
        assert stack.report.compatible
        assert covers(stack.tools, wanted)
        assert set(wanted) == {each for brought in stack.brings.values() for each in brought}


@given(catalogues(), WANTED, st.booleans())
def test_the_nearest_miss_has_as_many_capabilities_as_any_compatible_set(
    specs: list[ToolSpec], wanted: tuple[str, ...], strict: bool
) -> None:
    found = plan(specs, wanted, strict=strict)
    if found:
        assert found.nearest is None
        return
    assert found.nearest is not None
    most = 0
    for size in range(1, len(wanted) + 1):
        for tools in combinations(specs, size):
            if check(tools, strict=strict).compatible:
                most = max(most, sum(any(each in tool.capabilities for tool in tools) for each in wanted))
    assert len(wanted) - len(found.nearest.missing) == most
    assert (found.nearest.stack is None) == (most == 0)
    assert found.nearest.missing
    assert found.nearest.reasons


def tool(name: str, *capabilities: str, **fields: object) -> ToolSpec:
    return ToolSpec.parse({"name": name, "description": name, "capabilities": capabilities, **fields})


SMALL = [
    tool("chrome", "js", tool_type="browser", compatibilities=["type:parser"]),
    tool("api", "js", tool_type="service", required_config=["API_KEY"]),
    tool("soup", "html", tool_type="parser"),
    tool("tree", "html", "xml", tool_type="parser", incompatible_with=["chrome"]),
]


def names(found: Plan) -> list[tuple[str, ...]]:
    return [stack.names for stack in found]


def test_fewest_tools_then_fewest_keys_then_declared_fits_come_first() -> None:
    assert names(plan(SMALL, ["js", "html"])) == [("chrome", "soup"), ("api", "soup"), ("api", "tree")]
    both = tool("both", "js", "html", required_config=["A", "B"])
    assert names(plan([*SMALL, both], ["js", "html"], limit=1)) == [("both",)]


def test_a_stack_tells_its_reasons() -> None:
    stack: Stack = plan(SMALL, ["js", "xml"])[0]
    assert stack.names == ("api", "tree")
    assert stack.required_config == ("API_KEY",)
    assert stack.reasons == (
        "'api' brings js",
        "'tree' brings xml",
        "nothing speaks against 'api' with 'tree'",
        "'api' needs the key 'API_KEY'",
    )


def test_a_stack_says_what_is_missing_to_run_it_here() -> None:
    lacks = {"chrome": ["chrome is not installed"], "soup": ["soup has no brick here"]}
    found = plan(SMALL, ["js", "html"], lacks=lambda spec: lacks.get(spec.name, ()))
    assert names(found) == [("api", "tree"), ("api", "soup"), ("chrome", "soup")]
    assert [stack.runnable for stack in found] == [True, False, False]
    assert found[0].missing == ()
    assert found[2].missing == ("chrome is not installed", "soup has no brick here")
    assert found[2].reasons[-2:] == (
        "cannot run here: chrome is not installed",
        "cannot run here: soup has no brick here",
    )


def test_a_plan_without_tools_says_how_to_get_some() -> None:
    found = plan([], ["js"])
    assert found.nearest is not None
    assert found.nearest.missing == ("js",)
    assert "'tools add --samples'" in found.nearest.reasons[0]


def test_the_nearest_miss_says_what_stands_in_the_way() -> None:
    found = plan([spec for spec in SMALL if spec.name != "api"], ["js", "xml", "htlm"])
    assert not found
    assert found.nearest is not None
    assert found.nearest.stack is not None
    assert found.nearest.stack.names == ("chrome",)
    assert found.nearest.missing == ("xml", "htlm")
    assert found.nearest.reasons == (
        "'tree' would bring xml, but 'tree' refuses 'chrome'",
        "no tool offers 'htlm'; did you mean 'html'?",
    )


def test_the_nearest_miss_of_many_capabilities_is_found_soon() -> None:
    specs = [tool(f"t{number}", f"c{number}", tool_type="same" if number < 6 else "") for number in range(14)]
    found = plan(specs, [f"c{number}" for number in range(14)])
    assert not found
    assert found.nearest is not None
    assert found.nearest.missing == ("c1", "c2", "c3", "c4", "c5")


def test_wanting_nothing_is_refused() -> None:
    with pytest.raises(InvalidArgumentsError, match="at least one"):
        plan(SMALL, [])
    with pytest.raises(InvalidArgumentsError, match="limit"):
        plan(SMALL, ["js"], limit=0)

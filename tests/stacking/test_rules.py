"""One set of rules, four readers: verdict, store filter, planner and find say the same of any tools."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.stacking import compatible_filter
from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import Rule, check, judge
from toolcrib.stacking import StackingIndex, plan

NAMES = list("abcdef")
ENTRIES = st.lists(st.sampled_from([*NAMES, "type:x", "type:y", "type:*", "type:", "gone"]), max_size=3).map(tuple)
TYPES = ["", "x", "y", "*"]


@st.composite
def catalogues(draw: st.DrawFn) -> list[ToolSpec]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    return [
        ToolSpec(
            name=name,
            description=name,
            tool_type=draw(st.sampled_from(TYPES)),
            capabilities=(f"can-{name}",),
            compatibilities=draw(ENTRIES),
            incompatible_with=draw(ENTRIES),
        )
        for name in names
    ]


@settings(max_examples=150)
@given(catalogues(), st.booleans())
def test_verdict_filter_and_planner_agree_on_every_pair(specs: list[ToolSpec], strict: bool) -> None:
    ordered = sorted(specs, key=lambda spec: spec.name)
    index = StackingIndex(specs)
    for (at, one), (other_at, other) in permutations(enumerate(ordered), 2):
        verdict = judge(one, other, strict=strict)
        assert compatible_filter(one, strict=strict).matches(other.to_dict()) is verdict.compatible
        accepted, compatible = index.relate(at, strict=strict)
        assert bool(compatible >> other_at & 1) is verdict.compatible
        assert bool(accepted >> other_at & 1) is (verdict.rule is Rule.ACCEPTED)
        assert bool(plan([one, other], [*one.capabilities, *other.capabilities], strict=strict)) is verdict.compatible


@given(catalogues(), st.sampled_from([None, *TYPES, "z"]), st.booleans())
def test_find_in_memory_and_in_a_store_is_what_the_verdicts_say(
    specs: list[ToolSpec], target_type: str | None, strict: bool
) -> None:
    index = StackingIndex(specs)
    catalogue = Catalogue(MemoryStore())
    catalogue.publish_many(specs)
    for one in specs:
        judged = sorted(
            other.name
            for other in specs
            if other.name != one.name
            and target_type in (None, other.tool_type)
            and judge(one, other, strict=strict).compatible
        )
        found = index.find(one.name, target_type=target_type, strict=strict)
        assert [spec.name for spec in found] == judged
        assert [spec.name for spec in catalogue.compatible_with(one.name, target_type, strict=strict)] == judged


@given(catalogues(), st.booleans())
def test_every_reason_names_both_tools(specs: list[ToolSpec], strict: bool) -> None:
    for verdict in check(specs, strict=strict).verdicts:
        assert repr(verdict.left) in verdict.reason
        assert repr(verdict.right) in verdict.reason


def test_many_tools_make_long_sets() -> None:
    specs = [ToolSpec(name=f"t{number:04}", description="", tool_type=f"type{number % 7}") for number in range(3000)]
    index = StackingIndex(reversed(specs))
    found = index.find("t0010")
    assert [spec.name for spec in found] == [spec.name for spec in specs if spec.tool_type != "type3"]
    assert len(index.find("t0010", target_type="type2")) == len([one for one in specs if one.tool_type == "type2"])


def test_an_unknown_name_is_not_found() -> None:
    index = StackingIndex([ToolSpec(name="playwright", description="x")])
    with pytest.raises(ToolNotFoundError, match="did you mean 'playwright'"):
        index.find("playwrite")
    assert "playwright" in index
    assert [spec.name for spec in index] == ["playwright"]
    assert len(index) == 1

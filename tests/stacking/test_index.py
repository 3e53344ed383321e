"""The index answers as the rules do, for any tools, also after changes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import judge
from toolcrib.stacking.index import CompatibilityIndex, find_compatible

NAMES = list("abcdef")
ENTRIES = st.lists(st.sampled_from([*NAMES, "type:x", "type:y", "type:*", "type:", "gone"]), max_size=3).map(tuple)


@st.composite
def catalogues(draw: st.DrawFn) -> list[ToolSpec]:
    names = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=6, unique=True))
    return [
        ToolSpec(
            name=name,
            description=name,
            tool_type=draw(st.sampled_from(["", "x", "y"])),
            compatibilities=draw(ENTRIES),
            incompatible_with=draw(ENTRIES),
        )
        for name in names
    ]


def by_scan(name: str, specs: list[ToolSpec], target_type: str | None, strict: bool) -> list[str]:
    one = next(spec for spec in specs if spec.name == name)
    return sorted(
        other.name
        for other in specs
        if other.name != name
        and (target_type is None or other.tool_type == target_type)
        and judge(one, other, strict=strict).compatible
    )


@given(catalogues(), st.sampled_from([None, "", "x", "y", "z"]), st.booleans())
def test_the_index_finds_what_a_scan_of_all_pairs_finds(
    specs: list[ToolSpec], target_type: str | None, strict: bool
) -> None:
    index = CompatibilityIndex(specs)
    for spec in specs:
        found = find_compatible(spec.name, index, target_type, strict=strict)
        assert [one.name for one in found] == by_scan(spec.name, specs, target_type, strict)


@given(catalogues(), catalogues(), st.booleans())
def test_an_index_that_changed_answers_as_one_made_anew(
    before: list[ToolSpec], after: list[ToolSpec], strict: bool
) -> None:
    index = CompatibilityIndex(before)
    for spec in before:
        if spec.name not in {one.name for one in after}:
            index.remove(spec.name)
    for spec in after:
        index.add(spec)
    assert len(index) == len(after)
    for spec in after:
        assert [one.name for one in index.find(spec.name, strict=strict)] == by_scan(spec.name, after, None, strict)


def test_an_unknown_name_is_not_found() -> None:
    index = CompatibilityIndex([ToolSpec(name="playwright", description="x")])
    with pytest.raises(ToolNotFoundError, match="did you mean 'playwright'"):
        index.find("playwrite")
    index.remove("nobody")
    assert "playwright" in index

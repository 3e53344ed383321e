"""The Lego rules as a filter mean what the rules mean."""

from __future__ import annotations

import time
from pathlib import Path

import hypothesis
from hypothesis import strategies as st

from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.bootstrap import open_catalogue
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.stacking import partners_of
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import judge
from toolcrib.settings import Settings

names = st.sampled_from(["a", "b", "c", "d"])
types = st.sampled_from(["", "x", "y"])
mentions = st.lists(names | st.sampled_from(["type:x", "type:y", "type:*", "type:"]), max_size=2).map(tuple)


@st.composite
def stacks(draw: st.DrawFn) -> list[ToolSpec]:
    return [
        ToolSpec(
            name=name,
            description="",
            tool_type=draw(types),
            compatibilities=draw(mentions),
            incompatible_with=draw(mentions),
        )
        for name in ["a", "b", "c", "d"]
    ]


@hypothesis.settings(max_examples=300)
@hypothesis.given(stacks(), st.booleans(), st.none() | st.sampled_from(["x", "y"]))
def test_the_filter_finds_the_partners_that_the_rules_allow(
    tools: list[ToolSpec], strict: bool, target_type: str | None
) -> None:
    first, *others = tools
    where = partners_of(first, target_type, strict=strict)
    assert not where.matches(first.to_dict())
    for other in others:
        allowed = judge(first, other, strict=strict).compatible and target_type in (None, other.tool_type)
        assert where.matches(other.to_dict()) is allowed, other


def test_partners_come_from_every_store_alike(catalogue: Catalogue) -> None:
    reference = Catalogue(MemoryStore())
    tools = [
        ToolSpec(
            name=f"t{number}", description="", tool_type="xyz"[number % 3],
            compatibilities=("type:x",) if number % 4 == 0 else (),
            incompatible_with=("t1", "type:z") if number % 5 == 0 else (),
        )
        for number in range(20)
    ]  # fmt: skip
    for one in (catalogue, reference):
        one.publish_many(tools)
    for name in ("t0", "t1", "t5"):
        for strict in (False, True):
            found = [spec.name for spec in catalogue.compatible_with(name, strict=strict)]
            assert found == [spec.name for spec in reference.compatible_with(name, strict=strict)]


def test_a_few_partners_among_many_are_found_quickly(tmp_path: Path) -> None:
    given = Settings(data_dir=str(tmp_path), environ={})
    catalogue = open_catalogue(f"sqlite://{tmp_path}/tools.db", given)
    catalogue.publish_many(
        ToolSpec(name=f"tool-{number:05}", description="d", tool_type=f"type-{number % 100}") for number in range(3000)
    )
    started = time.perf_counter()
    assert len(catalogue.compatible_with("tool-00000", "type-7")) == 30
    seconds = time.perf_counter() - started
    catalogue.close()
    assert seconds < 0.5

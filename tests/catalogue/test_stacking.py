"""Compatible tools, found by any store alike. The filter's meaning is held in tests/stacking/test_rules.py."""

from __future__ import annotations

from pathlib import Path

from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.bootstrap import open_catalogue
from toolcrib.catalogue import Catalogue
from toolcrib.core.spec import ToolSpec
from toolcrib.settings import Settings


def test_compatible_tools_come_from_every_store_alike(catalogue: Catalogue) -> None:
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


def test_a_few_compatible_tools_among_many_are_found(tmp_path: Path) -> None:
    given = Settings(data_dir=str(tmp_path), environ={})
    catalogue = open_catalogue(f"sqlite:///{tmp_path}/tools.db", given)
    catalogue.publish_many(
        ToolSpec(name=f"tool-{number:05}", description="d", tool_type=f"type-{number % 100}") for number in range(3000)
    )
    assert len(catalogue.compatible_with("tool-00000", "type-7")) == 30
    catalogue.close()


def test_lists_longer_than_one_question_may_be_are_asked_in_parts() -> None:
    catalogue = Catalogue(MemoryStore())
    refused = tuple(f"gone-{number}" for number in range(2500))
    catalogue.publish_many(
        [
            ToolSpec(name="hermit", description="", incompatible_with=(*refused, "other")),
            ToolSpec(name="other", description=""),
            ToolSpec(name="third", description=""),
        ]
    )
    assert [spec.name for spec in catalogue.compatible_with("hermit")] == ["third"]

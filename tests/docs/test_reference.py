"""docs/reference and the index of decisions are made; what is committed must be what would be made now."""

import importlib.util
import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def build_docs():
    spec = importlib.util.spec_from_file_location("build_docs", ROOT / "scripts/build_docs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAGES = build_docs().PAGES


@pytest.mark.parametrize("name", sorted(PAGES))
def test_the_reference_is_not_stale(name: str):
    committed = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert committed == PAGES[name](), f"docs/{name} is stale; run: make docs"


def test_there_is_no_page_that_nobody_makes():
    folder = ROOT / "docs"
    there = {page.relative_to(folder).as_posix() for page in (folder / "reference").rglob("*.md")}
    assert there == {name for name in PAGES if name.startswith("reference/")}


def test_every_brick_has_a_page_with_every_setting_and_an_example_that_is_right():
    from toolcrib.toolsets.scraping import BRICKS

    index = PAGES["reference/bricks.md"]()
    for name, brick in BRICKS.items():
        assert f"(bricks/{name}.md)" in index
        page = PAGES[f"reference/bricks/{name}.md"]()
        schema = brick.Config.model_json_schema()
        for model in (schema, *schema.get("$defs", {}).values()):
            for setting in model.get("properties", ()):
                assert re.search(rf"^\| `{setting}` \| \S.*\| \S.*\| \S.* \|$", page, re.MULTILINE), (name, setting)
        for step in re.findall(r"```json\n(.+)\n```", page):
            written = json.loads(step)
            assert brick(written["config"]).spec.name == written["tool"]
        assert ("```json" in page) is not brick.spec.deprecated


def test_every_setting_error_and_field_is_in_the_reference():
    from toolcrib.core import errors
    from toolcrib.core.spec import ToolSpec
    from toolcrib.settings import describe

    reference = {name: build() for name, build in PAGES.items()}
    for setting in describe():
        assert f"`{setting.variable}`" in reference["reference/settings.md"]
        assert setting.description
    for field in ToolSpec.model_fields:
        assert re.search(rf"^\| `{field}` \|.*\| \S.* \|$", reference["reference/toolspec.md"], re.MULTILINE), field
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, errors.ToolcribError):
            assert f"`{name}`" in reference["reference/errors.md"]

"""docs/reference and the index of decisions are made; what is committed must be what would be made now."""

import importlib.util
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
    there = {f"reference/{page.name}" for page in (ROOT / "docs/reference").glob("*.md")}
    assert there == {name for name in PAGES if name.startswith("reference/")}


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

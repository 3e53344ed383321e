"""The pages about the house name files that are there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs/architecture.md", ROOT / "docs/glossary.md"]
_NAMED = re.compile(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_file_and_folder_that_is_named_exists(page: Path) -> None:
    named = set(_NAMED.findall(page.read_text(encoding="utf-8")))
    assert len(named) > 20
    places = [ROOT / "src/toolcrib", ROOT]
    assert [name for name in sorted(named) if not any((place / name).exists() for place in places)] == []

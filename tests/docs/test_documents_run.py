"""Everything the documentation shows is run here as a reader would run it, and must come out as it says."""

import re
from pathlib import Path

import pytest
from tests.docs.documents import agrees, documents
from tests.docs.reader import follow
from tests.support.processes import running
from tests.support.waiting import wait_until

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", documents(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_does_what_it_says(page: Path, tmp_path: Path):
    follow(page, tmp_path)


LINK = re.compile(r"\]\((?!https?://|mailto:|#)([^)#\s]+)")


@pytest.mark.parametrize("page", documents(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_links_between_pages_lead_somewhere(page: Path):
    broken = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert broken == []


def test_output_is_compared_with_room_for_what_changes():
    assert agrees("Added ...", "Added tool 'x'.\n")
    assert agrees("a\n...\nz", "a\nb\nc\nz")
    assert agrees("a\n...\nz", "a\nz")
    assert not agrees("a\n...\nz", "a\nb\nc")
    assert not agrees("Compatible", "Non compatible")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("```console\n$ python -c 'raise SystemExit(3)'\n```\n", "ended with 3"),
        ("```console\n$ python -c 'raise SystemExit(3)'\n...\n```\n", "the last command failed"),
        ("```python\nprint(1)\n```\n```text\n2\n```\n", "printed was"),
    ],
)
def test_a_block_that_fails_fails_the_page(text: str, complaint: str, tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(text, encoding="utf-8")
    with pytest.raises(AssertionError, match=complaint):
        follow(page, tmp_path)


PAGE_THAT_LEAVES_ITS_SHOP_OPEN = """
```console
$ python -m toolcrib.toolsets.scraping.practice --background
serving http://127.0.0.1:8765/; end it with --stop
```
```python
from pathlib import Path
Path("shop").write_text("http://127.0.0.1:8765/")
raise LookupError
```
"""


def test_a_page_has_a_shop_of_its_own_which_closes_if_the_page_fails(tmp_path: Path):
    page = tmp_path / "page.md"
    page.write_text(PAGE_THAT_LEAVES_ITS_SHOP_OPEN, encoding="utf-8")
    with pytest.raises(LookupError):
        follow(page, tmp_path)
    port = (tmp_path / "shop").read_text(encoding="utf-8").rstrip("/").rpartition(":")[2]
    assert port != "8765"
    wait_until(lambda: not running(f"practice --hidden --port {port}"))


def test_every_guide_is_in_the_index():
    index = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    missing = [page.name for page in (ROOT / "docs/guides").glob("*.md") if f"guides/{page.name}" not in index]
    assert missing == []

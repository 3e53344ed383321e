"""Bricks of other packages are found by their entry points, and loaded only when they are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stacking.bricks import BRICKS
from toolcrib.core.errors import ToolNotFoundError, ToolValidationError
from toolcrib.stacking import InstalledBricks, Pipeline

MODULE = """
from toolcrib import ToolSpec
from toolcrib.stacking import Brick, Page, Request

class Installed(Brick):
    spec = ToolSpec(name="installed", description="from elsewhere", tool_type="http_client")
    takes = Request
    gives = Page

    async def process(self, item, context):
        return [Page(item, item.url, 200, b"hello there")]

not_a_brick = 42
"""


@pytest.fixture
def _package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bricks_from_elsewhere.py").write_text(MODULE)
    about = tmp_path / "bricks_from_elsewhere-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: bricks-from-elsewhere\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[toolcrib.bricks]\n"
        "installed = bricks_from_elsewhere:Installed\n"
        "fetch = bricks_from_elsewhere:Installed\n"
        "wrong = bricks_from_elsewhere:not_a_brick\n"
        "broken = no_such_module_anywhere:Brick\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("_package")
async def test_an_installed_brick_stacks_like_any_other() -> None:
    bricks = InstalledBricks(BRICKS)
    assert set(bricks) == {*BRICKS, "installed", "wrong", "broken"}
    assert len(bricks) == len(BRICKS) + 3
    items = await Pipeline.of("installed", "read", bricks=bricks).collect(["u"])
    assert len(items) == 2


@pytest.mark.usefixtures("_package")
def test_ours_come_first_and_what_is_no_brick_is_refused() -> None:
    bricks = InstalledBricks(BRICKS)
    assert bricks["fetch"] is BRICKS["fetch"]
    with pytest.raises(ToolValidationError, match="'wrong', is not a brick class"):
        Pipeline.of("wrong", bricks=bricks)
    with pytest.raises(ToolNotFoundError, match="did you mean 'installed'"):
        Pipeline.of("instaled", bricks=bricks)

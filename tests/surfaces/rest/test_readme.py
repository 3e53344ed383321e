"""The README's lines for a newcomer, run as they stand, on SQLite and on MongoDB."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.docs.documents import blocks
from tests.surfaces.http.running import RunningService

pytestmark = pytest.mark.xdist_group("service-process")

ROOT = Path(__file__).parents[3]


def commands() -> list[str]:
    """The console block that names this file."""
    block = next(block for block in blocks((ROOT / "README.md").read_text()) if "test_readme" in block.detail)
    joined = block.text.replace("\\\n", " ")
    return [line.removeprefix("$ ") for line in joined.splitlines() if line.startswith("$ ")]


@pytest.fixture(params=["sqlite", "mongo"])
def service(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    settings = {"store": request.getfixturevalue("mongo_database_url")} if request.param == "mongo" else {}
    with RunningService(tmp_path, "--sample", **settings) as running:
        yield running


@pytest.mark.skipif(shutil.which("curl") is None, reason="the README uses curl")
def test_a_newcomer_follows_the_readme(service: RunningService, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    answers = []
    for command in commands():
        done = subprocess.run(
            ["sh", "-c", command.replace("http://127.0.0.1:8000", service.url).replace("curl ", "curl -sS ")],
            cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (command, done.stderr)
        answers.append((command, done.stdout))
    uploaded = next(text for command, text in answers if "/tools/upload" in command)
    assert json.loads(uploaded) == {"message": "Tool uploaded successfully", "tool_id": "word-count"}
    queries = [json.loads(text) for command, text in answers if "/tools/query/" in command]
    assert len(queries) == 3
    for found in queries:
        assert "word-count" in [entry["tool_id"] for entry in found]
    graph = next(json.loads(text) for command, text in answers if "/graphql" in command)
    manuals = {tool["tool_id"]: tool["tool_man_page_doc"] for tool in graph["data"]["tools"]}
    assert manuals["word-count"].startswith("# word-count")
    ran = next(json.loads(text) for command, text in answers if "/run" in command)
    assert ran["success"], ran
    assert ran["data"]["words"] == 6

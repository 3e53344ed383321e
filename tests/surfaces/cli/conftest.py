"""Commands run in this process for speed; what needs a real process is run as one."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from toolcrib.surfaces.cli import run

BIN = Path(sys.executable).parent


@dataclass(frozen=True)
class Answer:
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Answer]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, which is the folder it is in."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str]) -> Cli:
    """``cli("tools", "list")`` is ``toolcrib tools list``; ``program="brain"`` is the other one."""

    def call(*arguments: str, program: str = "toolcrib") -> Answer:
        capfd.readouterr()
        status = run(program, arguments)
        out, err = capfd.readouterr()
        return Answer(status, out, err)

    return call


@pytest.fixture
def shell() -> Cli:
    """A real process: ``shell("brain", "tools", "list")``."""

    def call(program: str, *arguments: str, **options: Any) -> Answer:
        done = subprocess.run(
            [BIN / program, *arguments], check=False, capture_output=True, text=True, timeout=60, **options
        )
        return Answer(done.returncode, done.stdout, done.stderr)

    return call


def one_sentence(answer: Answer, program: str = "toolcrib") -> str:
    """The error of an answer: exactly one line, with the program's name and no traceback."""
    lines = answer.err.splitlines()
    assert len(lines) == 1, answer.err
    assert lines[0].startswith(f"{program}: ")
    assert "Traceback" not in answer.err
    return lines[0].removeprefix(f"{program}: ")

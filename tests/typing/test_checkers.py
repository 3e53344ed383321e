"""mypy --strict and pyright, as a user runs them: what is right passes, and every mistake is caught."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RIGHT, MISTAKES = HERE / "user_code.py", HERE / "user_mistakes.py"

Check = Callable[[Path, Path], set[int]]


def mypy(path: Path, cache: Path) -> set[int]:
    """The lines that it complains about."""
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={cache}", "--no-pretty"]
    done = subprocess.run([*command, str(path)], check=False, capture_output=True, text=True, cwd=cache, timeout=250)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {int(line) for line in re.findall(rf"{path.name}:(\d+): error", done.stdout)}


def pyright(path: Path, cache: Path) -> set[int]:
    shutil.copy(path, cache)
    (cache / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(cache)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=cache, timeout=250)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 1
    return {each["range"]["start"]["line"] + 1 for each in report["generalDiagnostics"] if each["severity"] == "error"}


@pytest.mark.parametrize("check", [mypy, pyright])
def test_right_code_passes(check: Check, tmp_path: Path) -> None:
    assert check(RIGHT, tmp_path) == set()


@pytest.mark.parametrize("check", [mypy, pyright])
def test_every_mistake_is_caught(check: Check, tmp_path: Path) -> None:
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    mistakes = {number for number, line in enumerate(lines, 1) if "# mistake: " in line}
    assert len(mistakes) == 20
    assert check(MISTAKES, tmp_path) == mistakes

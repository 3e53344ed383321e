"""mypy --strict and pyright, as a user runs them: what is right passes, and every mistake is caught."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
RIGHT, MISTAKES = HERE / "user_code.py", HERE / "user_mistakes.py"

STRICT = """
[mypy]
strict = true
[mypy-agents.*,langchain_core.*,llama_index.*,openai.*,pydantic_ai.*]
follow_imports = skip
"""
"""As if the frameworks were not installed: to read their types takes ten times as long as to read ours."""

Complaints = dict[str, set[int]]
"""The lines that a checker complains about, by the name of the file."""
Check = Callable[[Path], Complaints]


def mypy(folder: Path) -> Complaints:
    config = folder / "mypy.ini"
    config.write_text(STRICT, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", f"--config-file={config}", f"--cache-dir={folder}", "--no-pretty"]
    files = [str(RIGHT), str(MISTAKES)]
    done = subprocess.run([*command, *files], check=False, capture_output=True, text=True, cwd=folder, timeout=250)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return by_file((path, int(line)) for path, line in re.findall(r"^(.+):(\d+): error", done.stdout, re.MULTILINE))


def pyright(folder: Path) -> Complaints:
    for path in (RIGHT, MISTAKES):
        shutil.copy(path, folder)
    (folder / "pyrightconfig.json").write_text('{"typeCheckingMode": "strict"}', encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson", "-p", str(folder)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=folder, timeout=250)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 2
    errors = [each for each in report["generalDiagnostics"] if each["severity"] == "error"]
    return by_file((each["file"], each["range"]["start"]["line"] + 1) for each in errors)


def by_file(found: Iterable[tuple[str, int]]) -> Complaints:
    complaints: Complaints = {}
    for path, line in found:
        complaints.setdefault(Path(path).name, set()).add(line)
    return complaints


@pytest.mark.parametrize("check", [mypy, pyright])
def test_right_code_passes_and_every_mistake_is_caught(check: Check, tmp_path: Path) -> None:
    lines = MISTAKES.read_text(encoding="utf-8").splitlines()
    mistakes = {number for number, line in enumerate(lines, 1) if "# mistake: " in line}
    assert len(mistakes) == 20
    assert check(tmp_path) == {MISTAKES.name: mistakes}

"""What surrounds the package: the lists of pinned packages, the words for installing, the commands that measure."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.documents import documents

ROOT = Path(__file__).parents[1]
LISTS = ["constraints.txt", "constraints-run.txt", "constraints-bench.txt"]
_PIN = re.compile(r"^([a-z0-9._-]+)==(\S+)", re.MULTILINE)
_PUBLISHED = re.compile(r"pip install '?toolcrib")


def pins(name: str) -> set[tuple[str, str]]:
    return set(_PIN.findall((ROOT / name).read_text(encoding="utf-8")))


def test_the_service_needs_a_part_of_what_the_tests_need() -> None:
    service, everything = pins("constraints-run.txt"), pins("constraints.txt")
    assert service < everything
    assert not {"playwright", "pyarrow", "pytest", "mypy"} & {name for name, _ in service}


@pytest.mark.parametrize("name", LISTS)
def test_every_pin_has_a_hash_and_no_list_names_an_index(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert len(re.findall(r"^\S+==[^\n]* \\\n    --hash=sha256:", text, re.MULTILINE)) == len(_PIN.findall(text))
    assert "://" not in text


@pytest.mark.parametrize("page", documents(ROOT), ids=lambda page: str(page.relative_to(ROOT)))
def test_no_page_installs_toolcrib_as_if_it_were_published(page: Path) -> None:
    assert not _PUBLISHED.search(page.read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("command", "printed"), [("measures", ["modules", "Any"]), ("walks", ["upload: 200", "check-compat: 200"])]
)
def test_a_measuring_command_measures(command: str, printed: list[str]) -> None:
    script = [sys.executable, str(ROOT / "scripts" / command)]
    done = subprocess.run(script, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 0, done.stderr
    assert [words for words in printed if not re.search(f"^{words}", done.stdout, re.MULTILINE)] == []


@pytest.mark.parametrize("home", [True, False])
def test_another_python_is_found_and_tested_also_without_a_home(home: bool, tmp_path: Path) -> None:
    """The suite is stood in for by a word: this is about the Pythons that are chosen."""
    programs = {
        ".venv/bin/python": "echo 3.11",
        "bin/python3.99": "echo 3.99",
        "scripts/install": "mkdir -p $1/bin; cp scripts/suite $1/bin/pytest",
        "scripts/suite": "echo tested",
    }
    for name, text in programs.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    shutil.copy(ROOT / "scripts/pythons", tmp_path / "scripts")
    classifiers = [f'"Programming Language :: Python :: {version}"\n' for version in ("3.11", "3.98", "3.99")]
    (tmp_path / "pyproject.toml").write_text("".join(classifiers), encoding="utf-8")
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"} | ({"HOME": str(tmp_path)} if home else {})
    done = subprocess.run(
        [tmp_path / "scripts/pythons"], env=environment, capture_output=True, text=True, timeout=60, check=True
    )
    absent, found, tested = done.stdout.splitlines()
    assert absent == "pythons: no Python 3.98 on this machine; skipped"
    assert found == "pythons: 3.99, python3.99"
    assert tested == "tested"


LAW = """
from hypothesis import given, strategies

@given(strategies.integers())
def test_law(number):
    assert number < 99
"""


def test_a_drawn_order_and_a_new_example_can_be_repeated(tmp_path: Path) -> None:
    """Of a law that fails now and then: the order is printed, and how to have the same example."""
    (tmp_path / "test_law.py").write_text(LAW, encoding="utf-8")
    options = ["-p", "tests.conftest", "--rootdir", str(tmp_path), "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, str(tmp_path)],
        env={**os.environ, "TEST_ORDER": "4711", "HYPOTHESIS_PROFILE": "explore"},
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert "TEST_ORDER=4711" in done.stdout
    assert "@reproduce_failure" in done.stdout

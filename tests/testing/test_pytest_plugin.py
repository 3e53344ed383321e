"""The pytest plugin, in a pytest of its own: as users have it, found by its entry point."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

import toolcrib
import toolcrib.testing

ROOT = Path(__file__).parents[2]
TOOLS = '''
from toolcrib import SafetyLevel, ToolRegistry, tool

@tool(examples=[{"input": {"a": 1, "b": 2}, "output": 3}, {"input": {"a": 1}, "output": 7, "description": "one more"}])
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b

@tool(safety_level=SafetyLevel.DANGEROUS, examples=[{"input": {}, "output": "gone"}])
async def wipe() -> str:
    """Wipe."""
    return "gone"

@tool(examples=[{"input": {}, "output": 0.3}])
async def third() -> float:
    """Nearly a third."""
    return 0.1 + 0.2

registry = ToolRegistry([third])
'''
Pytest = Callable[..., tuple[int, str]]
_SLOW_TO_LOAD = ("-p", "no:langsmith_plugin", "-p", "no:schemathesis")


@pytest.fixture
def pytest_there(tmp_path: Path) -> Pytest:
    """Runs pytest in a folder of ``tmp_path``; its exit status and what it printed."""
    installed = tmp_path / "site" / "plugin_of_toolcrib-1.0.dist-info"
    installed.mkdir(parents=True)
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"][
        "pytest11"
    ]
    entries = "\n".join(f"{name} = {value}" for name, value in declared.items())
    (installed / "entry_points.txt").write_text(f"[pytest11]\n{entries}\n")
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin_of_toolcrib\nVersion: 1.0\n")
    (tmp_path / "my_tools.py").write_text(TOOLS)
    path = os.pathsep.join([str(tmp_path / "site"), str(Path(toolcrib.__file__).parents[1])])
    left_out = {"PYTEST_ADDOPTS", "PYTEST_PLUGINS", "PYTEST_DISABLE_PLUGIN_AUTOLOAD"}
    left_out |= {name for name in os.environ if name.startswith("PYTEST_XDIST")}

    def run(*arguments: str, ini: str = "", folder: str = ".") -> tuple[int, str]:
        (tmp_path / "pytest.ini").write_text(
            f"[pytest]\npythonpath = .\nasyncio_default_fixture_loop_scope = function\n{ini}"
        )
        environment = {name: value for name, value in os.environ.items() if name not in left_out} | {"PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-W", "error", *_SLOW_TO_LOAD, *arguments],
            check=False, capture_output=True, text=True, cwd=tmp_path / folder, env=environment,
        )  # fmt: skip
        return done.returncode, done.stdout + done.stderr

    return run


def test_examples_are_items_that_pass_fail_and_are_skipped(pytest_there: Pytest) -> None:
    status, out = pytest_there("--toolcrib-examples", "my_tools", "-v", "-rs")
    assert status == 1
    assert "collected 4 items" in out
    assert "my_tools::add[1] PASSED" in out and "my_tools::add[2] FAILED" in out
    assert "my_tools::wipe[1] SKIPPED" in out and "above the allowed 'high'" in out
    assert "example 2 of 'add': one more\n  add(a=1)\n7 is expected, 2 came" in out
    assert "0.3 is expected, 0.30000000000000004 came" in out
    assert "1 passed, 1 skipped" in out.replace("2 failed, ", "")


def test_one_registry_one_file_and_what_is_allowed(pytest_there: Pytest) -> None:
    ini = "toolcrib_tolerance = 1e-9"
    assert pytest_there("--toolcrib-examples", "my_tools:registry", ini=ini)[0] == 0
    status, out = pytest_there("--toolcrib-examples=my_tools.py", "-k", "wipe", "--toolcrib-allow", "wipe", "-q")
    assert status == 0 and "1 passed, 3 deselected" in out
    status, out = pytest_there("--toolcrib-examples=my_tools.py", "-k", "wipe", "-q", ini="toolcrib_allow = wipe")
    assert status == 0 and "1 passed" in out


def test_the_ini_file_names_tools_for_runs_of_everything(pytest_there: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_one.py").write_text("def test_one(): pass")
    ini = "toolcrib_tools = my_tools:registry\ntoolcrib_tolerance = 1e-9\n"
    status, out = pytest_there("-q", ini=ini)
    assert status == 0 and "2 passed" in out
    status, out = pytest_there("-q", "test_one.py", ini=ini)
    assert status == 0 and "1 passed" in out, "who names a file has asked for that file"
    status, out = pytest_there("-q", ini=ini + "addopts = -n 2\n")
    assert status == 0 and "2 passed" in out


def test_what_the_ini_file_names_is_beside_it(pytest_there: Pytest, tmp_path: Path) -> None:
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "test_one.py").write_text("def test_one(): pass")
    (tmp_path / "below" / "here.py").write_text(TOOLS)
    ini = "toolcrib_tools =\n  my_tools:registry\n  my_tools.py:third\ntoolcrib_tolerance = 1e-9\n"
    status, out = pytest_there("-q", "--toolcrib-examples=here.py:third", ini=ini, folder="below")
    assert status == 0 and "4 passed" in out


def test_those_that_failed_last_run_again_alone(pytest_there: Pytest) -> None:
    assert "2 failed, 1 passed" in pytest_there("--toolcrib-examples=my_tools")[1]
    status, out = pytest_there("--toolcrib-examples=my_tools", "--last-failed")
    assert status == 1 and "rerun previous 2 failures" in out and "2 failed, 2 deselected" in out


def test_a_module_that_is_not_there_is_one_sentence(pytest_there: Pytest) -> None:
    status, out = pytest_there("--toolcrib-examples", "my_tolls")
    assert status == 2
    assert "'my_tolls' cannot be imported: ModuleNotFoundError: No module named 'my_tolls'" in out
    assert "Traceback" not in out and "INTERNALERROR" not in out
    status, out = pytest_there("--toolcrib-examples", "my_tools", ini="toolcrib_tolerance = little\n")
    assert status == 2 and "a tolerance is a number from 0, such as 1e-9, not 'little'" in out


FIXTURES = """
import asyncio
from toolcrib.testing import assert_calls, call
from my_tools import add
from toolcrib import ToolRegistry

def test_recorded(scripted_model, record_calls):
    model = scripted_model([call("add", a=1), "Done."])
    recorder = record_calls(ToolRegistry([add]), answers={"add": 9})

    async def agent():
        messages = []
        while True:
            message = await model(messages, recorder.definitions())
            messages.append(message)
            answers = await recorder.execute_calls(message)
            if not answers:
                return message["content"]
            messages += answers

    assert asyncio.run(agent()) == "Done."
    assert_calls(recorder, [call("add", a=1)])
    assert model.requests[-1].answers == {"call_1": "9"}

def test_left_over(scripted_model):
    scripted_model(["Never said."])

def test_fails_before(scripted_model):
    scripted_model(["Never said."])
    assert False, "the cause"

def test_different(record_calls):
    recorder = record_calls(ToolRegistry([add]))
    recorder.execute_sync("add", {"a": 1})
    assert_calls(recorder, [call("add", a=2)])
"""


def test_the_fixtures(pytest_there: Pytest, tmp_path: Path) -> None:
    (tmp_path / "test_agent.py").write_text(FIXTURES)
    status, out = pytest_there()
    assert status == 1
    assert "2 failed, 2 passed, 1 error" in out, "who has failed already is not told of what is left over"
    assert "turns left: 1 of 1>: the test ended before the model had said all of it" in out
    assert "a: 2 is expected, 1 came" in out
    assert "expecting.py" not in out, "a failure shows the test, not our code"


def test_every_public_name_is_there() -> None:
    for name in toolcrib.testing.__all__:
        assert getattr(toolcrib.testing, name) is not None
        assert name in dir(toolcrib.testing)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = toolcrib.testing.nothing


NEW = """
import sys, pytest
before = set(sys.modules)
import toolcrib.testing.pytest_plugin
print(*sorted(set(sys.modules) - before))
"""


def test_who_only_has_it_installed_pays_nothing() -> None:
    path = str(Path(toolcrib.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", NEW], check=True, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path}
    )
    assert done.stdout.split() == ["toolcrib", "toolcrib.testing", "toolcrib.testing.pytest_plugin"]


OLD = """
import pytest

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config):
    source = config.args_source
    del config.args_source
    try:
        return (yield)
    finally:
        config.args_source = source
"""


def test_an_old_pytest_is_left_alone(pytest_there: Pytest, tmp_path: Path) -> None:
    """Before 7.2 it does not tell where its arguments come from; of its users most have never named a tool."""
    (tmp_path / "conftest.py").write_text(OLD)
    (tmp_path / "test_mine.py").write_text("def test_mine():\n    pass\n")
    status, out = pytest_there("--toolcrib-examples", "my_tools:registry", "--toolcrib-allow", "wipe", "test_mine.py")
    assert status == 1 and "1 failed, 1 passed" in out
    assert pytest_there()[0] == 0

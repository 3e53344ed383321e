"""``tools test``: the examples of the tools of the catalogue, of plugins and of modules."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.surfaces.cli.conftest import BIN, Cli, one_sentence
from tests.surfaces.cli.test_program import terminal

TOOLS = '''
from toolcrib import SafetyLevel, ToolRegistry, tool

@tool(examples=[{"input": {"a": 1, "b": 2}, "output": 3}, {"input": {"a": 1}}])
def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b

@tool
def bare() -> None:
    """Has no examples."""

@tool(safety_level=SafetyLevel.DANGEROUS, examples=[{"input": {}, "output": "gone"}])
async def wipe() -> str:
    """Wipe."""
    return "gone"

@tool(examples=[{"input": {}, "output": 0.3}])
async def third() -> float:
    """Nearly a third."""
    return 0.1 + 0.2

registry = ToolRegistry([add])
'''


@pytest.fixture
def module(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    path = home / "examined_tools.py"
    path.write_text(TOOLS)
    yield path
    sys.modules.pop("examined_tools", None)


def verdicts(out: str) -> list[str]:
    return [f"{each['tool']} {each['example']} {each['verdict']}" for each in json.loads(out)]


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("line", "status", "expected"),
    [
        ("--module examined_tools.py", 1,
         ["add 1 passed", "add 2 passed", "bare None no examples", "wipe 1 skipped", "third 1 failed"]),
        ("--module examined_tools:registry", 0, ["add 1 passed", "add 2 passed"]),
        ("--module examined_tools.py:registry --fail-without-examples", 0, ["add 1 passed", "add 2 passed"]),
        ("bare --module examined_tools", 0, ["bare None no examples"]),
        ("bare --module examined_tools --fail-without-examples", 1, ["bare None no examples"]),
        ("wipe --module examined_tools", 0, ["wipe 1 skipped"]),
        ("wipe --module examined_tools --allow wipe", 0, ["wipe 1 passed"]),
        ("third --module examined_tools --tolerance 1e-9", 0, ["third 1 passed"]),
        ("third wipe --module examined_tools", 1, ["third 1 failed", "wipe 1 skipped"]),
    ],
)  # fmt: skip
def test_the_tools_of_a_module(cli: Cli, line: str, status: int, expected: list[str]):
    answer = cli("tools", "test", *line.split())
    assert (answer.status, answer.err) == (status, "")
    assert verdicts(answer.out) == expected


def test_what_is_printed_meanwhile_is_not_in_the_answer(cli: Cli, module: Path):
    printing = TOOLS.replace("return a + b", "print('adding'); return a + b") + "\nprint('imported')\n"
    module.write_text(printing, encoding="utf-8")
    answer = cli("tools", "test", "--module", "examined_tools:registry")
    assert (answer.status, answer.err) == (0, "imported\nadding\nadding\n")
    assert verdicts(answer.out) == ["add 1 passed", "add 2 passed"]


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("line", "status", "complaint"),
    [
        ("ad --module examined_tools", 3, "no tool is called 'ad'; did you mean 'add'?"),
        ("--module examined_tools --allow wip", 3, "no tool is called 'wip'; did you mean 'wipe'?"),
        ("--module nothing_of_that_name", 4, "'nothing_of_that_name' cannot be imported: ModuleNotFoundError"),
        ("--module nothing.py", 4, "'nothing.py' is not a file"),
        ("--module examined_tools:nothing", 4, "'examined_tools' has no 'nothing'"),
        ("nothing", 3, "no tool is called 'nothing'"),
        ("--allow nothing", 3, "no tool is called 'nothing'"),
        ("--tolerance -1", 2, "tolerance"),
        ("--tolerance nan --module examined_tools", 2, "tolerance"),
    ],
)
def test_what_cannot_be_tested_is_told(cli: Cli, line: str, status: int, complaint: str):
    answer = cli("tools", "test", *line.split())
    assert (answer.status, answer.out) == (status, "")
    assert complaint in one_sentence(answer)


@pytest.fixture
def kept(home: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> None:
    """A catalogue with a tool that runs, one that cannot, and one of a plugin."""
    (home / "plugins").mkdir()
    (home / "plugins/demo.py").write_text(TOOLS)
    (home / "shouting.py").write_text(
        "from toolcrib import tool\n\n@tool\ndef shout(text: str):\n    'Shout.'\n    return text.upper()"
    )
    monkeypatch.syspath_prepend(home)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(home), os.environ.get("PYTHONPATH")])))
    monkeypatch.setenv("TOOLCRIB_PLUGINS_DIR", str(home / "plugins"))
    monkeypatch.setenv("TOOLCRIB_PYTHON_TOOLS", "shouting:shout")
    text = {"type": "object", "properties": {"text": {"type": "string"}}}
    examples = [{"input": {"text": "a"}, "output": "A"}, {"input": {"text": "b"}, "output": "b"}]
    fields = {"description": "Write in capitals.", "parameters": text, "examples": examples}
    shout = {"name": "shout", "binding": {"python": "shouting:shout"}, **fields}
    forbidden = {"name": "forbidden", "binding": {"python": "os:system"}, **fields}
    described = {"name": "described", "description": "Is only described.", "examples": [{"call": "described()"}]}
    (home / "kept.json").write_text(json.dumps([shout, forbidden, described, {"name": "none", "description": "None."}]))
    assert cli("tools", "add", "-f", "kept.json").status == 0


@pytest.mark.usefixtures("kept")
def test_the_tools_of_the_catalogue_and_of_plugins(cli: Cli):
    answer = cli("tools", "test")
    assert (answer.status, answer.err) == (1, "")
    assert sorted(verdicts(answer.out)) == [
        "add 1 passed", "add 2 passed", "bare None no examples", "described 1 skipped", "forbidden 1 skipped",
        "forbidden 2 skipped", "none None no examples", "shout 1 passed", "shout 2 failed", "third 1 failed",
        "wipe 1 skipped",
    ]  # fmt: skip
    reasons = {each["tool"]: each["reason"] for each in answer.json}
    assert reasons["shout"] == "'b' is expected, 'B' came"
    assert "does not say how" in reasons["described"]
    allowed = cli("tools", "test", "wipe", "add", "--allow", "wipe")
    assert (allowed.status, verdicts(allowed.out)) == (0, ["wipe 1 passed", "add 1 passed", "add 2 passed"])


def test_an_empty_catalogue_has_no_tools(cli: Cli):
    assert (answer := cli("tools", "test")).status == 0
    assert answer.json == []


@pytest.mark.usefixtures("kept")
def test_a_table_on_a_terminal():
    status, shown = terminal(BIN / "toolcrib", "tools", "test", "shout", "wipe", "none", columns=120)
    assert status == 1
    assert "Verdict" in shown and "'b' is expected, 'B' came" in shown
    assert "1 passed, 1 failed, 1 skipped, 1 no examples" in shown
    status, shown = terminal(BIN / "toolcrib", "tools", "test", "shout", "--json", columns=120)
    assert status == 1 and '"verdict": "failed"' in shown


def test_a_module_of_the_folder_it_is_run_in(shell: Cli, home: Path):
    (home / "examined_tools.py").write_text(TOOLS)
    answer = shell("toolcrib", "tools", "test", "--module", "examined_tools:registry", cwd=home)
    assert (answer.status, answer.err) == (0, "")
    assert verdicts(answer.out) == ["add 1 passed", "add 2 passed"]

"""The examples of tools, run by the one runner of them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from toolcrib import SafetyLevel, ToolNotFoundError, ToolRegistry, ToolSpec, ToolValidationError, tool
from toolcrib.testing import RecordingRegistry, run_examples
from toolcrib.testing.finding import find_registries


@tool(examples=[{"input": {"a": 1, "b": 2}, "output": 3}, {"input": {"a": 1}, "output": 7}, {"input": {"a": 5}}])
async def add(a: int, b: int = 1) -> int:
    """Add."""
    return a + b


@tool(examples=[{"input": {"n": 2}, "output": {"root": 1.41}}])
def root(n: float) -> dict[str, Any]:
    """The square root."""
    return {"root": n**0.5}


@tool
async def bare() -> None:
    """Has no examples."""


@tool(safety_level=SafetyLevel.DANGEROUS, examples=[{"input": {}, "output": "gone"}])
async def wipe() -> str:
    """Wipe."""
    return "gone"


def made(*examples: dict[str, Any], **fields: Any) -> Any:
    @tool(name="made", examples=list(examples), **fields)
    async def made_tool(value: Any = None) -> Any:
        """Return the value, or raise it."""
        if value == "break":
            raise RuntimeError("it broke")
        return {1, 2}.pop() if value == "set" else value

    return made_tool


async def verdicts(*tools: Any, **options: Any) -> list[tuple[str, int | None, str, str]]:
    found = await run_examples(ToolRegistry(tools), **options)
    return [(each.tool, each.example, str(each.verdict), each.reason) for each in found]


async def test_each_example_of_each_tool_has_its_verdict() -> None:
    assert await verdicts(add, bare, wipe) == [
        ("add", 1, "passed", ""),
        ("add", 2, "failed", "7 is expected, 2 came"),
        ("add", 3, "passed", ""),
        ("bare", None, "no examples", ""),
        ("wipe", 1, "skipped", "'wipe' is 'dangerous', above the allowed 'high', and nobody is there to approve it"),
    ]


async def test_what_a_registry_adds_by_itself_has_no_examples_to_miss() -> None:
    registry = ToolRegistry([made({"input": {"value": 1}}, max_result_characters=10)], max_result_characters=100)
    registry.register_many([registry.search_tool(), registry.call_tool()])
    assert [(each.tool, str(each.verdict)) for each in await run_examples(registry)] == [("made", "passed")]
    [named] = await run_examples(registry, ["read_result"])
    assert named.verdict == "no examples"


async def test_an_output_is_what_programs_are_told() -> None:
    image = {"type": "image", "media_type": "image/png", "data": "iVBORw0KGgo="}
    for value, output in ((b"\x89PNG\r\n\x1a\n", image), ((1, {2}), [1, [2]])):
        registry = ToolRegistry([made({"input": {"value": 1}, "output": output})])
        assert (await run_examples(RecordingRegistry(registry, answers={"made": value})))[0].verdict == "passed"


async def test_only_tools_that_are_named_and_allowed() -> None:
    assert await verdicts(add, wipe, names=["wipe"], allow=["wipe"]) == [("wipe", 1, "passed", "")]
    with pytest.raises(ToolNotFoundError):
        await verdicts(add, names=["ad"])


async def test_nobody_is_asked_for_approval() -> None:
    asked: list[str] = []

    def approve(spec: ToolSpec, arguments: Any) -> bool:
        asked.append(spec.name)
        return True

    registry = ToolRegistry([wipe], approve=approve)
    [outcome] = await run_examples(registry)
    assert (outcome.verdict, asked) == ("skipped", [])


async def test_numbers_may_be_off_only_if_asked() -> None:
    assert await verdicts(root) == [("root", 1, "failed", "root: 1.41 is expected, 1.4142135623730951 came")]
    assert await verdicts(root, tolerance=0.01) == [("root", 1, "passed", "")]


@pytest.mark.parametrize(
    ("example", "verdict", "reason"),
    [
        ({"input": {"value": True}, "output": 1}, "failed", "1 is expected, True came"),
        ({"input": {"value": [1, {"a": "b"}]}, "output": [1, {"a": "c"}]}, "failed", "[1].a: 'c' is expected"),
        ({"input": {"value": "break"}}, "failed", "RuntimeError: it broke"),
        ({"input": {"other": 1}}, "failed", "has no argument 'other'"),
        ({"input": {"value": None}}, "passed", ""),
        ({"call": "made(value=1)"}, "skipped", "cannot be run; give its input"),
        ({"call": "made(value=1)", "input": {"value": 1}, "output": 1}, "passed", ""),
    ],
)
async def test_what_an_example_may_say(example: dict[str, Any], verdict: str, reason: str) -> None:
    [outcome] = await verdicts(made(example))
    assert outcome[2] == verdict and reason in outcome[3]


async def test_an_example_without_an_output_must_fit_the_output_schema() -> None:
    [outcome] = await verdicts(made({"input": {"value": "text"}}, returns={"type": "integer"}))
    assert outcome[2] == "failed" and "returned" in outcome[3]


# Finding


MODULE = '''
from toolcrib import ToolRegistry, tool

@tool
def one() -> int:
    """One."""
    return 1

@tool
def two() -> int:
    """Two."""
    return 2

registry = ToolRegistry([one])
tools = [one, two]
number = 3
'''


MADE = '''
from toolcrib import BaseTool, ToolRegistry, tool

class Recall(BaseTool):
    """Recall."""

    def __init__(self, memory):
        self.memory = memory

    def execute(self, key: str) -> str:
        return self.memory[key]

class Shelf:
    @tool
    def find(self) -> str:
        """Find."""
        return "found"

shelf = Shelf()
'''


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "found_tools.py").write_text(MODULE)
    (tmp_path / "found_made.py").write_text(f"{MADE}\nregistry = ToolRegistry([Recall({{}}), shelf])")
    (tmp_path / "found_instance.py").write_text(f"{MADE}\nrecall = Recall({{}})")
    (tmp_path / "found_class.py").write_text(MADE)
    (tmp_path / "found_nothing.py").write_text("x = 1")
    (tmp_path / "found_broken.py").write_text("raise SystemExit('no')")
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("found_")]:
        del sys.modules[name]


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("reference", "names"),
    [
        ("found_tools", [["one"], ["two"]]),
        ("found_tools.py", [["one"], ["two"]]),
        ("found_tools:registry", [["one"]]),
        ("found_tools.py:registry", [["one"]]),
        ("found_tools:tools", [["one", "two"]]),
        ("found_tools:two", [["two"]]),
        ("found_made", [["recall", "find"]]),
        ("found_instance", [["find", "recall"]]),
    ],
)
def test_where_tools_are_found(reference: str, names: list[list[str]]) -> None:
    assert [list(registry.names()) for registry in find_registries(reference)] == names


@pytest.mark.usefixtures("module")
@pytest.mark.parametrize(
    ("reference", "says"),
    [
        ("found_tools:registri", "has no 'registri'; did you mean 'registry'"),
        ("found_tools:number", "3 is not a tool"),
        ("found_class", r"class 'Recall' cannot be made .*; use an instance, Recall\(\.\.\.\)"),
        ("found_nothing", "has no tools; name the registry, as in found_nothing:registry"),
        ("found_broken", "cannot be imported: SystemExit: no"),
        ("found_broken.py", "cannot be imported: SystemExit: no"),
        ("found_nowhere", "cannot be imported: ModuleNotFoundError"),
        ("found_nowhere.py", "'found_nowhere.py' is not a file"),
        ("", "cannot be imported"),
        (":registry", "cannot be imported"),
    ],
)
def test_what_cannot_be_found_is_told(reference: str, says: str) -> None:
    with pytest.raises(ToolValidationError, match=says):
        find_registries(reference)


def test_modules_are_found_in_the_folder_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", sys.path.copy())
    package = tmp_path / "found_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "inner.py").write_text("from toolcrib import tool\n\n@tool\ndef one():\n    'One.'\n")
    [found] = find_registries("found_package.inner", tmp_path)
    assert list(found.names()) == ["one"]

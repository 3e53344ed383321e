"""Plugins: entry points first, then folders; a broken one is named and stops nobody."""

import importlib.metadata
import logging
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from toolcrib import BaseTool, ToolRegistry, tool
from toolcrib.bootstrap import open_system
from toolcrib.dialects import aiwhisperer

FUNCTION = '''
from toolcrib import tool

@tool
async def {name}() -> str:
    """{text}."""
    return "{text}"
'''
CLASS = '''
from toolcrib import BaseTool

class {name}(BaseTool):
    """A class."""

    async def execute(self) -> str:
        return "class"
'''


@tool
async def installed() -> str:
    """From a package."""
    return "package"


class AlsoInstalled(BaseTool):
    """From a package too."""

    async def execute(self) -> str:
        return "package"


class FakeEntry:
    """Stands for an installed package; examples/plugin is a real one, installed by another test."""

    group = "toolcrib.tools"

    def __init__(self, name: str, loads: Any) -> None:
        self.name, self.value, self._loads = name, f"package:{name}", loads

    def load(self) -> Any:
        if isinstance(self._loads, Exception):
            raise self._loads
        return self._loads


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[FakeEntry]:
    made: list[FakeEntry] = []
    monkeypatch.setattr(
        importlib.metadata, "entry_points", lambda group: [entry for entry in made if entry.group == group]
    )
    return made


async def test_entry_points_come_before_folders_and_the_first_wins(
    entries: list[FakeEntry], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries.append(FakeEntry("one", [installed, AlsoInstalled]))
    (tmp_path / "p.py").write_text(FUNCTION.format(name="installed", text="file"))
    registry = ToolRegistry()
    with caplog.at_level(logging.WARNING):
        discovery = registry.discover(folders=[tmp_path])
    assert [each.name for each in registry] == ["installed", "also_installed"]
    assert (await registry.execute("installed")).data == "package"
    assert [problem.source for problem in discovery.problems] == [str(tmp_path / "p.py")]
    assert "the first one wins" in caplog.text


def test_a_broken_plugin_is_named_and_stops_nobody(
    entries: list[FakeEntry], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    entries.append(FakeEntry("broken-entry", ImportError("no such package")))
    entries.append(FakeEntry("not-a-tool", 42))
    (tmp_path / "a_broken.py").write_text("raise RuntimeError('at import')")
    (tmp_path / "b_syntax.py").write_text("def (")
    (tmp_path / "c_exit.py").write_text("import sys; sys.exit(1)")
    needy = CLASS.format(name="Aneedy") + "    def __init__(self): raise RuntimeError('needs more')\n"
    (tmp_path / "d_good.py").write_text(needy + FUNCTION.format(name="good", text="good"))
    (tmp_path / "_private.py").write_text("raise RuntimeError('never imported')")
    registry = ToolRegistry()
    with caplog.at_level(logging.WARNING):
        discovery = registry.discover(folders=[tmp_path, tmp_path / "nowhere"])
    assert [each.name for each in registry] == ["good"]
    told = " ".join(f"{problem.source} {problem.reason}" for problem in discovery.problems)
    for word in (
        "broken-entry",
        "not-a-tool",
        "a_broken.py",
        "b_syntax.py",
        "c_exit.py",
        "nowhere",
        "at import",
        "needs more",
    ):
        assert word in told and word in caplog.text
    assert len(discovery.problems) == 7


def test_folders_hold_files_packages_functions_and_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "functions.py").write_text(FUNCTION.format(name="one", text="one"))
    (tmp_path / "classes.py").write_text(CLASS.format(name="Two"))
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("from .inner import three")
    (tmp_path / "package" / "inner.py").write_text(FUNCTION.format(name="three", text="three"))
    monkeypatch.setenv("TOOLCRIB_PLUGINS_DIR", str(tmp_path))
    registry = ToolRegistry()
    registry.discover(groups=())
    assert sorted(each.name for each in registry) == ["one", "three", "two"]


OTHERS = '''
from langchain_core.tools import tool as langchain_tool
from toolcrib import tool

class Files:
    def __init__(self, root: str) -> None:
        self.root = root

    @tool
    async def where(self) -> str:
        """Where they are."""
        return self.root

    @tool
    async def how_many(self) -> int:
        """How many there are."""
        return 3

files = Files("/srv")

@langchain_tool
def population(city: str) -> int:
    """How many people live in a city."""
    return len(city)
'''


async def test_objects_with_tool_methods_and_tools_of_frameworks_are_plugins_too(tmp_path: Path) -> None:
    (tmp_path / "others.py").write_text(OTHERS)
    registry = ToolRegistry()
    assert registry.discover(groups=[], folders=[tmp_path]).problems == []
    assert sorted(registry.names()) == ["how_many", "population", "where"]
    assert (await registry.execute("where")).data == "/srv"
    assert (await registry.execute("population", {"city": "Oslo"})).data == 4


def test_the_settings_file_names_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same for the registry, for the AIWhisperer dialect's and for the system of a command."""
    (tmp_path / "p.py").write_text(FUNCTION.format(name="ours", text="ours"))
    (tmp_path / "toolcrib.toml").write_text(f'plugins_dir = "{tmp_path}"')
    for variable in ("TOOLCRIB_PLUGINS_DIR", "AIWHISPERER_PLUGINS_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)
    registry = ToolRegistry()
    registry.discover()
    assert "ours" in registry
    with open_system() as system:
        assert "ours" in system.plugins
    whisperer = aiwhisperer.ToolRegistry()
    try:
        whisperer.reload_tools()
        assert whisperer.get_tool_by_name("ours") is not None
    finally:
        monkeypatch.undo()
        whisperer.reload_tools()


def test_both_variables_name_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable, name in (("TOOLCRIB_PLUGINS_DIR", "ours"), ("AIWHISPERER_PLUGINS_DIR", "theirs")):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "p.py").write_text(FUNCTION.format(name=name, text=name))
        monkeypatch.setenv(variable, str(folder))
    registry = ToolRegistry()
    registry.discover(groups=())
    assert sorted(each.name for each in registry) == ["ours", "theirs"]


HELPER = """
import dataclasses

@dataclasses.dataclass
class Answer:
    text: str

import deeper.inner
import deeper.inner as same

def answer() -> Answer:
    assert same is deeper.inner
    return Answer(same.TEXT)
"""
USER = '''
from __future__ import annotations
import helpers as h
import helpers
from helpers import *
from toolcrib import tool

@tool(isolation="{isolation}")
async def {name}() -> str:
    """Ask the file beside."""
    assert h.answer is helpers.answer is answer
    return answer().text

@tool
async def {name}_late() -> str:
    """Import it when it runs."""
    from helpers import answer as late
    return late().text
'''


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_a_plugin_finds_what_lies_beside_it_and_nobody_elses(tmp_path: Path, isolation: str) -> None:
    registry, folders = ToolRegistry(), [tmp_path / "one", tmp_path / "two"]
    for said in ("first", "other"):
        for folder in folders:
            (folder / "deeper").mkdir(parents=True, exist_ok=True)
            (folder / "helpers.py").write_text(HELPER)
            (folder / "deeper" / "__init__.py").write_text("")
            (folder / "deeper" / "inner.py").write_text(f"TEXT = '{said} {folder.name}'")
            (folder / "user.py").write_text(USER.format(name=f"ask_{folder.name}", isolation=isolation))
        before = list(sys.path)
        assert registry.discover(groups=(), folders=folders, reload=True).problems == []
        assert sys.path == before
        for folder in folders:
            for name in (f"ask_{folder.name}", f"ask_{folder.name}_late"):
                assert (await registry.execute(name)).data == f"{said} {folder.name}"
    assert not {"helpers", "deeper", "user"} & sys.modules.keys()
    assert not list(tmp_path.rglob("__pycache__"))


def test_a_tool_that_a_file_has_from_the_one_beside_it_is_one_tool(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("from b import *")
    (tmp_path / "b.py").write_text(FUNCTION.format(name="one", text="one"))
    discovery = ToolRegistry().discover(groups=(), folders=[tmp_path])
    assert [found.tool.name for found in discovery.found] == ["one"]
    assert discovery.problems == []


def test_a_plugin_called_after_what_it_uses_gets_that(tmp_path: Path) -> None:
    """And the standard library is never what lies beside."""
    (tmp_path / "yaml.py").write_text("import yaml; yaml.safe_load" + FUNCTION.format(name="one", text="one"))
    (tmp_path / "json.py").write_text("raise RuntimeError('never the standard one')")
    (tmp_path / "other.py").write_text("import json; json.loads" + FUNCTION.format(name="two", text="two"))
    registry = ToolRegistry()
    registry.discover(groups=(), folders=[tmp_path])
    assert sorted(registry.names()) == ["one", "two"]


async def test_a_reload_takes_everything_at_once_and_tells_what_changed(tmp_path: Path) -> None:
    registry, heard = ToolRegistry([installed]), list[str]()
    for name in ("stays", "goes"):
        (tmp_path / f"{name}.py").write_text(FUNCTION.format(name=name, text="old"))
    registry.discover(groups=(), folders=[tmp_path])
    (tmp_path / "goes.py").unlink()
    for name in ("comes", "stays"):
        looks = "import toolcrib_test_registry as t; t.seen.append(sorted(t.registry.names()))"
        (tmp_path / f"{name}.py").write_text(looks + FUNCTION.format(name=name, text="new"))
    module: Any = types.ModuleType("toolcrib_test_registry")
    module.registry, module.seen = registry, []
    sys.modules[module.__name__] = module
    for event in ("tool:registered", "tool:updated", "tool:removed"):
        registry.on(event, lambda told: heard.append(f"{told.event} {told.tool.name}"))
    try:
        registry.discover(groups=(), folders=[tmp_path], reload=True)
    finally:
        del sys.modules[module.__name__]
    assert module.seen == [["goes", "installed", "stays"]] * 2, "while files are read the old tools are there"
    assert sorted(registry.names()) == ["comes", "installed", "stays"]
    assert sorted(heard) == ["tool:registered comes", "tool:removed goes", "tool:updated stays"]
    assert (await registry.execute("stays")).data == "new"


def test_a_discovery_that_fails_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "p.py").write_text(FUNCTION.format(name="old", text="old"))
    registry = ToolRegistry()
    registry.discover(groups=(), folders=[tmp_path])
    (tmp_path / "p.py").write_text("raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        registry.discover(groups=(), folders=[tmp_path], reload=True)
    assert registry.names() == ["old"]


async def test_reload_takes_what_is_on_disk_now(tmp_path: Path) -> None:
    plugin = tmp_path / "p.py"
    registry = ToolRegistry()
    for text in ("aaa", "bbb", "ccc"):  # the same size, within one second: a bytecode cache would not notice
        plugin.write_text(FUNCTION.format(name="said", text=text))
        registry.discover(groups=(), folders=[tmp_path], reload=True)
        assert (await registry.execute("said")).data == text
    assert not list(tmp_path.glob("__pycache__"))
    plugin.unlink()
    registry.register(installed)
    registry.discover(groups=(), folders=[tmp_path], reload=True)
    assert [each.name for each in registry] == ["installed"], "what was registered by hand stays"

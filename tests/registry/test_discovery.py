"""Plugins: entry points first, then folders; a broken one is named and stops nobody."""

import importlib.metadata
import logging
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

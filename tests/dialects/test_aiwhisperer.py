import importlib
import os
import subprocess
import sys
import textwrap
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolcrib
from toolcrib.dialects.aiwhisperer import AITool, ToolRegistry


class ReadFileTool(AITool):
    """As the design writes a tool: every property and method its own."""

    @property
    def name(self) -> str:
        return "read_file"

    @property
    def description(self) -> str:
        return "Read a text file"

    @property
    def parameters_schema(self) -> dict[str, Any]:
        return {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where it is"}},
            "required": ["path"],
        }

    @property
    def category(self) -> str | None:
        return "File System"

    @property
    def tags(self) -> list[str]:
        return ["file_io", "read", "text"]

    def get_openrouter_tool_definition(self) -> dict[str, Any]:
        return super().get_openrouter_tool_definition()

    def get_ai_prompt_instructions(self) -> str:
        return "Use read_file to read a file."

    async def execute(self, **kwargs: Any) -> Any:
        return f"content of {kwargs['path']}"


class RunPython(AITool):
    """As short as it gets: class attributes, and defaults for the rest."""

    name = "run_python"
    description = "Run a script"
    parameters_schema = {"type": "object", "properties": {"code": {"type": "string"}}, "required": ["code"]}
    category = "Code Execution"
    tags = ["python", "scripting"]
    supports_streaming = True
    models = ["small", "large"]

    async def execute(self, **kwargs: Any) -> Any:
        return kwargs["code"]


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty plugin folder for the one registry, which is left as empty as a new process has it."""
    folder = tmp_path / "plugins"
    folder.mkdir()
    monkeypatch.setenv("AIWHISPERER_PLUGINS_DIR", str(folder))
    yield folder
    monkeypatch.undo()
    ToolRegistry().reload_tools()
    for name in [name for name in sys.modules if name.startswith(("toolcrib_plugin_", "whisper_plugin_"))]:
        del sys.modules[name]


def discovered() -> ToolRegistry:
    """The one registry, with nothing but what it finds now."""
    registry = ToolRegistry()
    registry.reload_tools()
    return registry


@pytest.fixture
def registry(plugins: Path) -> ToolRegistry:
    registry = discovered()
    registry.register_tool(ReadFileTool())
    registry.register_tool(RunPython())
    return registry


def write_plugin(path: Path, name: str, *, answer: str = "1", body: str = "") -> None:
    path.write_text(
        textwrap.dedent(f"""
        from toolcrib.dialects.aiwhisperer import AITool
        {body}
        class Plugin(AITool):
            name = {name!r}
            description = "A plugin"
            parameters_schema = {{"type": "object"}}
            async def execute(self, **kwargs):
                return {answer}
        """),
        encoding="utf-8",
    )


def test_one_registry_for_all(registry: ToolRegistry) -> None:
    assert ToolRegistry() is registry
    assert ToolRegistry().get_tool_by_name("read_file") is registry.get_tool_by_name("read_file")


def test_lookups(registry: ToolRegistry) -> None:
    tool = registry.get_tool_by_name("read_file")
    assert isinstance(tool, ReadFileTool)
    assert registry.get_tool_by_name("nonsense") is None
    assert [tool.name for tool in registry.get_all_tools()] == ["read_file", "run_python"]


def test_definitions(registry: ToolRegistry) -> None:
    assert registry.get_all_tool_definitions() == [
        {
            "type": "function",
            "function": {
                "name": "read_file",
                "description": "Read a text file",
                "parameters": ReadFileTool().parameters_schema,
            },
        },
        {
            "type": "function",
            "function": {
                "name": "run_python",
                "description": "Run a script",
                "parameters": RunPython.parameters_schema,
            },
        },
    ]


def test_instructions(registry: ToolRegistry) -> None:
    first, second = registry.get_all_ai_prompt_instructions().split("\n\n")
    assert first == "Use read_file to read a file."
    assert second == (
        "Tool: run_python\nDescription: Run a script\nParameters:\n- code (string, required)\n"
        'Example call: run_python(code="...")'
    )


def test_the_first_of_a_name_wins_and_a_warning_is_logged(
    registry: ToolRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    first = registry.get_tool_by_name("read_file")
    registry.register_tool(ReadFileTool())
    assert registry.get_tool_by_name("read_file") is first
    assert len(registry.get_all_tools()) == 2
    assert "Tool 'read_file' already registered. Skipping duplicate." in caplog.text


@pytest.mark.parametrize(
    ("criteria", "names"),
    [
        ({}, ["read_file", "run_python"]),
        ({"tags": ["file_io"]}, ["read_file"]),
        ({"tags": ["file_io", "read"]}, ["read_file"]),
        ({"tags": ["file_io", "python"]}, []),
        ({"tags": "python"}, ["run_python"]),
        ({"tags": 3}, []),
        ({"tags": [["python"]]}, []),
        ({"category": "Code Execution"}, ["run_python"]),
        ({"category": None}, []),
        ({"name_pattern": "r.*_f"}, ["read_file"]),
        ({"name_pattern": "file"}, []),
        ({"supports_streaming": True}, ["run_python"]),
        ({"supports_streaming": False}, []),
        ({"models": ["small"]}, ["run_python"]),
        ({"models": list(reversed(RunPython.models))}, ["run_python"]),
        ({"models": ("small",)}, ["run_python"]),
        ({"models": {"small", "none"}}, []),
        ({"models": []}, ["run_python"]),
        ({"models": "small"}, ["run_python"]),
        ({"tags": ["read"], "category": "Code Execution"}, []),
        ({"tags": ["read"], "category": "File System", "name_pattern": "read"}, ["read_file"]),
    ],
)
def test_filters(registry: ToolRegistry, criteria: dict[str, Any], names: list[str]) -> None:
    assert [tool.name for tool in registry.get_filtered_tools(criteria)] == names


def test_a_pattern_as_the_design_writes_it(registry: ToolRegistry) -> None:
    class Upload(RunPython):
        name = "aws_s3_upload"

    registry.register_tool(Upload())
    assert [tool.name for tool in registry.get_filtered_tools({"name_pattern": "aws_s3_*"})] == ["aws_s3_upload"]
    with pytest.raises(toolcrib.InvalidQueryError, match="name_pattern"):
        registry.get_filtered_tools({"name_pattern": "("})


async def test_running(registry: ToolRegistry) -> None:
    tool = registry.get_tool_by_name("read_file")
    assert tool is not None
    assert await tool.execute(path="x") == "content of x"
    core = toolcrib.ToolRegistry(registry.get_all_tools())
    assert (await core.execute("read_file", {"path": "x"})).data == "content of x"
    assert (await core.execute("read_file", {"path": 1})).error_code == "invalid_arguments"
    assert core.get("read_file").spec.tags == ("file_io", "read", "text")


def test_a_tool_must_say_what_it_is() -> None:
    class Nameless(AITool):
        async def execute(self, **kwargs: Any) -> Any: ...

    with pytest.raises(TypeError, match="name"):
        Nameless()  # type: ignore[abstract]


@pytest.mark.parametrize(
    ("attribute", "value"),
    [("name", "no spaces please"), ("parameters_schema", {"type": "nonsense"}), ("tags", [1]), ("description", None)],
)
def test_a_wrong_tool_is_refused_and_not_registered(registry: ToolRegistry, attribute: str, value: Any) -> None:
    wrong = type("Wrong", (RunPython,), {"name": "wrong", attribute: value})()
    with pytest.raises(toolcrib.ToolValidationError):
        registry.register_tool(wrong)
    assert len(registry.get_all_tools()) == 2


def test_tools_of_a_folder_are_discovered(plugins: Path) -> None:
    write_plugin(plugins / "one.py", "from_folder")
    assert [tool.name for tool in discovered().get_all_tools()] == ["from_folder"]


def test_a_broken_plugin_is_a_warning_and_stops_nobody(plugins: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_plugin(plugins / "a_broken.py", "broken", body="raise RuntimeError('no good')")
    write_plugin(plugins / "b_wrong.py", "wrong name")
    write_plugin(plugins / "c_fine.py", "fine")
    assert [tool.name for tool in discovered().get_all_tools()] == ["fine"]
    [broken, wrong] = [text for text in caplog.messages if text.startswith("Failed to load tool ")]
    assert broken == f"Failed to load tool {plugins / 'a_broken.py'}: RuntimeError: no good"
    assert wrong.startswith("Failed to load tool <class 'toolcrib_plugin_")
    assert f"_b_wrong.Plugin'> of {plugins / 'b_wrong.py'}: InvalidNameError: " in wrong


def test_of_two_plugins_the_first_wins(plugins: Path, caplog: pytest.LogCaptureFixture) -> None:
    write_plugin(plugins / "a.py", "same", answer="'a'")
    write_plugin(plugins / "b.py", "same", answer="'b'")
    [tool] = discovered().get_all_tools()
    assert type(tool).__module__.endswith("_a")
    assert "'same' already registered" in caplog.text


async def test_reload_reads_changed_files(plugins: Path) -> None:
    path = plugins / "one.py"
    write_plugin(path, "plugin", answer="1")
    registry = discovered()
    registry.register_tool(RunPython())
    before = registry.get_tool_by_name("plugin")
    assert before is not None
    assert await before.execute() == 1
    stat = path.stat()
    write_plugin(path, "plugin", answer="2")
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))  # not even the clock tells
    write_plugin(plugins / "two.py", "another")
    registry.reload_tools()
    after = registry.get_tool_by_name("plugin")
    assert after is not None
    assert await after.execute() == 2
    assert [tool.name for tool in registry.get_all_tools()] == ["plugin", "another"]


def test_a_model_is_handed_names_that_it_may_say_and_says_them(registry: ToolRegistry, plugins: Path) -> None:
    class Dotted(RunPython):
        name = "files.read"

    class Own(RunPython):
        name = "an.other"

        def get_openrouter_tool_definition(self) -> dict[str, Any]:
            return {"type": "function", "function": {"name": self.name, "description": "d", "parameters": {}}}

    long = type("Long", (RunPython,), {"name": "n" * 100})
    for tool in (Dotted(), Own(), long()):
        registry.register_tool(tool)
    definitions = registry.get_all_tool_definitions()
    names = [definition["function"]["name"] for definition in definitions]
    assert names[:4] == ["read_file", "run_python", "files_read", "an_other"]
    core = toolcrib.ToolRegistry(registry.get_all_tools()).definitions("openrouter")
    assert names == [definition["function"]["name"] for definition in core]
    assert Dotted().get_openrouter_tool_definition()["function"]["name"] == "files_read"
    assert [registry.get_tool_by_name(name) for name in names] == registry.get_all_tools()
    exact = type("Exact", (RunPython,), {"name": "files_read"})()
    registry.register_tool(exact)
    assert registry.get_tool_by_name("files_read") is exact
    with pytest.raises(toolcrib.ExportError, match=r"'files\.read' and 'files_read' are both called 'files_read'"):
        registry.get_all_tool_definitions()


@pytest.mark.parametrize("given", [{}, {"type": "object"}])
@pytest.mark.parametrize("says_itself", [False, True])
def test_a_model_is_handed_an_object_also_of_no_parameters(
    registry: ToolRegistry, given: dict[str, Any], says_itself: bool
) -> None:
    """Providers refuse a schema without ``type``, and one of an object without ``properties``."""

    class Bare(RunPython):
        name = "bare"
        parameters_schema = given

        def get_openrouter_tool_definition(self) -> dict[str, Any]:
            if not says_itself:
                return super().get_openrouter_tool_definition()
            return {"type": "function", "function": {"name": "bare", "description": "d", "parameters": given}}

    registry.register_tool(Bare())
    handed = registry.get_all_tool_definitions()[-1]["function"]
    core = toolcrib.ToolRegistry([Bare()]).definitions("openrouter")[0]["function"]
    assert handed["parameters"] == core["parameters"] == {"type": "object", "properties": {}}
    assert given == Bare.parameters_schema and "properties" not in given


def write_with_helper(folder: Path, name: str, answer: str, *, plugin: str = "plugin.py") -> None:
    folder.mkdir(exist_ok=True)
    (folder / "helpers.py").write_text(f"def said(): return {answer!r}\n", encoding="utf-8")
    write_plugin(folder / plugin, name, answer="said()", body="from helpers import said")


async def test_a_plugin_imports_the_file_beside_it(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two folders each has its own, a reload sees it anew, and nobody else sees it at all."""
    other = plugins.parent / "other"
    monkeypatch.setenv("TOOLCRIB_PLUGINS_DIR", str(other))
    path = list(sys.path)
    for first, second in (("one", "two"), ("ONE", "TWO")):
        write_with_helper(plugins, "a", first)
        write_with_helper(other, "b", second)
        registry = discovered()
        for name, answer in (("a", first), ("b", second)):
            tool = registry.get_tool_by_name(name)
            assert tool is not None
            assert await tool.execute() == answer
    assert sys.path == path
    assert "helpers" not in sys.modules
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("helpers")


def test_the_settings_file_names_the_folder_and_the_variable_adds_one(
    plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plugin(plugins / "p.py", "of_the_variable")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_plugin(tmp_path / name / "p.py", name)
    monkeypatch.chdir(tmp_path)
    for written in (f'"one{os.pathsep}two"', '["one", "two"]'):
        (tmp_path / "toolcrib.toml").write_text(f"plugins_dir = {written}")
        assert [tool.name for tool in discovered().get_all_tools()] == ["one", "two", "of_the_variable"]
    monkeypatch.delenv("AIWHISPERER_PLUGINS_DIR")
    assert [tool.name for tool in discovered().get_all_tools()] == ["one", "two"]


def test_the_first_to_ask_finds_the_folder_of_the_settings_file(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    write_plugin(tmp_path / "mine" / "p.py", "configured")
    (tmp_path / "toolcrib.toml").write_text('plugins_dir = "mine"')
    program = "from toolcrib.dialects.aiwhisperer import ToolRegistry; print(ToolRegistry().get_all_tools()[0].name)"
    found = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )
    assert found.stdout == "configured\n"


def test_no_thread_sees_half_of_a_reload(plugins: Path) -> None:
    """Threads that read all the time, while the tools are discovered anew again and again."""
    names = {f"tool_{number}" for number in range(5)}
    for name in names:
        write_plugin(plugins / f"{name}.py", name)
    registry, over, halves = discovered(), threading.Event(), list[Any]()
    started = threading.Barrier(4)

    def read() -> None:
        started.wait()
        while not over.is_set():
            seen = {tool.name for tool in ToolRegistry().get_all_tools()}
            if seen != names or registry.get_tool_by_name("tool_4") is None:
                halves.append(seen)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    started.wait()
    for _ in range(10):
        registry.reload_tools()
    over.set()
    for reader in readers:
        reader.join()
    assert halves == []


def test_while_a_reload_loads_the_old_tools_are_there(plugins: Path) -> None:
    write_plugin(plugins / "p.py", "old")
    registry = discovered()
    gate = "import toolcrib_reload_gate as g; g.reached.set(); g.go_on.wait()"
    write_plugin(plugins / "p.py", "new", body=gate)
    module: Any = types.ModuleType("toolcrib_reload_gate")
    module.reached, module.go_on = threading.Event(), threading.Event()
    sys.modules[module.__name__] = module
    reload = threading.Thread(target=registry.reload_tools)
    try:
        reload.start()
        module.reached.wait()
        assert ToolRegistry() is registry
        assert [tool.name for tool in registry.get_all_tools()] == ["old"]
    finally:
        module.go_on.set()
        reload.join()
        del sys.modules[module.__name__]
    assert [tool.name for tool in registry.get_all_tools()] == ["new"]


def test_a_reload_that_fails_leaves_what_was_there(plugins: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plugin(plugins / "p.py", "old")
    registry = discovered()
    before = registry.get_all_tools()
    with monkeypatch.context() as changed:
        changed.setenv("TOOLCRIB_PORT", "nonsense")
        with pytest.raises(toolcrib.SettingsError):
            registry.reload_tools()
    write_plugin(plugins / "p.py", "new", body="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        registry.reload_tools()
    assert registry.get_all_tools() == before
    write_plugin(plugins / "p.py", "new")
    registry.reload_tools()
    assert [tool.name for tool in registry.get_all_tools()] == ["new"]


def test_what_a_plugin_registers_by_itself_stays(plugins: Path) -> None:
    write_plugin(plugins / "p.py", "found")
    own = "from toolcrib.dialects.aiwhisperer import ToolRegistry\nToolRegistry().register_tool(Plugin())\n"
    (plugins / "q.py").write_text((plugins / "p.py").read_text().replace("'found'", "'by_itself'") + own)
    assert {tool.name for tool in discovered().get_all_tools()} == {"found", "by_itself"}


def test_every_method_says_what_it_does() -> None:
    for kind in (AITool, ToolRegistry):
        for name, member in vars(kind).items():
            if not name.startswith("_") and (callable(member) or isinstance(member, property)):
                assert member.__doc__, f"{kind.__name__}.{name}"


def test_a_plugin_may_ask_for_the_registry_while_the_first_to_ask_loads_it(plugins: Path) -> None:
    write_plugin(
        plugins / "one.py", "curious", body="from toolcrib.dialects.aiwhisperer import ToolRegistry; ToolRegistry()"
    )
    program = "from toolcrib.dialects.aiwhisperer import ToolRegistry; print(ToolRegistry().get_all_tools()[0].name)"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout == "curious\n"


async def test_entry_points_come_first(plugins: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as pip leaves it: a module, and a folder of metadata that names its tools."""
    site = tmp_path / "site"
    (site / "whisper_plugin-1.0.dist-info").mkdir(parents=True)
    plain_tool = "import toolcrib; plain = toolcrib.tool('plain', description='Double it.')(lambda n: 2 * n)"
    write_plugin(site / "whisper_plugin_module.py", "shared", answer="'package'", body=plain_tool)
    (site / "whisper_plugin-1.0.dist-info" / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: whisper-plugin\nVersion: 1.0\n"
    )
    (site / "whisper_plugin-1.0.dist-info" / "entry_points.txt").write_text(
        "[aiwhisperer.tools]\nshared = whisper_plugin_module:Plugin\nmissing = whisper_plugin_module:Nothing\n"
        "[toolcrib.tools]\nplain = whisper_plugin_module:plain\n"
    )
    monkeypatch.syspath_prepend(str(site))
    write_plugin(plugins / "one.py", "shared", answer="'folder'")
    registry = discovered()
    shared, plain = registry.get_tool_by_name("shared"), registry.get_tool_by_name("plain")
    assert shared is not None
    assert plain is not None
    assert await shared.execute() == "package"
    assert await plain.execute(n=2) == 4
    assert registry.get_filtered_tools({"execution_mode": "sync"}) == [plain]
    assert plain.get_openrouter_tool_definition()["function"]["description"] == "Double it."


words = st.text(min_size=1, max_size=12)
records = st.fixed_dictionaries(
    {
        "name": st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,20}", fullmatch=True),
        "description": st.text(max_size=30),
        "parameters_schema": st.fixed_dictionaries(
            {},
            optional={
                "type": st.just("object"),
                "properties": st.dictionaries(words, st.sampled_from([{}, {"type": "string"}, {"enum": [1, None]}])),
                "required": st.lists(words, unique=True, max_size=2),
            },
        ),
        "category": st.none() | words,
        "tags": st.lists(words, max_size=3),
    }
)


@given(records)
def test_a_tool_to_spec_and_back(record: dict[str, Any]) -> None:
    tool = type("Generated", (RunPython,), record)()
    spec = tool.to_spec()
    again = AITool.from_tool(toolcrib.Tool(spec, tool.execute, lambda *_: tool.execute()))
    assert {key: getattr(again, key) for key in record} == record
    assert again.get_openrouter_tool_definition() == tool.get_openrouter_tool_definition()
    assert again.to_spec() == spec

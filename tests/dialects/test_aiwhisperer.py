import os
import subprocess
import sys
import textwrap
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
    assert "a_broken.py" in caplog.text
    assert "no good" in caplog.text
    assert "b_wrong.py" in caplog.text


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

"""The Brain's registry: its schema to the letter, its file, its stacking rules, and twelve programs at once."""

import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.waiting import wait_until

from toolcrib import ToolSpec
from toolcrib.dialects import brain
from toolcrib.dialects.brain import (
    StoreError,
    ToolExistsError,
    ToolMetadata,
    ToolNotFoundError,
    ToolRegistry,
    ToolValidationError,
)

SAMPLES = Path(__file__).parent / "brain"


def sample(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return data


def metadata(name: str, tool_type: str = "parser", **fields: Any) -> ToolMetadata:
    known = {"description": f"The tool {name}.", "package_name": name, "execution_mode": "sync", "capabilities": []}
    return ToolMetadata.parse({"name": name, "tool_type": tool_type} | known | fields)


@pytest.fixture
def registry(tmp_path: Path) -> ToolRegistry:
    return ToolRegistry(tmp_path / "tools.json")


# The record

_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
_records = st.builds(
    ToolMetadata,
    name=st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,20}", fullmatch=True),
    description=_texts,
    tool_type=_texts,
    package_name=_texts,
    pip_install_command=_texts | st.just("pip install {package_name}"),
    execution_mode=st.sampled_from(["sync", "async"]),
    capabilities=st.lists(_texts, max_size=4),
    compatibilities=st.lists(_texts, max_size=4),
    incompatible_with=st.lists(_texts, max_size=4),
    required_config=st.lists(_texts, max_size=4),
)


def test_the_json_schema_is_the_published_one():
    published = sample("schema")
    # The published text says `"required": false` inside a property, which is not JSON Schema.
    del published["properties"]["incompatible_with"]["required"]
    assert ToolMetadata.model_json_schema() == published


@given(_records)
def test_metadata_and_spec_are_the_same_thing(record: ToolMetadata):
    assert ToolMetadata.from_spec(record.to_spec()) == record
    assert ToolMetadata.from_spec(ToolSpec.from_json(record.to_spec().to_json())) == record


def test_what_the_file_has_no_place_for_is_refused_and_not_dropped():
    spec = metadata("x").to_spec().with_changes(parameters={"type": "object", "properties": {"a": {}}}, version="1.0")
    with pytest.raises(ToolValidationError, match="'parameters', 'version'"):
        ToolMetadata.from_spec(spec)


def test_the_install_command_names_the_package():
    tool = metadata("beautifulsoup4")
    assert tool.pip_install_command == tool.install_command == "pip install beautifulsoup4"
    given = metadata("x", package_name="y", pip_install_command="pip install -U {package_name}[lxml]")
    assert given.pip_install_command == "pip install -U y[lxml]"
    schema = ToolMetadata.model_json_schema()
    assert schema["properties"]["pip_install_command"]["default"] == "pip install {package_name}"


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"execution_mode": "batch"}, "'execution_mode' of tool 'playwright'"),
        ({"capabilities": "html"}, "'capabilities' of tool 'playwright'"),
        ({"capabilities": [1]}, "'capabilities.0' of tool 'playwright'"),
        ({"description": None}, "'description' of tool 'playwright'"),
        ({"name": "two words"}, "'two words' is not a tool name"),
        ({"compatibilites": []}, "'compatibilites' that does not exist; did you mean 'compatibilities'"),
    ],
)
def test_a_wrong_field_is_named(registry: ToolRegistry, changes: dict[str, Any], complaint: str):
    with pytest.raises(ToolValidationError, match=complaint):
        registry.add_tool(sample("playwright") | changes)
    assert registry.list_tools() == []


@pytest.mark.parametrize(
    "field", ["name", "description", "tool_type", "package_name", "execution_mode", "capabilities"]
)
def test_a_missing_field_is_named(registry: ToolRegistry, field: str):
    data = sample("playwright")
    del data[field]
    with pytest.raises(ToolValidationError, match=f"has no '{field}'"):
        registry.add_tool(data)


# The registry


def test_tools_are_added_found_and_removed(registry: ToolRegistry):
    added = registry.add_tool(sample("playwright"))
    assert added == ToolMetadata(**sample("playwright"))
    registry.add_tool(ToolMetadata(**sample("beautifulsoup4")))
    assert registry.get_tool("playwright") == added
    assert registry.get_tool("selenium") is None
    assert [tool.name for tool in registry.list_tools()] == ["beautifulsoup4", "playwright"]
    assert [tool.name for tool in registry.list_tools(tool_type="browser")] == ["playwright"]
    assert [tool.name for tool in registry.list_tools(capability="html_parsing")] == ["beautifulsoup4"]
    assert registry.list_tools(tool_type="browser", capability="html_parsing") == []
    assert [tool.name for tool in registry.get_tools_by_capability("screenshot")] == ["playwright"]
    assert registry.remove_tool("playwright") is True
    assert registry.remove_tool("playwright") is False
    assert len(registry) == 1


def test_adding_replaces_unless_told_not_to(registry: ToolRegistry):
    registry.add_tool(metadata("x"))
    registry.add_tool(metadata("x", description="Another."))
    found = registry.get_tool("x")
    assert found is not None
    assert found.description == "Another."
    with pytest.raises(ToolExistsError, match="'x'"):
        registry.add_tool(metadata("x"), replace=False)


def test_an_answer_belongs_to_the_caller(registry: ToolRegistry):
    registry.add_tool(metadata("x", capabilities=["a"]))
    found = registry.list_tools()[0]
    found.capabilities.append("b")
    found.description = "Changed."
    assert registry.list_tools()[0] == metadata("x", capabilities=["a"])


def test_the_default_file_is_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    ToolRegistry().add_tool(metadata("x"))
    file = tmp_path / ".thebrain/config/tools.json"
    assert [entry["name"] for entry in json.loads(file.read_bytes())] == ["x"]


# The file


def test_the_file_is_a_readable_list_of_metadata(registry: ToolRegistry):
    registry.add_tool(sample("playwright"))
    text = registry.path.read_text(encoding="utf-8")
    assert text.startswith('[\n  {\n    "name": "playwright"')
    assert "développé" in text
    entry = json.loads(text)[0]
    assert entry == {"incompatible_with": []} | sample("playwright")
    assert list(entry) == [field for field in ToolMetadata.model_fields if field != "metadata"]


def test_a_file_written_by_hand_is_read(registry: ToolRegistry):
    registry.path.write_text(json.dumps([sample("beautifulsoup4")]), encoding="utf-8")
    assert registry.get_tool("beautifulsoup4") == ToolMetadata(**sample("beautifulsoup4"))
    registry.add_tool(metadata("x"))
    assert [tool.name for tool in ToolRegistry(registry.path).list_tools()] == ["beautifulsoup4", "x"]


@pytest.mark.parametrize(
    ("content", "kind", "complaint"),
    [
        ("[{", StoreError, "tools.json"),
        ("{}", StoreError, "tools.json"),
        ('[{"name": "x"}]', ToolValidationError, "entry 0 of .*tools.json.*'x'.*has no 'description'"),
        ("[1]", ToolValidationError, "entry 0 of .*tools.json"),
    ],
)
def test_a_broken_file_is_reported_and_never_written_over(
    registry: ToolRegistry, content: str, kind: type[Exception], complaint: str
):
    registry.path.write_text(content)
    for question in (registry.list_tools, lambda: registry.add_tool(metadata("y")), lambda: registry.remove_tool("x")):
        with pytest.raises(kind, match=complaint):
            question()
    assert registry.path.read_text() == content


def test_a_field_that_metadata_does_not_have_is_reported(registry: ToolRegistry):
    content = json.dumps([sample("beautifulsoup4") | {"colour": "red"}])
    registry.path.write_text(content)
    with pytest.raises(ToolValidationError, match="entry 0 of .*'colour'"):
        registry.add_tool(metadata("y"))
    assert registry.path.read_text() == content


_ADD = """
import sys
from toolcrib.dialects.brain import ToolRegistry
registry = ToolRegistry(sys.argv[1])
for number in range(5):
    name = f"tool-{sys.argv[2]}-{number}"
    registry.add_tool({"name": name, "description": name, "tool_type": name, "package_name": name,
                       "execution_mode": "sync", "capabilities": []})
"""


@pytest.mark.timeout(400)  # a slow disk may take a second for each write
def test_twelve_programs_adding_at_once_lose_nothing(registry: ToolRegistry):
    programs = [subprocess.Popen([sys.executable, "-c", _ADD, registry.path, str(number)]) for number in range(12)]

    def all_ended() -> bool:
        if registry.path.exists():
            json.loads(registry.path.read_bytes())  # never half a file
        return all(program.poll() is not None for program in programs)

    wait_until(all_ended, 350)
    assert [program.returncode for program in programs] == [0] * 12
    assert len(registry) == 60


# The stacking rules


@pytest.fixture
def stack(registry: ToolRegistry) -> ToolRegistry:
    for tool in (
        metadata("playwright", "browser", compatibilities=["type:parser"], incompatible_with=["selenium"]),
        metadata("selenium", "browser", compatibilities=["undetected"]),
        metadata("undetected", "browser"),
        metadata("bs4", "parser"),
        metadata("parsel", "parser"),
    ):
        registry.add_tool(tool)
    return registry


@pytest.mark.parametrize(
    ("names", "compatible"),
    [
        (["playwright", "bs4"], True),
        (["playwright", "selenium"], False),
        (["selenium", "playwright"], False),
        (["selenium", "undetected"], True),
        (["undetected", "playwright"], False),
        (["bs4", "parsel"], False),
        (["selenium", "undetected", "bs4"], True),
        (["selenium", "undetected", "bs4", "parsel"], False),
        (["bs4"], True),
        ([], True),
        (["bs4", "bs4"], True),
    ],
)
def test_compatibility_follows_the_rules(stack: ToolRegistry, names: list[str], compatible: bool):
    assert stack.check_compatibility(names) is compatible


def test_an_unknown_name_is_an_error(stack: ToolRegistry):
    with pytest.raises(ToolNotFoundError, match="'seleniun'; did you mean 'selenium'"):
        stack.check_compatibility(["playwright", "seleniun"])
    with pytest.raises(ToolNotFoundError):
        stack.find_compatible_tools("ghost")
    with pytest.raises(ToolValidationError, match="list of names"):
        stack.check_compatibility("bs4")


def test_compatible_tools_are_found(stack: ToolRegistry):
    assert [tool.name for tool in stack.find_compatible_tools("playwright")] == ["bs4", "parsel"]
    assert [tool.name for tool in stack.find_compatible_tools("selenium")] == ["bs4", "parsel", "undetected"]
    assert [tool.name for tool in stack.find_compatible_tools("selenium", target_type="browser")] == ["undetected"]
    assert stack.find_compatible_tools("playwright", target_type="teapot") == []


def test_compatible_tools_are_found_among_ten_thousand(tmp_path: Path):
    path = tmp_path / "tools.json"
    tools = [metadata(f"tool-{number}", f"type-{number % 500}").model_dump() for number in range(10_000)]
    path.write_text(json.dumps(tools))
    registry = ToolRegistry(path)
    assert len(registry) == 10_000
    assert len(registry.find_compatible_tools("tool-3", target_type="type-499")) == 20


# To the letter


def test_the_designs_second_words_for_arguments(stack: ToolRegistry):
    added = stack.add_tool(tool_spec=sample("beautifulsoup4"))
    assert stack.get_tool(tool_id="beautifulsoup4") == added
    assert stack.check_compatibility(tool_ids=["playwright", "bs4"]) is True
    assert stack.check_compatibility(tool_ids=["playwright", "selenium"]) is False
    assert stack.explain_compatibility(tool_ids=["playwright", "bs4"]).verdicts[0].rule == "accepted"
    found = stack.find_compatible_tools(tool_id="selenium", target_type="browser")
    assert [tool.name for tool in found] == ["undetected"]
    assert stack.remove_tool(tool_id="beautifulsoup4") is True


def test_an_argument_is_given_once_in_one_of_its_words(stack: ToolRegistry):
    wrong: Any = stack
    with pytest.raises(TypeError, match=r"get_tool\(\) takes 'name' or 'tool_id', which is missing"):
        wrong.get_tool()
    with pytest.raises(TypeError, match="'names' or 'tool_ids', not both"):
        wrong.check_compatibility(["bs4"], tool_ids=["bs4"])


def test_the_functions_of_the_module_are_about_the_default_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert brain.add_tool(sample("playwright")) == brain.get_tool("playwright") == brain.get_tool(tool_id="playwright")
    brain.add_tool(tool_spec=sample("beautifulsoup4"))
    with pytest.raises(ToolExistsError):
        brain.add_tool(sample("playwright"), replace=False)
    assert [tool.name for tool in brain.list_tools()] == ["beautifulsoup4", "playwright"]
    assert [tool.name for tool in brain.list_tools(tool_type="browser")] == ["playwright"]
    assert [tool.name for tool in brain.get_tools_by_capability("html_parsing")] == ["beautifulsoup4"]
    assert brain.check_compatibility(tool_ids=["playwright", "beautifulsoup4"]) is True
    assert [tool.name for tool in brain.find_compatible_tools(tool_id="playwright")] == ["beautifulsoup4"]
    assert brain.remove_tool("playwright") is True
    assert brain.remove_tool(tool_id="playwright") is False
    assert (tmp_path / ".thebrain/config/tools.json").exists()


def test_a_file_of_no_bytes_is_reported_and_not_read_as_empty(registry: ToolRegistry):
    registry.path.write_bytes(b"")
    for question in (registry.list_tools, lambda: registry.get_tool("x"), lambda: registry.add_tool(metadata("y"))):
        with pytest.raises(StoreError, match=r"tools\.json' is there but holds nothing"):
            question()
    assert registry.path.read_bytes() == b""


def test_every_public_name_has_a_docstring():
    public = [getattr(brain, name) for name in brain.__all__]
    methods = [value for name, value in vars(ToolRegistry).items() if callable(value) and not name.startswith("_")]
    assert len(methods) >= 8
    undocumented = [thing for thing in (*public, *methods) if not inspect.getdoc(thing)]
    assert undocumented == []


def test_how_a_tool_runs_stands_in_its_metadata_and_comes_back(registry: ToolRegistry):
    said = {"binding": {"service_url": "https://host/clean"}, "brick": {"takes": "Record"}, "team": "prices"}
    registry.add_tool(metadata("x", metadata=said))
    assert json.loads(registry.path.read_bytes())[0]["metadata"] == said
    found = registry.get_tool("x")
    assert found is not None
    assert found.metadata == registry.list_tools()[0].metadata == said
    spec = found.to_spec()
    assert spec.binding.service_url == "https://host/clean"
    assert spec.metadata == {"brick": said["brick"], "team": "prices"}
    registry.list_tools()[0].metadata["team"] = "changed"
    assert registry.list_tools()[0].metadata == said


@pytest.mark.parametrize(
    ("binding", "complaint"),
    [
        ({"comand": "x"}, "'binding.comand'|a field 'comand'"),
        ({"service_url": "ftp://host"}, "'binding.service_url' of tool 'x'"),
        ("x", "'binding' of tool 'x'"),
    ],
)
def test_a_way_to_run_that_is_none_is_named(registry: ToolRegistry, binding: Any, complaint: str):
    with pytest.raises(ToolValidationError, match=complaint):
        registry.add_tool(metadata("x", metadata={"binding": binding}))
    assert registry.list_tools() == []

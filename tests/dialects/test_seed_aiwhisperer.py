"""Every sample of AIWhisperer's design, with only its import lines changed."""

import asyncio
import logging
from pathlib import Path
from typing import Any, Dict, List, Optional  # noqa: UP035 - as the design writes it

import pytest

from toolcrib.dialects.aiwhisperer import AITool, ToolRegistry


class MyCustomToolClass(AITool):
    """Section 10: the interface with what it proposes, every method a tool's own."""

    @property
    def name(self) -> str:
        return "aws_s3_upload"

    @property
    def description(self) -> str:
        return "Upload a file."

    @property
    def parameters_schema(self) -> Dict[str, Any]:  # noqa: UP006
        return {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}

    @property
    def category(self) -> Optional[str]:  # noqa: UP045
        """
        A broad category for the tool (e.g., "File System", "Code Execution", "Data Analysis", "Communication").
        Returns None if not categorized.
        """
        return None  # Default implementation

    @property
    def tags(self) -> List[str]:  # noqa: UP006
        """
        A list of keywords or tags describing the tool's capabilities or domain.
        e.g., ["file_io", "read", "text"], ["python", "scripting"]
        Returns an empty list if no tags are applicable.
        """
        return []  # Default implementation

    def get_openrouter_tool_definition(self) -> Dict[str, Any]:  # noqa: UP006
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": self.parameters_schema
            }
        }  # fmt: skip

    def get_ai_prompt_instructions(self) -> str:
        return "Use aws_s3_upload to upload a file."

    async def execute(self, **kwargs: Any) -> Any:
        return kwargs


class AnotherTool(MyCustomToolClass):
    name = "run_python"
    category = "Code Execution"
    tags = ["file_system", "read"]
    supports_streaming = True


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Any:
    registry = ToolRegistry()
    registry.reload_tools()
    registry.register_tool(MyCustomToolClass())
    registry.register_tool(AnotherTool())
    yield registry
    registry.reload_tools()


def names(tools: List[AITool]) -> List[str]:  # noqa: UP006
    return [tool.name for tool in tools]


def test_section_3_the_registry(registry: ToolRegistry, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "toolcrib.aiwhisperer"):
        registry.register_tool(AnotherTool())
        registry.register_tool(type("Third", (AnotherTool,), {"name": "third"})())
    assert caplog.messages == [
        "Tool 'run_python' already registered. Skipping duplicate.",
        "Tool 'third' registered successfully.",
    ]
    assert names(registry.get_all_tools()) == ["aws_s3_upload", "run_python", "third"]
    assert registry.get_tool_by_name("run_python") in registry.get_all_tools()
    assert registry.get_tool_by_name("nothing") is None
    assert registry.get_all_tool_definitions() == [
        tool.get_openrouter_tool_definition() for tool in registry.get_all_tools()
    ]
    assert registry.get_all_ai_prompt_instructions() == "\n\n".join(
        [tool.get_ai_prompt_instructions() for tool in registry.get_all_tools()]
    )
    registry.reload_tools()
    assert registry.get_all_tools() == []


@pytest.mark.parametrize(
    ("criteria", "found"),
    [
        ({"tags": ["file_system", "read"]}, ["run_python"]),
        ({"tags": ["file_io"], "category": "Utility"}, []),
        ({"category": "Code Execution"}, ["run_python"]),
        ({"name_pattern": "aws_s3_*"}, ["aws_s3_upload"]),
        ({"supports_streaming": True}, ["run_python"]),
    ],
)
def test_section_5_the_filters(registry: ToolRegistry, criteria: Dict[str, Any], found: List[str]) -> None:  # noqa: UP006
    assert names(registry.get_filtered_tools(criteria)) == found


def test_section_6_and_10_a_tool_is_found_and_run(registry: ToolRegistry) -> None:
    tool_instance = registry.get_tool_by_name("aws_s3_upload")
    if tool_instance:
        assert asyncio.run(tool_instance.execute(path="x")) == {"path": "x"}
    assert tool_instance is not None
    assert (tool_instance.category, tool_instance.tags) == (None, [])


def test_section_2_the_entry_points(registry: ToolRegistry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package as ``pip`` leaves one whose ``pyproject.toml`` has the design's lines."""
    info = tmp_path / "my_tool_package-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-tool-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[aiwhisperer.tools]\n"
        "my_custom_tool = my_tool_package.module:MyCustomToolClass\n"
        "another_tool = another_package.tools:AnotherTool\n"
    )
    for package, module, kind in (
        ("my_tool_package", "module", "MyCustomToolClass"), ("another_package", "tools", "AnotherTool"),
    ):  # fmt: skip
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
        (tmp_path / package / f"{module}.py").write_text(f"from {__name__} import {kind}\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry.reload_tools()
    assert sorted(names(registry.get_all_tools())) == ["aws_s3_upload", "run_python"]

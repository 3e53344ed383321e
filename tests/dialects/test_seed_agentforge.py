"""Every sample of AgentForge's specification, in Python's spelling, with only its import lines changed."""

import base64
from pathlib import Path
from typing import Any, Literal

import pytest
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field

from toolcrib.dialects.agentforge import (
    PromptOptions,
    Tool,
    ToolCategory,
    ToolExecutionError,
    ToolMetadata,
    ToolRegistry,
    ToolValidationError,
    create_tool,
)


class ReadInput(BaseModel):
    path: str = Field(description="Path to the file to read")
    encoding: Literal["utf-8", "ascii", "base64"] = "utf-8"


class WriteInput(BaseModel):
    path: str = Field(description="Path of the file")
    content: str = Field(description="What it is to hold")


async def read_file(path: str, encoding: str) -> str:
    content = Path(path).read_bytes()
    return base64.b64encode(content).decode() if encoding == "base64" else content.decode(encoding)


read_file_tool = (
    create_tool()
    .name("read-file")
    .display_name("Read File")
    .description("Read the contents of a file from the file system")
    .category(ToolCategory.FILE_SYSTEM)
    .tags(["file", "read", "io"])
    .schema(ReadInput)
    .example(
        {
            "description": "Read a text file",
            "input": {"path": "./README.md", "encoding": "utf-8"},
            "output": "# My Project\n\nWelcome to...",
        }
    )
    .example({"description": "Read a binary file as base64", "input": {"path": "./image.png", "encoding": "base64"}})
    .usage_notes("Paths are relative to the current working directory")
    .limitations(["Cannot read files larger than 10MB", "Requires read permissions"])
    .implement(read_file)
    .build()
)


def plain(name: str, description: str, category: ToolCategory, schema: Any) -> Tool:
    builder = create_tool().name(name).description(description).category(category).schema(schema)
    return builder.implement(lambda **given: given).build()


QUERY = {"type": "object", "properties": {"query": {"type": "string", "description": "What to look for"}}}
URL = {"type": "object", "properties": {"url": {"type": "string", "description": "Where"}}, "required": ["url"]}
write_file_tool = plain("write-file", "Write content to a file", ToolCategory.FILE_SYSTEM, WriteInput)
search_tool = plain("web-search", "Search the web", ToolCategory.WEB, QUERY)
http_tool = plain("http-request", "Make an HTTP request", ToolCategory.WEB, URL)


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(read_file_tool)
    registry.register(write_file_tool)
    registry.register_many([search_tool, http_tool])
    return registry


@pytest.fixture(autouse=True)
def _a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("test.txt").write_text("test content", encoding="utf-8")


def test_basic_usage() -> None:
    metadata = read_file_tool.metadata
    assert isinstance(metadata, ToolMetadata)
    assert (metadata.name, metadata.display_name, metadata.category) == ("read-file", "Read File", "file-system")
    assert [each.description for each in metadata.examples] == ["Read a text file", "Read a binary file as base64"]
    assert read_file_tool.schema is ReadInput


def test_the_registry(registry: ToolRegistry) -> None:
    assert registry.get("read-file") is read_file_tool
    assert registry.get_by_category(ToolCategory.FILE_SYSTEM) == [read_file_tool, write_file_tool]
    assert set(registry.search("file")) == {read_file_tool, write_file_tool}
    assert all(isinstance(each, StructuredTool) for each in registry.to_langchain_tools())


SAMPLE = """\
Available Tools:

FILE SYSTEM TOOLS:
- read-file: Read the contents of a file from the file system
  Parameters: path (string), encoding (utf-8|ascii|base64)
  Example: Read a text file
    Input: { "path": "./README.md", "encoding": "utf-8" }
  Notes: Paths are relative to the current working directory

- write-file: Write content to a file
  Parameters: path (string), content (string)

WEB TOOLS:
- web-search: Search the web
  Parameters: query (string)

- http-request: Make an HTTP request
"""


def test_the_prompt_to_the_letter(registry: ToolRegistry) -> None:
    """Its blanks ("...") are filled in; it shows one of the two examples, which is what the limit is for."""
    options: PromptOptions = {"include_examples": True, "group_by_category": True}
    assert registry.generate_prompt(options, max_examples_per_tool=1).startswith(SAMPLE)
    assert registry.generate_prompt(options) == registry.generate_prompt(include_examples=True, group_by_category=True)
    every = registry.generate_prompt(options)
    assert every.replace(
        "  Example: Read a binary file as base64\n"
        '    Input: { "path": "./image.png", "encoding": "base64" }\n', ""
    ).startswith(SAMPLE)  # fmt: skip


def test_notes_come_with_the_examples_unless_something_else_is_said(registry: ToolRegistry) -> None:
    for options, shown in (
        ({}, False),
        ({"include_examples": True}, True),
        ({"include_examples": True, "include_notes": False}, False),
        ({"include_notes": True}, True),
        ({"include_examples": False}, False),
    ):
        assert ("Notes:" in registry.generate_prompt(options)) is shown, options  # type: ignore[arg-type]


def test_every_prompt_option(registry: ToolRegistry) -> None:
    options: PromptOptions = {
        "include_examples": True,
        "include_notes": False,
        "include_limitations": True,
        "group_by_category": False,
        "categories": [ToolCategory.FILE_SYSTEM],
        "max_examples_per_tool": 1,
    }
    prompt = registry.generate_prompt(options)
    assert prompt.count("Example:") == 1
    assert "    - Requires read permissions" in prompt
    for left_out in ("Notes:", "FILE SYSTEM TOOLS", "http-request"):
        assert left_out not in prompt
    with pytest.raises(ToolValidationError, match="no option 'includeExamples'; did you mean 'include_examples'"):
        registry.generate_prompt({"includeExamples": True})  # type: ignore[arg-type]


async def test_langchain(registry: ToolRegistry) -> None:
    lang_chain_tool = read_file_tool.to_langchain_tool()
    assert await lang_chain_tool.ainvoke({"path": "./test.txt"}) == "test content"
    assert lang_chain_tool.args_schema is not None
    lang_chain_tools = registry.to_langchain_tools()
    assert [each.name for each in lang_chain_tools] == ["read-file", "write-file", "web-search", "http-request"]


async def test_schema_validation() -> None:
    assert await read_file_tool.execute({"path": "./test.txt"}) == "test content"
    with pytest.raises(ToolValidationError):
        await read_file_tool.execute({"invalid": "input"})


def test_metadata_validation() -> None:
    with pytest.raises(ToolValidationError, match="invalid name with spaces"):
        create_tool().name("invalid name with spaces").build()
    assert plain("valid-name", "d", ToolCategory.CUSTOM, QUERY).name == "valid-name"


@pytest.mark.parametrize(("given", "kind"), [({"path": 1}, "validation"), ({"path": "nothing.txt"}, "execution")])
async def test_error_handling(given: dict[str, Any], kind: str) -> None:
    try:
        await read_file_tool.execute(given)
    except Exception as error:
        if isinstance(error, ToolValidationError):
            handled = "validation"
        elif isinstance(error, ToolExecutionError):
            handled = "execution"
    assert handled == kind


class TestReadFileTool:
    """The sample's own tests."""

    async def test_should_read_file_contents(self) -> None:
        result = await read_file_tool.execute({"path": "./test.txt", "encoding": "utf-8"})
        assert result == "test content"

    async def test_should_validate_input(self) -> None:
        with pytest.raises(ToolValidationError):
            await read_file_tool.execute({"path": 123})

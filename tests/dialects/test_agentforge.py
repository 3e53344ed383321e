import asyncio
import gc
import logging
import pickle
import traceback
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool
from pydantic import BaseModel, Field, SecretStr, field_validator

import toolcrib
from toolcrib.dialects import agentforge
from toolcrib.dialects.agentforge import (
    RegistryEvent,
    Tool,
    ToolCategory,
    ToolExample,
    ToolExecutionError,
    ToolExistsError,
    ToolMetadata,
    ToolRegistry,
    ToolValidationError,
    Updated,
    create_tool,
)


class ReadFile(BaseModel):
    path: str = Field(description="Path to the file to read")
    encoding: Literal["utf-8", "ascii", "base64"] = Field("utf-8", description="How to read it")


async def read_file(path: str, encoding: str) -> str:
    return Path(path).read_text(encoding)


def read_file_tool() -> Tool:
    return (
        create_tool()
        .name("read-file")
        .display_name("Read File")
        .description("Read the contents of a file from the file system")
        .category(ToolCategory.FILE_SYSTEM)
        .tags(["file", "read", "io"])
        .schema(ReadFile)
        .example(
            {
                "description": "Read a text file",
                "input": {"path": "./README.md", "encoding": "utf-8"},
                "output": "# My Project\n\nWelcome to...",
            }
        )
        .example(
            {"description": "Read a binary file as base64", "input": {"path": "./image.png", "encoding": "base64"}}
        )
        .usage_notes("Paths are relative to the current working directory")
        .limitations(["Cannot read files larger than 10MB", "Requires read permissions"])
        .implement(read_file)
        .build()
    )


def simple(name: str, category: ToolCategory = ToolCategory.FILE_SYSTEM, **parameters: str) -> Tool:
    schema = {
        "type": "object",
        "properties": {key: {"type": kind, "description": key} for key, kind in parameters.items()},
        "required": list(parameters),
    }
    builder = create_tool().name(name).description(f"The tool {name}").category(category).schema(schema)
    return builder.implement(lambda **kwargs: kwargs).build()


def test_the_builder() -> None:
    tool = read_file_tool()
    metadata = tool.metadata
    assert metadata.name == "read-file"
    assert metadata.display_name == "Read File"
    assert metadata.category is ToolCategory.FILE_SYSTEM
    assert metadata.tags == ["file", "read", "io"]
    assert [example.description for example in metadata.examples] == [
        "Read a text file",
        "Read a binary file as base64",
    ]
    assert metadata.examples[0].output == "# My Project\n\nWelcome to..."
    assert metadata.usage_notes == "Paths are relative to the current working directory"
    assert metadata.limitations == ["Cannot read files larger than 10MB", "Requires read permissions"]
    assert (metadata.version, metadata.author, metadata.deprecated, metadata.replaced_by) == (None, None, False, None)
    assert tool.schema is ReadFile


def test_the_optional_steps() -> None:
    tool = (
        create_tool()
        .name("old-tool")
        .description("d")
        .category(ToolCategory.CUSTOM)
        .schema({"type": "object"})
        .implement(lambda: None)
        .version("1.2.3-beta.1+7")
        .author("somebody")
        .deprecated("new-tool")
        .build()
    )
    metadata = tool.metadata
    assert (metadata.version, metadata.author) == ("1.2.3-beta.1+7", "somebody")
    assert (metadata.deprecated, metadata.replaced_by) == (True, "new-tool")


async def test_a_tool_reads_a_file(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("test content")
    tool = read_file_tool()
    assert await tool.execute({"path": str(tmp_path / "test.txt"), "encoding": "utf-8"}) == "test content"
    assert await tool.execute({"path": str(tmp_path / "test.txt")}) == "test content"


@pytest.mark.parametrize("wrong", [{"path": 123}, {"invalid": "input"}, {"path": "x", "encoding": "latin-1"}, {}, 7])
async def test_a_tool_validates_its_input(wrong: Any) -> None:
    with pytest.raises(ToolValidationError, match="read-file") as caught:
        await read_file_tool().execute(wrong)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, toolcrib.InvalidArgumentsError)


async def test_the_models_own_validators_count_as_validation() -> None:
    class Even(BaseModel):
        n: int = Field(description="n")

        @field_validator("n")
        @classmethod
        def _even(cls, n: int) -> int:
            if n % 2:
                raise ValueError("must be even")
            return n

    builder = create_tool().name("halve").description("d").category("utility").schema(Even)
    tool = builder.implement(lambda n: n // 2).build()
    assert await tool.execute({"n": 4}) == 2
    with pytest.raises(ToolValidationError, match="must be even"):
        await tool.execute({"n": 3})


async def test_errors_are_told_apart() -> None:
    def fail(message: str) -> None:
        raise RuntimeError(message)

    builder = create_tool().name("fail-now").description("d").category(ToolCategory.UTILITY)
    tool = (
        builder.schema({"type": "object", "properties": {"message": {"type": "string", "description": "m"}}})
        .implement(fail)
        .build()
    )
    with pytest.raises(ToolExecutionError, match="boom") as caught:
        await tool.execute({"message": "boom"})
    assert not isinstance(caught.value, ToolValidationError)
    assert isinstance(caught.value.__cause__, RuntimeError)


async def test_a_deadline_is_an_execution_error() -> None:
    async def sleep() -> None:
        await asyncio.sleep(10)

    builder = create_tool().name("sleep-long").description("d").category("utility").schema({"type": "object"})
    tool = builder.implement(sleep).timeout_seconds(0.05).build()
    with pytest.raises(ToolExecutionError, match="deadline") as caught:
        await tool.execute({})
    assert isinstance(caught.value.__cause__, TimeoutError)


async def test_wrong_input_to_another_tool_inside_is_an_execution_error() -> None:
    inner = simple("inner", n="integer")

    async def outer() -> Any:
        return await inner.execute({"n": "one"})

    builder = create_tool().name("outer").description("d").category("utility").schema({"type": "object"})
    with pytest.raises(ToolExecutionError):
        await builder.implement(outer).build().execute({})


@pytest.mark.parametrize(
    "name", ["invalid name with spaces", "ReadFile", "read_file", "-read", "read-", "r", "1read", "a" * 51, "", None]
)
def test_names_are_kebab_case(name: Any) -> None:
    with pytest.raises(ToolValidationError, match="name"):
        create_tool().name(name).build()


@pytest.mark.parametrize("step", ["name", "description", "category", "schema", "implement"])
def test_a_missing_step_is_named(step: str) -> None:
    builder = create_tool()
    given: dict[str, Any] = {
        "name": "valid-name",
        "description": "d",
        "category": ToolCategory.WEB,
        "schema": {"type": "object"},
        "implement": lambda: None,
    }
    for each, value in given.items():
        if each != step:
            getattr(builder, each)(value)
    with pytest.raises(ToolValidationError, match=rf"\.{step}\("):
        builder.build()


@pytest.mark.parametrize(
    ("step", "value", "named"),
    [
        ("category", "file-sytem", "category"),
        ("version", "1.0", "version"),
        ("version", "v1.0.0", "version"),
        ("schema", {"type": "nonsense"}, "parameters"),
        ("schema", {"type": "array"}, "parameters"),
        ("schema", 7, "schema"),
        ("implement", "not a function", "implement"),
        ("example", {"input": 3}, "examples"),
        ("example", "read-file('./README.md')", "examples of tool 'valid-name': number 1 is no object"),
        ("example", None, "examples of tool 'valid-name': number 1 is no object"),
        ("tags", [1], "tags"),
        ("tags", 5, "field 'tags' of tool 'valid-name'"),
        ("limitations", 5, "field 'limitations' of tool 'valid-name'"),
    ],
)
def test_a_wrong_step_is_named(step: str, value: Any, named: str) -> None:
    builder = create_tool().name("valid-name").description("d").category("web")
    builder.schema({"type": "object"}).implement(lambda: None)
    getattr(builder, step)(value)
    with pytest.raises(ToolValidationError, match=named):
        builder.build()


def test_parameters_without_a_description_are_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Bare(BaseModel):
        depth: int

    builder = create_tool().name("valid-name").description("d").category("web").schema(Bare)
    builder.implement(lambda depth: depth).build()
    assert "'depth'" in caplog.text
    assert "'valid-name'" in caplog.text


@pytest.fixture
def registry() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(read_file_tool())
    registry.register(simple("write-file", path="string", content="string"))
    registry.register_many([simple("web-search", ToolCategory.WEB), simple("http-request", ToolCategory.WEB)])
    return registry


def test_lookups(registry: ToolRegistry) -> None:
    file_tool = registry.get("read-file")
    assert file_tool is not None
    assert file_tool.metadata.name == "read-file"
    assert registry.get("nonsense") is None
    assert registry.has("read-file")
    assert not registry.has("nonsense")
    assert [tool.name for tool in registry.get_all()] == ["read-file", "write-file", "web-search", "http-request"]
    assert [tool.name for tool in registry.get_by_category(ToolCategory.FILE_SYSTEM)] == ["read-file", "write-file"]
    assert [tool.name for tool in registry.get_by_category("web")] == ["web-search", "http-request"]
    assert [tool.name for tool in registry.get_by_tag("io")] == ["read-file"]
    assert {tool.name for tool in registry.search("file")} == {"read-file", "write-file"}
    assert len(registry) == 4
    assert "read-file" in registry
    assert all(isinstance(tool, Tool) for tool in registry)


def test_removal_and_update(registry: ToolRegistry) -> None:
    assert registry.remove("web-search") is True
    assert registry.remove("web-search") is False
    replacement = simple("write-file", path="string")
    assert registry.update("write-file", replacement) is True
    assert registry.get("write-file") is replacement
    assert registry.update("nonsense", simple("nonsense")) is False
    with pytest.raises(ToolValidationError, match=r"'write-file'.*'other-file'"):
        registry.update("write-file", simple("other-file"))
    assert registry.get("write-file") is replacement
    registry.clear()
    assert registry.get_all() == []


def test_duplicates_leave_nothing_behind(registry: ToolRegistry) -> None:
    way_out = r"'read-file' exists already; give one another name, or replace it with update\(name, tool\)$"
    with pytest.raises(ToolExistsError, match=way_out):
        registry.register(read_file_tool())
    for many in ([simple("new-a"), simple("new-a")], [simple("new-a"), simple("read-file")], [simple("new-a"), 7]):
        with pytest.raises((ToolExistsError, ToolValidationError)):
            registry.register_many(many)
    assert not registry.has("new-a")


def test_the_prompt(registry: ToolRegistry) -> None:
    prompt = registry.generate_prompt(
        include_examples=True, include_notes=True, group_by_category=True, max_examples_per_tool=1
    )
    assert prompt.startswith(
        """\
Available Tools:

FILE SYSTEM TOOLS:
- read-file: Read the contents of a file from the file system
  Parameters: path (string), encoding (utf-8|ascii|base64)
  Example: Read a text file
    Input: { "path": "./README.md", "encoding": "utf-8" }
  Notes: Paths are relative to the current working directory

- write-file: The tool write-file
  Parameters: path (string), content (string)

WEB TOOLS:
- web-search: The tool web-search
"""
    )
    assert "read-file" not in registry.generate_prompt(categories=[ToolCategory.WEB])
    assert ToolRegistry().generate_prompt() == "No tools available."


async def test_langchain(registry: ToolRegistry, tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("test content")
    tools = registry.to_langchain_tools()
    assert [tool.name for tool in tools] == ["read-file", "write-file", "web-search", "http-request"]
    assert all(isinstance(tool, StructuredTool) for tool in tools)
    one = read_file_tool().to_langchain_tool()
    assert await one.ainvoke({"path": str(tmp_path / "test.txt")}) == "test content"
    for structured in (one, tools[0]):
        with pytest.raises(ToolValidationError):
            await structured.ainvoke({"path": 123})
        with pytest.raises(ToolExecutionError):
            await structured.ainvoke({"path": str(tmp_path / "nothing.txt")})


async def test_a_failure_and_a_deadline_are_said_once() -> None:
    async def sleep(long: bool) -> None:
        await asyncio.sleep(10 if long else 0)
        raise RuntimeError("boom")

    builder = create_tool().name("sleep").description("d").category("utility")
    schema = {"type": "object", "properties": {"long": {"type": "boolean", "description": "l"}}}
    tool = builder.schema(schema).implement(sleep).timeout_seconds(0.05).build()
    registry = ToolRegistry()
    registry.register(tool)
    for run in (tool.execute, tool.to_langchain_tool().ainvoke, registry.to_langchain_tools()[0].ainvoke):
        with pytest.raises(ToolExecutionError) as deadline:
            await run({"long": True})
        assert str(deadline.value) == "tool 'sleep' passed its deadline of 0.05 s; it was stopped"
        with pytest.raises(ToolExecutionError) as failure:
            await run({"long": False})
        assert str(failure.value) == "tool 'sleep' failed: RuntimeError: boom"
        assert failure.value.reason == "RuntimeError: boom"


def test_events() -> None:
    registry, heard = ToolRegistry(), list[Any]()
    first, second = simple("a-tool"), simple("a-tool", path="string")
    registry.on("tool:registered", lambda tool: heard.append(("registered", tool)))
    registry.on(RegistryEvent.TOOL_UPDATED, lambda name, tool: heard.append(("updated", name, tool)))
    registry.on("tool:updated", lambda update: heard.append((update.name, update["name"], update.tool, update["tool"])))
    registry.on("tool:removed", lambda tool: heard.append(("removed", tool)))
    registry.on("registry:cleared", lambda: heard.append("cleared"))
    registry.register(first)
    registry.update("a-tool", second)
    registry.remove("a-tool")
    registry.clear()
    assert heard == [
        ("registered", first),
        ("updated", "a-tool", second),
        ("a-tool", "a-tool", second, second),
        ("removed", second),
        "cleared",
    ]


def test_handlers_of_every_shape() -> None:
    registry, heard = ToolRegistry(), list[Any]()
    tool = simple("a-tool")
    registry.on("tool:registered", lambda: heard.append(()))
    registry.on("tool:registered", lambda name, tool: heard.append((name, tool)))
    registry.on("tool:registered", lambda *payload: heard.append(payload))
    registry.on("tool:registered", heard.append)
    registry.on("tool:updated", lambda *payload: heard.append(payload))
    registry.on("tool:updated", lambda: heard.append(()))
    registry.on("registry:cleared", lambda *payload: heard.append(payload))
    registry.on("registry:cleared", heard.append)
    registry.register(tool)
    assert heard == [(), ("a-tool", tool), (tool,), tool]
    heard.clear()
    registry.update("a-tool", tool)
    registry.clear()
    assert heard == [("a-tool", tool), (), (), None]


def test_a_handlers_defaults_are_its_own() -> None:
    registry, heard = ToolRegistry(), list[Any]()
    tool = simple("a-tool")
    for name in ("x", "y"):
        for event in RegistryEvent:
            registry.on(event, lambda payload, name=name, *, more=1: heard.append((payload, name, more)))
    registry.on("tool:registered", lambda payload=None: heard.append(payload))
    registry.register(tool)
    registry.update("a-tool", tool)
    registry.remove("a-tool")
    registry.clear()
    updated = Updated("a-tool", tool)
    assert heard == [
        (tool, "x", 1), (tool, "y", 1), tool, (updated, "x", 1), (updated, "y", 1), (tool, "x", 1), (tool, "y", 1),
        (None, "x", 1), (None, "y", 1),
    ]  # fmt: skip


def test_without_a_loop_an_async_handler_runs_to_its_end(caplog: pytest.LogCaptureFixture) -> None:
    registry, heard = ToolRegistry(), list[Any]()

    async def later(tool: Tool) -> None:
        await asyncio.sleep(0)
        heard.append(tool.name)
        raise RuntimeError("broken later")

    registry.on("tool:registered", later)
    registry.register(simple("a-tool"))
    registry.register(simple("b-tool"))
    assert heard == ["a-tool", "b-tool"]
    assert caplog.text.count("RuntimeError: broken later") == 2
    registry.off("tool:registered", later)
    registry.register(simple("c-tool"))
    assert heard == ["a-tool", "b-tool"]


async def test_on_a_loop_an_async_handler_is_a_task_that_is_held(caplog: pytest.LogCaptureFixture) -> None:
    registry, going_on, done = ToolRegistry(), asyncio.Event(), asyncio.Event()

    async def later(tool: Tool, when: asyncio.Event = going_on) -> None:
        await when.wait()
        done.set()
        raise RuntimeError("broken later")

    registry.on("tool:registered", later)
    registry.register(simple("a-tool"))
    assert not done.is_set()
    gc.collect()
    going_on.set()
    await done.wait()
    await asyncio.sleep(0)
    assert "a handler of 'tool:registered' raised" in caplog.text
    assert "broken later" in caplog.text


@pytest.mark.parametrize(
    ("example", "lacks"),
    [
        ({"input": {}}, "lacks its 'description'"),
        ({"description": "", "input": {}}, "lacks its 'description'"),
        ({"description": "d"}, "lacks its 'input'"),
        ({}, "lacks its 'description' and 'input'"),
        (ToolExample(description="d"), "lacks its 'input'"),
        (ToolExample(input={"a": 1}), "lacks its 'description'"),
    ],
)
def test_an_example_says_what_it_shows_and_with_which_input(example: Any, lacks: str) -> None:
    builder = create_tool().name("valid-name").description("d").category("web").schema({"type": "object"})
    builder.implement(lambda: None).example({"description": "d", "input": {}}).example(example)
    with pytest.raises(ToolValidationError) as refused:
        builder.build()
    assert str(refused.value) == f"the examples of tool 'valid-name': number 2 {lacks}"
    if not isinstance(example, ToolExample):
        with pytest.raises(ToolValidationError, match=lacks):
            ToolMetadata("valid-name", "d", "web", examples=[example])


class Nested(BaseModel):
    at: datetime = Field(description="When")
    key: SecretStr = Field(description="A secret")


class Order(BaseModel):
    what: str = Field(description="What", alias="what-is-it")
    nested: Nested = Field(description="More")
    count: int = Field(3, description="How many")


async def test_an_instance_of_the_schema_is_input_too() -> None:
    seen = list[Any]()
    builder = create_tool().name("take-order").description("d").category("web").schema(Order)
    tool = builder.implement(lambda what, nested, count: seen.append((what, nested, count))).build()
    nested = Nested(at=datetime(2030, 1, 2, tzinfo=UTC), key=SecretStr("s3cret"))
    order = Order.model_validate({"what-is-it": "tea", "nested": nested})
    await tool.execute(order)
    assert seen == [("tea", nested, 3)]
    wrong_type: dict[str, Any] = {"what": 7, "nested": nested}
    for wrong in (nested, Order.model_construct(**wrong_type)):
        with pytest.raises(ToolValidationError, match="'take-order'"):
            await tool.execute(wrong)
    assert len(seen) == 1


async def test_an_instance_is_as_good_as_a_mapping_for_a_json_schema() -> None:
    assert await simple("a-tool", path="string").execute(OnlyPath(path="x")) == {"path": "x"}


class OnlyPath(BaseModel):
    path: str


async def test_errors_go_by_their_public_names() -> None:
    tool = read_file_tool()
    for wrong, name in (({"path": 1}, "InvalidInputError"), ({"path": "/nothing"}, "ToolExecutionError")):
        with pytest.raises(toolcrib.ToolcribError) as caught:
            await tool.execute(wrong)
        public = getattr(agentforge, name)
        assert name in agentforge.__all__
        assert type(caught.value) is public
        again = pickle.loads(pickle.dumps(caught.value))
        assert (type(again), str(again), again.__dict__) == (public, str(caught.value), caught.value.__dict__)
        assert repr(caught.value).startswith(f"{name}(")
        assert f"\ntoolcrib.dialects.agentforge.{name}: " in "".join(traceback.format_exception(caught.value))
    registry = ToolRegistry()
    with pytest.raises(ToolExistsError) as exists:
        registry.register_many([tool, tool])
    assert "toolcrib.ToolExistsError: " in traceback.format_exception_only(exists.value)[0]
    assert type(pickle.loads(pickle.dumps(exists.value))) is toolcrib.ToolExistsError


def test_a_handler_that_raises_harms_nobody(caplog: pytest.LogCaptureFixture) -> None:
    registry, heard = ToolRegistry(), list[Any]()

    def broken(tool: Any) -> None:
        raise RuntimeError("broken handler")

    registry.on("tool:registered", broken)
    registry.on("tool:registered", heard.append)
    registry.register(simple("a-tool"))
    assert registry.has("a-tool")
    assert len(heard) == 1
    assert "broken handler" in caplog.text


def test_handlers_go_away() -> None:
    registry, heard = ToolRegistry(), list[Any]()

    def handler(tool: Any) -> None:
        heard.append(tool)

    registry.on("tool:registered", handler)
    registry.off("tool:registered", handler)
    registry.off("tool:registered", print)
    registry.register(simple("a-tool"))
    assert heard == []


def test_wrong_events_and_handlers_are_refused() -> None:
    for event, handler in (("tool:regstered", print), ("tool:registered", 7)):
        with pytest.raises(ToolValidationError):
            ToolRegistry().on(event, handler)  # type: ignore[arg-type]


async def test_any_other_tool_can_join() -> None:
    @toolcrib.tool
    def greet(who: str) -> str:
        """Greet somebody."""
        return f"Hello, {who}"

    registry = ToolRegistry()
    registry.register(greet)
    joined = registry.get("greet")
    assert joined is not None
    assert await joined.execute({"who": "you"}) == "Hello, you"
    with pytest.raises(ToolValidationError):
        await joined.execute({})
    result = await registry.core.execute("greet", {})
    assert result.error_code == "invalid_arguments"


async def test_these_tools_join_any_other_registry(tmp_path: Path) -> None:
    (tmp_path / "test.txt").write_text("test content")
    registry = toolcrib.ToolRegistry([read_file_tool()])
    result = await registry.execute("read-file", {"path": str(tmp_path / "test.txt")})
    assert result.data == "test content"


texts = st.text(max_size=20)
metadata_records = st.builds(
    ToolMetadata,
    name=st.from_regex(r"[a-z][a-z0-9-]{0,20}[a-z0-9]", fullmatch=True),
    description=texts,
    category=st.sampled_from(ToolCategory) | texts,
    display_name=st.none() | texts,
    tags=st.lists(texts, max_size=3),
    examples=st.lists(
        st.builds(
            ToolExample,
            description=texts,
            input=st.dictionaries(texts, st.integers(-(2**63), 2**64) | texts, max_size=2),
            output=st.none() | texts | st.lists(st.booleans()),
            explanation=texts,
        ),
        max_size=2,
    ),
    usage_notes=st.none() | texts,
    limitations=st.lists(texts, max_size=2),
    version=st.none() | st.just("1.2.3"),
    author=st.none() | texts,
    deprecated=st.booleans(),
    replaced_by=st.none() | texts,
)


@given(metadata_records)
def test_metadata_to_spec_and_back(metadata: ToolMetadata) -> None:
    spec = metadata.to_spec()
    assert ToolMetadata.from_spec(spec) == metadata
    assert ToolMetadata.from_spec(toolcrib.ToolSpec.from_json(spec.to_json())) == metadata


def test_the_log_is_quiet_for_a_described_tool(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        read_file_tool()
    assert caplog.text == ""

"""BaseTool as a class, create_tool() as a builder: each wrong or missing step is named."""

import logging
from typing import Any

import pytest
from pydantic import BaseModel, Field

from toolcrib import (
    BaseTool,
    InvalidArgumentsError,
    InvalidSchemaError,
    ToolContext,
    ToolExample,
    ToolSpec,
    ToolValidationError,
    tool,
)
from toolcrib.core.spec import Isolation
from toolcrib.core.tool import Tool
from toolcrib.define import ToolBuilder, as_tool, create_tool, make_tool


class Greet(BaseTool):
    """Greet somebody."""

    tags = ("demo",)
    timeout_seconds = 60.0

    def __init__(self, greeting: str = "Hello") -> None:
        self.greeting = greeting

    async def execute(self, who: str, polite: bool = True) -> str:
        return f"{self.greeting}, {who}{'.' if polite else '!'}"


class Described(BaseTool):
    spec = ToolSpec(name="described", description="By a whole spec.", category="demo")

    def execute(self, n: int) -> int:
        return n + 1


async def test_a_class_or_an_instance_becomes_a_tool() -> None:
    made = as_tool(Greet)
    assert (made.name, made.spec.description, made.spec.tags) == ("greet", "Greet somebody.", ("demo",))
    assert made.spec.timeout_seconds == 60.0
    assert made.spec.parameters["required"] == ["who"]
    assert await made.execute({"who": "Ann"}) == "Hello, Ann."
    assert await as_tool(Greet("Hi")).execute({"who": "Ann", "polite": False}) == "Hi, Ann!"
    described = as_tool(Described)
    assert (described.name, described.spec.category) == ("described", "demo")
    assert await described.execute({"n": 1}) == 2


def test_what_is_not_a_tool_is_refused_by_name() -> None:
    class Plain:
        pass

    class Needy(BaseTool):
        """Needs something."""

        def __init__(self, needed: int) -> None: ...

        def execute(self) -> None: ...

    class Unwritten(BaseTool):
        """No code."""

    for thing, says in [
        (Plain, "'Plain' is not a tool"),
        (Needy, "'Needy' cannot be made"),
        (Unwritten, "'Unwritten' cannot be made"),
        (3, "3 is not a tool"),
        (None, "None is not a tool"),
    ]:
        with pytest.raises(ToolValidationError, match=says):
            as_tool(thing)


def test_a_class_may_leave_the_description_to_its_code() -> None:
    class HTTPGet(BaseTool):
        def execute(self, url: str) -> str:
            """Fetch a page.

            Args:
                url: Where it is.
            """
            return url

    made = as_tool(HTTPGet)
    assert (made.name, made.description) == ("http_get", "Fetch a page.")
    assert made.spec.parameters["properties"]["url"]["description"] == "Where it is."


@pytest.mark.parametrize(
    ("name", "expected"),
    [("Greet", "greet"), ("ReadFile", "read_file"), ("SQLQuery", "sql_query"), ("ToJSON", "to_json"), ("A", "a")],
)
def test_names_of_classes_are_read_as_words(name: str, expected: str) -> None:
    assert as_tool(type(name, (Greet,), {"__doc__": "Greet."})).name == expected


async def test_execute_may_be_a_tool_already() -> None:
    class Twice(BaseTool):
        """Twice."""

        @tool
        def execute(self, n: int, context: ToolContext) -> str:  # type: ignore[override] # type checkers see it
            """Run."""
            return f"{2 * n} {context.principal}"

    made = as_tool(Twice())
    assert list(made.spec.parameters["properties"]) == ["n"]
    assert await made.execute({"n": 2}, context=ToolContext("ada")) == "4 ada"


async def test_an_instance_under_another_name() -> None:
    made = make_tool(Greet("Hi"), name="greet-kindly", tags=["kind"])
    assert (made.name, made.spec.description, made.spec.tags) == ("greet-kindly", "Greet somebody.", ("kind",))
    assert await made.execute({"who": "Ann"}) == "Hi, Ann."


def test_an_attribute_that_is_nearly_a_field_is_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    class Careless(Greet):
        """Greet."""

        saftey_level = "dangerous"
        volume = 11

    with caplog.at_level(logging.WARNING):
        as_tool(Careless)
    says = "attribute 'saftey_level' of class 'Careless' is no field of a tool; did you mean 'safety_level'?"
    assert caplog.messages == [says]


class ReadFile(BaseModel):
    path: str = Field(description="Path of the file.")
    encoding: str = Field("utf-8", description="How it is encoded.")


def complete() -> ToolBuilder:
    return (
        create_tool()
        .name("read-file")
        .display_name("Read File")
        .description("Read a file")
        .category("file-system")
        .tags(["file"])
        .schema(ReadFile)
        .example({"description": "Read it", "input": {"path": "x"}})
        .example(ToolExample(description="Again", input={"path": "y"}))
        .usage_notes("Relative to here")
        .limitations(["10 MB"])
        .version("1.2.3")
        .author("Ann")
        .deprecated("read-text")
        .implement(lambda path, encoding: f"{path} as {encoding}")
    )


async def test_the_whole_builder() -> None:
    made: Tool = complete().build()
    spec = made.spec
    assert (spec.name, spec.display_name, spec.category, spec.tags) == (
        "read-file",
        "Read File",
        "file-system",
        ("file",),
    )
    assert [example.input for example in spec.examples] == [{"path": "x"}, {"path": "y"}]
    assert (spec.version, spec.author, spec.deprecated, spec.replaced_by) == ("1.2.3", "Ann", True, "read-text")
    assert (spec.usage_notes, spec.limitations) == ("Relative to here", ("10 MB",))
    assert await made.execute({"path": "x"}) == "x as utf-8"
    with pytest.raises(InvalidArgumentsError, match="'path'"):
        await made.execute({"path": 123})


async def test_a_json_schema_will_do_and_async_code_too() -> None:
    async def double(n: int) -> int:
        return 2 * n

    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": "N."}}, "required": ["n"]}
    made = create_tool().name("double").description("Double").schema(schema).implement(double).build()
    assert await made.execute({"n": 4}) == 8
    assert made.spec.isolation == "inline"


@pytest.mark.parametrize("isolation", ["inline", "process"])
async def test_the_context_is_filled_in(isolation: Isolation) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer", "description": "N."}}, "required": ["n"]}
    builder = create_tool().name("who").description("Who.").schema(schema).implement(who_calls)
    made = make_tool(builder.build(), isolation=isolation)
    assert await made.execute({"n": 4}, context=ToolContext("ada")) == "ada 4"


def who_calls(n: int, context: "ToolContext | None" = None, unread: "Nowhere" = 0) -> str:  # type: ignore[name-defined]  # noqa: F821
    return f"{context.principal if context else None} {n}"


@pytest.mark.parametrize("missing", ["name", "description", "schema", "implement"])
def test_a_missing_step_is_named(missing: str) -> None:
    steps: dict[str, Any] = {"name": "a", "description": "b", "schema": ReadFile, "implement": print}
    builder = create_tool()
    for step, value in steps.items():
        if step != missing:
            getattr(builder, step)(value)
    with pytest.raises(ToolValidationError, match=rf"lacks \.{missing}\("):
        builder.build()


def test_a_wrong_step_is_named() -> None:
    with pytest.raises(ToolValidationError, match="'no name'"):
        complete().name("no name").build()
    with pytest.raises(InvalidSchemaError, match="'read-file'"):
        complete().schema({"type": "objekt"}).build()
    with pytest.raises(ToolValidationError, match=r"\.schema\(\) of tool 'read-file'"):
        complete().schema("path").build()  # type: ignore[arg-type]
    with pytest.raises(ToolValidationError, match=r"\.implement\(\) of tool 'read-file'"):
        complete().implement("code").build()  # type: ignore[arg-type]
    with pytest.raises(ToolValidationError, match="'examples"):
        complete().example({"inputs": {}}).build()


def test_a_parameter_without_description_is_worth_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    with caplog.at_level(logging.WARNING):
        create_tool().name("a").description("b").schema(schema).implement(print).build()
    assert "'n' of tool 'a' has no description" in caplog.text

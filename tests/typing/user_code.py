"""Code as a user writes it. Nobody runs it: mypy reads it, and a type that changes under a user's feet is an error."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar, assert_type

from toolcrib import (
    BaseTool,
    Catalogue,
    SafetyLevel,
    Tool,
    ToolContext,
    ToolNotFoundError,
    ToolRegistry,
    ToolResult,
    ToolSpec,
    create_tool,
    open_catalogue,
    tool,
)
from toolcrib.define import make_tool
from toolcrib.dialects import brain
from toolcrib.layers import retry

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool(name="who", tags=["demo"], timeout_seconds=2.5, safety_level=SafetyLevel.LOW_RISK)
async def who_calls(context: ToolContext) -> str:
    """Say who calls."""
    return context.principal


@tool("items", safety_level="medium")
async def items(count: int) -> AsyncIterator[int]:
    """Count."""
    for each in range(count):
        yield each


def plain(text: str) -> str:
    """Nothing."""
    return text


@tool()
def words(text: str, /, *more: str, upper: bool = False, **counts: int) -> Iterator[str]:
    """Words."""
    yield text


@tool
def first(things: list[T]) -> T:
    """The first."""
    return things[0]


def traced(function: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
    return function


@tool
@traced
async def look(page: int, deep: bool = False) -> str:
    """Look."""
    return str(page)


@dataclass
class Notes(Generic[T]):
    notes: list[T]

    @tool
    def find(self, note: T, *, limit: int = 1) -> list[T]:
        """Find."""
        return self.notes[:limit]

    @classmethod
    @tool
    def count(cls, word: str) -> int:
        """Count."""
        return len(word)


async def use_the_functions(notes: Notes[int]) -> None:
    for each in words("a", "b", upper=True, n=1):
        assert_type(each, str)
    assert_type(first([1]), int)
    assert_type(await look(1, deep=True), str)
    assert_type(notes.find(1, limit=2), list[int])
    assert_type(notes.count("a"), int)
    function: Callable[[int], Awaitable[str]] = look
    assert_type(await function(1), str)
    assert_type(partial(add, 1)(b=2), int)
    assert_type(await add.execute({"a": 1}), Any)
    named: dict[str, Tool] = {"words": words, "find": notes.find}
    assert_type(named["find"].spec.tags, tuple[str, ...])
    assert_type(tool("find-notes", tags=["notes"])(notes.find)(1), list[int])
    assert_type(make_tool(partial(plain, "x"), name="x"), Tool)
    assert_type(make_tool(Greet(), name="greet-kindly"), Tool)


class Files:
    def __init__(self, root: str) -> None:
        self.root = root

    @tool
    def read(self, path: str) -> str:
        """Read."""
        return self.root + path

    @tool(tags=("files",))
    async def write(self, path: str, text: str = "") -> int:
        """Write."""
        return len(path + text)


async def use_the_methods(files: Files) -> None:
    assert_type(files.read("a"), str)
    assert_type(await files.write("a", text="b"), int)
    assert_type(files.read.spec, ToolSpec)
    assert_type(Files.read(files, "a"), str)
    async for each in items(3):
        assert_type(each, int)


class Greet(BaseTool):
    name = "greet"
    description = "Greet somebody."
    tags = ("demo",)

    async def execute(self, who: str, polite: bool = True) -> str:
        return f"Good day, {who}." if polite else f"Hi {who}!"


def approve(spec: ToolSpec, arguments: Mapping[str, Any]) -> bool:
    return spec.safety_level < SafetyLevel.DANGEROUS and bool(arguments)


async def use_the_registry() -> None:
    assert_type(add(1, b=2), int)
    assert_type(await who_calls(ToolContext()), str)
    anything: Tool = add
    assert_type(anything(), Any)
    several: list[Tool] = [add, who_calls]
    assert_type([each.spec for each in several], list[ToolSpec])
    registry = ToolRegistry([add, Greet], approve=approve)
    assert_type(registry.register(add)(1), int)
    assert_type(registry.register(plain)("x"), str)
    assert_type(registry.register(Greet), Tool)
    assert_type(registry.register(Greet()), Tool)
    assert_type(registry.register(Files("/")), list[Tool])
    assert_type(registry.register(Files), list[Tool])
    assert_type(registry.register_many([Files("/"), add]), list[Tool])
    built = create_tool().name("noop").description("Do nothing.").schema({"type": "object"}).implement(print).build()
    assert_type(built, Tool)
    assert_type(registry.get("add").spec, ToolSpec)
    assert_type(registry.get_by_tag("demo"), list[Tool])
    assert_type(registry.definitions("openai"), list[dict[str, Any]])
    assert_type(registry.generate_prompt(), str)
    registry.use(retry(), tools=["add"])
    answers = await registry.execute_calls({"role": "assistant", "content": "Hello."}, timeout_seconds=5, at_once=2)
    messages: list[dict[str, Any]] = [*answers]
    assert_type(answers.terminal, ToolResult | None)
    assert_type(len(messages), int)
    result = await registry.execute("add", {"a": 1})
    assert_type(result, ToolResult)
    assert_type(result.error_code, str | None)
    for found in registry:
        assert_type(found, Tool)
    try:
        registry.get("nothing")
    except ToolNotFoundError as error:
        assert_type(error.name, str)


async def use_the_catalogue() -> None:
    catalogue = open_catalogue("memory:")
    assert_type(catalogue, Catalogue)
    catalogue.publish(ToolSpec(name="add", description="Add."))
    assert_type(catalogue.get("add"), ToolSpec)
    assert_type(catalogue.tool("add"), Tool)
    for hit in catalogue.search("add", limit=3):
        assert_type(hit.spec, ToolSpec)
        assert_type(hit.score, float)


def use_the_brain() -> None:
    registry = brain.ToolRegistry("tools.json")
    assert_type(registry.get_tool("playwright"), brain.ToolMetadata | None)
    assert_type(registry.list_tools(tool_type="browser"), list[brain.ToolMetadata])
    assert_type(registry.check_compatibility(["a", "b"]), bool)

"""@tool: schemas from annotations, descriptions from docstrings, a context that models never see."""

import asyncio
import datetime
import enum
import json
from typing import Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from toolcrib import (
    InvalidArgumentsError,
    InvalidNameError,
    InvalidOutputError,
    Tool,
    ToolContext,
    ToolValidationError,
    tool,
)
from toolcrib.define import make_tool


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    x: int
    y: int = 3


def properties(made: Tool) -> dict[str, Any]:
    found: dict[str, Any] = made.spec.parameters["properties"]
    return found


def test_plain_annotations_become_a_schema() -> None:
    @tool
    def search(
        query: str,
        limit: int = 10,
        ratio: float = 0.5,
        tags: list[str] | None = None,
        mode: Literal["fast", "exact"] = "fast",
        extra: Optional[dict[str, int]] = None,  # noqa: UP045 - the older spelling must work too
    ) -> list[str]:
        """Search."""
        return [query]

    assert search.spec.parameters == {
        "type": "object",
        "properties": {
            "query": {"type": "string"},
            "limit": {"type": "integer", "default": 10},
            "ratio": {"type": "number", "default": 0.5},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}], "default": None},
            "mode": {"enum": ["fast", "exact"], "type": "string", "default": "fast"},
            "extra": {
                "anyOf": [{"type": "object", "additionalProperties": {"type": "integer"}}, {"type": "null"}],
                "default": None,
            },
        },
        "required": ["query"],
        "additionalProperties": False,
    }
    assert search.spec.returns == {"type": "array", "items": {"type": "string"}}
    assert (search.spec.execution_mode, search.spec.isolation) == ("sync", "thread")
    assert search("x") == ["x"], "the decorated function is still a function"


async def test_rich_types_arrive_as_what_the_annotations_promise() -> None:
    seen: list[Any] = []

    @tool
    async def plan(
        when: datetime.datetime,
        where: Point,
        colour: Colour = Colour.RED,
        many: Annotated[int, Field(ge=1, description="How many.")] = 2,
        size: int = Field(3, le=9),
    ) -> dict[str, int]:
        """Plan."""
        seen.extend([when, where, colour, many, size])
        return {"n": many}

    assert await plan.execute({"when": "2026-01-02T03:04:05", "where": {"x": 1}, "many": 4.0}) == {"n": 4}
    assert seen == [datetime.datetime(2026, 1, 2, 3, 4, 5), Point(x=1), Colour.RED, 4, 3]
    assert properties(plan)["many"] == {"type": "integer", "minimum": 1, "description": "How many.", "default": 2}
    assert properties(plan)["where"] == {"$ref": "#/$defs/Point"}
    json.dumps(plan.spec.to_dict())
    with pytest.raises(InvalidArgumentsError, match="'when'"):
        await plan.execute({"when": "yesterday", "where": {"x": 1}})
    with pytest.raises(InvalidArgumentsError, match="'where.x'"):
        await plan.execute({"when": "2026-01-02T03:04:05", "where": {"x": "1"}})


def test_two_models_of_one_name_do_not_mix() -> None:
    def other() -> type[BaseModel]:
        class Point(BaseModel):
            label: str

        return Point

    Other = other()

    def draw(a: Point, b: Any) -> None:
        """Draw."""

    draw.__annotations__["b"] = Other
    made = tool(draw)
    assert len(made.spec.parameters["$defs"]) == 2
    assert made.validate({"a": {"x": 1}, "b": {"label": "l"}})
    with pytest.raises(InvalidArgumentsError):
        made.validate({"a": {"label": "l"}, "b": {"x": 1}})


GOOGLE = """Do it.

    At length.

    Args:
        a: The first,
            and more of it.
        b (int): The second.

    Returns:
        The sum.
    """
NUMPY = """Do it.

    At length.

    Parameters
    ----------
    a : int
        The first,
        and more of it.
    b : int, optional
        The second.

    Returns
    -------
    int
        The sum.
    """
SPHINX = """Do it.

    At length.

    :param a: The first, and more of it.
    :param int b: The second.
    :returns: The sum.
    """


@pytest.mark.parametrize("docstring", [GOOGLE, NUMPY, SPHINX])
def test_descriptions_come_from_docstrings(docstring: str) -> None:
    def add(a: int, b: int = 1) -> int:
        return a + b

    add.__doc__ = docstring
    made = tool(add)
    assert made.spec.description == "Do it.\n\nAt length."
    assert properties(made)["a"]["description"] == "The first, and more of it."
    assert properties(made)["b"]["description"] == "The second."
    assert made.spec.returns_description == "The sum."


async def test_the_context_is_injected_and_never_shown() -> None:
    @tool
    async def whoami(prefix: str, context: ToolContext) -> str:
        """Say who calls."""
        return f"{prefix}{context.principal}{context.values.get('n')}"

    assert list(properties(whoami)) == ["prefix"]
    assert await whoami.execute({"prefix": ">"}, context=ToolContext("ann", {"n": 1})) == ">ann1"
    assert await whoami.execute({"prefix": ">"}) == ">None"
    with pytest.raises(InvalidArgumentsError, match="'context'"):
        await whoami.execute({"prefix": ">", "context": {"principal": "root"}})


def test_fields_given_to_the_decorator_come_first() -> None:
    @tool("other-name", description="Said here.", tags=["a"], category="c", metadata={"k": 1})
    def f() -> None:
        """Said there."""

    assert (f.spec.name, f.spec.description, f.spec.tags) == ("other-name", "Said here.", ("a",))
    assert (f.spec.category, f.spec.metadata) == ("c", {"k": 1})


def test_wrong_definitions_say_what_is_wrong() -> None:
    def undocumented(a: int) -> None: ...

    def untyped(a: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
        """U."""

    class NotSchema:
        pass

    def odd(a: NotSchema) -> None:
        """O."""

    def fine() -> None:
        """F."""

    cases: list[tuple[Any, str]] = [
        (lambda: tool(undocumented), "'undocumented' has no description"),
        (lambda: tool(untyped), "'untyped' cannot be read"),
        (lambda: tool(odd), "'a' in tool 'odd' has no JSON Schema"),
        (lambda: make_tool(fine, colour="red"), "'colour'"),  # type: ignore[call-arg]
        (lambda: tool(timeout_second=5)(fine), "not exist; did you mean 'timeout_seconds'"),  # type: ignore[call-overload]
        (lambda: tool(isolation="inline", timeout_seconds=1)(fine), "nobody can stop it"),
        (lambda: tool(NotSchema), "not a function"),
    ]
    for make, says in cases:
        with pytest.raises(ToolValidationError, match=says):
            make()
    with pytest.raises(InvalidNameError, match="'no name'"):
        tool(name="no name")(fine)


async def test_what_the_output_schema_forbids_is_an_error() -> None:
    @tool
    async def count() -> int:
        """Count."""
        return "three"  # type: ignore[return-value]

    @tool
    async def place() -> Point:
        """Place."""
        return Point(x=1)

    with pytest.raises(InvalidOutputError, match="'count' returned what its output schema forbids"):
        await count.execute()
    assert await place.execute() == Point(x=1)


def test_a_function_of_any_keywords_takes_them() -> None:
    @tool
    def anything(a: int, **more: Any) -> dict[str, Any]:
        """Take anything."""
        return {"a": a, **more}

    assert asyncio.run(anything.execute({"a": 1, "b": 2})) == {"a": 1, "b": 2}


def test_types_local_to_a_function_are_found() -> None:
    class Local(BaseModel):
        n: int

    namespace: dict[str, Any] = {"tool": tool, "Local": Local}
    exec(
        "from __future__ import annotations\n"
        "def outer():\n"
        "    from pydantic import BaseModel\n"
        "    class Inner(BaseModel):\n"
        "        n: int\n"
        "    @tool\n"
        "    def f(a: Inner) -> None:\n"
        "        'F.'\n"
        "    return f\n",
        namespace,
    )
    assert "Inner" in namespace["outer"]().spec.parameters["$defs"]

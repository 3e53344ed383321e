"""Signatures as people write them: each is taken, with its schema and a call that works, or refused with a sentence."""

import asyncio
import datetime
import decimal
import enum
import functools
import pathlib
import sys
import types
import typing
import uuid
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import (
    Annotated,
    Any,
    Concatenate,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    ParamSpec,
    Required,
    Self,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
)

import pytest
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr
from typing_extensions import TypeAliasType

from toolcrib import InvalidArgumentsError, Tool, ToolContext, ToolRegistry, ToolResult, ToolValidationError, tool
from toolcrib.core.spec import Isolation
from toolcrib.define import make_tool

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
Limited = TypeVar("Limited", bound=int)
UserId = NewType("UserId", int)
Names = TypeAliasType("Names", list[str])


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]
    name: str


class Box(BaseModel, Generic[T]):
    content: T


class Tree(BaseModel):
    label: str
    children: "list[Tree]" = []


class Place(TypedDict):
    city: str
    street: NotRequired[str]


class Person(TypedDict, total=False):
    name: Required[str]
    age: int
    home: Place


class Link(TypedDict):
    to: "Link | None"


class Options(TypedDict, total=False):
    limit: int
    since: datetime.date
    query: Required[str]


class Pair(NamedTuple):
    first: int
    second: str = "b"


@dataclass
class Point:
    x: int
    labels: list[str] = field(default_factory=list)


class Unknown:
    pass


class Corner(enum.Enum):
    LEFT = (0, 1)
    DAY = datetime.date(2026, 1, 2)


class Account(BaseModel):
    user: str = "ada"
    key: SecretStr = SecretStr("hunter2")


class Patch(BaseModel):
    name: str | None = None
    age: int | None = None
    where: pathlib.Path | str = pathlib.Path()
    note: str = Field("", exclude=True)


# Functions of a module, so that each isolation can find them by name.


def returns_bytes(text: str) -> bytes:
    """Encode."""
    return text.encode() + b"\xff"


def star(*args: int) -> int:
    """Sum."""
    return sum(args)


def star_after(first: str, second: int = 2, *args: int, last: str = "z") -> str:
    """Join."""
    return f"{first} {second} {args} {last}"


def star_of_types(*args: Unpack[tuple[int, str]]) -> str:  # noqa: UP044 - as before Python 3.11
    """Join."""
    return f"{args}"


def positional_only(a: int, b: int = 2, /, c: int = 3) -> str:
    """Join."""
    return f"{a} {b} {c}"


def positional_context(context: ToolContext, a: int, /) -> str:
    """Say who."""
    return f"{context.principal} {a}"


def optional_context(a: int, context: ToolContext | None = None) -> str:
    """Say who."""
    return f"{context.principal if context else None} {a}"


def typed_dict(who: Person) -> str:
    """Describe."""
    return f"{sorted(who)} {who.get('home')}"


def typed_dict_inside(people: dict[str, list[Person]], link: Link | None = None) -> int:
    """Count."""
    return sum(map(len, people.values())) + (link is not None)


def unpacked(first: int, **options: Unpack[Options]) -> str:
    """Show."""
    return f"{first} {sorted(options.items())}"


def keywords_of_int(a: str, **counts: int) -> dict[str, int]:
    """Show."""
    return {key: value * len(a) for key, value in counts.items()}


def keywords_of_dates(**days: datetime.date) -> list[int]:
    """Days."""
    return [day.day for day in days.values()]


def with_dataclass(point: Point) -> str:
    """Show."""
    return f"{point.x} {point.labels}"


def with_named_tuple(pair: Pair) -> str:
    """Show."""
    return f"{pair.first} {pair.second}"


def with_enums(colour: Colour, level: Level = Level.LOW) -> str:
    """Show."""
    return f"{colour.name} {level.name}"


def with_literal(mode: Literal["a", "b", 3] = "a") -> str:
    """Show."""
    return f"{mode}"


def constrained(n: Annotated[int, Field(ge=1, le=5, description="How many.")] = 2) -> int:
    """Show."""
    return n


def fresh_default(
    items: list[int] = Field(default_factory=list),  # noqa: B008 - as people write it
    n: Annotated[int, Field(default=4)] = 4,
) -> list[int]:
    """Append."""
    items.append(n)
    return items


def mutable_default(items: list[int] = []) -> list[int]:  # noqa: B006 - as people write it
    """Append."""
    items.append(len(items))
    return items


def optional(a: Optional[int] = None, b: datetime.date | None = None, c: datetime.date = None) -> str:  # type: ignore[assignment]  # noqa: RUF013, UP045
    """Show."""
    return f"{a} {b} {c}"


def discriminated(pet: Annotated[Union[Cat, Dog], Field(discriminator="kind")]) -> str:  # noqa: UP007
    """Show."""
    return type(pet).__name__


def generic_model(box: Box[int], boxes: list[Box[str]]) -> int:
    """Show."""
    return box.content + len(boxes)


def new_type(user: UserId) -> int:
    """Show."""
    return user + 1


def type_variables(limited: Limited, anything: T) -> T:
    """Show."""
    assert limited
    return anything


def strings(a: "int", b: "Sequence[Point]" = ()) -> "str":
    """Show."""
    return f"{a} {[point.x for point in b]}"


def sets(a: set[int], b: frozenset[str], c: tuple[int, str], d: tuple[int, ...]) -> str:
    """Show."""
    return f"{a} {sorted(b)} {c} {d} {[type(each).__name__ for each in (a, b, c, d)]}"


def abstract(a: Sequence[int], b: Mapping[str, int], c: Iterable[datetime.date]) -> str:
    """Show."""
    return f"{a} {b} {[day.day for day in c]}"


def scalars(
    a: datetime.datetime, b: datetime.timedelta, c: uuid.UUID, d: decimal.Decimal, e: pathlib.Path, f: bytes
) -> str:
    """Show."""
    return f"{a.year} {b.total_seconds()} {c.version} {d + 1} {e.name} {f!r}"


def recursive(tree: Tree) -> int:
    """Count."""
    return 1 + sum(map(recursive_count, tree.children))


def recursive_count(tree: Tree) -> int:
    return 1 + sum(map(recursive_count, tree.children))


def keyword_only(*, a: int, b: str = "b") -> str:
    """Show."""
    return f"{a} {b}"


def odd_names(self: int, config: str, name: str, arguments: list[int], tool: bool, function: str = "f") -> str:
    """Show."""
    return f"{self} {config} {name} {arguments} {tool} {function}"


def logged(function: Callable[P, R]) -> Callable[P, R]:
    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function(*args, **kwargs)

    return wrapper


@logged
def wrapped(a: int, b: "Point") -> int:
    """Add."""
    return a + b.x


def with_prefix(function: Callable[Concatenate[str, P], R]) -> Callable[P, R]:
    import inspect

    @functools.wraps(function)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        return function("prefix", *args, **kwargs)

    signature = inspect.signature(function)
    wrapper.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    return wrapper


@with_prefix
def concatenated(prefix: str, a: int) -> str:
    """Join."""
    return f"{prefix} {a}"


def bare(function: Callable[P, R]) -> Callable[P, R]:
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        """Anything."""
        return function(*args, **kwargs)

    return wrapper


@bare
def unwrapped(a: int, b: int) -> int:
    return a - b


class Multiply:
    """Multiply by a factor."""

    def __init__(self, factor: int) -> None:
        self.factor = factor

    def __call__(self, a: int) -> int:
        return a * self.factor


def fetch(key: str, path: str, retries: int = 3) -> str:
    """Fetch."""
    return f"{key} {path} {retries}"


def unannotated(a, b=2):
    """Add."""
    return [a, b]


def returns_nothing(a: Annotated[int, "The number."]) -> None:
    """Nothing."""


def aliased(names: Names) -> int:
    """Count."""
    return len(names)


class Exact(BaseModel):
    model_config = ConfigDict(strict=True)
    day: datetime.date
    pair: tuple[int, int] = (1, 2)


def strict_model(exact: Exact, colour: Literal[Colour.RED]) -> str:
    """Show."""
    return f"{exact.day.day} {exact.pair} {colour.name}"


def old_generics(a: typing.List, b: typing.Dict[str, typing.Tuple[int, ...]], c: typing.Mapping) -> str:  # type: ignore[type-arg]  # noqa: UP006
    """Show."""
    return f"{a} {b} {c}"


NewPlace = NewType("NewPlace", Place)  # type: ignore[valid-newtype]


def new_type_of_typed_dict(place: NewPlace, tuples: tuple[()] = ()) -> str:
    """Show."""
    return f"{place['city']} {tuples}"


@functools.cache
def cached(a: "int", b: "Literal['x'] | None" = None) -> str:
    """Show."""
    return f"{a} {b}"


def unannotated_defaults(a=(1, 2), b=Colour.RED, c=datetime.date(2026, 1, 2)):
    """Show."""
    return f"{a} {b.name} {c.day}"


def odd_defaults(a: float = float("inf"), b: object = Unknown, c: datetime.date = "today") -> str:  # type: ignore[assignment]
    """Show."""
    return f"{a} {b is Unknown} {c}"


def whole_numbers(
    a: int | None, b: list[int], c: dict[str, list[int]], d: Annotated[int, "D."], e: Literal[1, 2], f: float
) -> str:
    """Show."""
    return f"{a} {b} {c} {d} {e} {f}"


def members_that_json_lacks(corner: Corner, corners: list[Corner], what: Literal[b"x", Colour.RED]) -> str:
    """Show."""
    return f"{corner.name} {[each.name for each in corners]} {what!r}"


def defaults_of_other_types(
    a: Colour | str = Colour.RED,
    b: pathlib.Path | str = pathlib.Path(),
    c: SecretStr = SecretStr("hunter2"),  # noqa: B008 - as people write it
    d: Account = Account(),  # noqa: B008
    e: Patch = Patch(note="n"),  # noqa: B008
    f: int = Level.HIGH,
) -> str:
    """Show."""
    kinds = [type(each).__name__ for each in (a, b)]
    return f"{kinds} {c.get_secret_value()} {d.key.get_secret_value()} {e.note} {f}"


def secrets_inside(account: Account, accounts: list[Account]) -> str:
    """Show."""
    return f"{account.key.get_secret_value()} {accounts[0].key.get_secret_value()} {accounts[0].user}"


def what_was_given(patch: Patch, patches: dict[str, Patch]) -> str:
    """Show."""
    return f"{patch.model_fields_set} {patches['a'].model_fields_set} {type(patch.where).__name__}"


def renamed(
    from_: Annotated[str, Field(alias="from", min_length=2)],
    class_: Literal["a", "b"] = Field("a", alias="class"),
    /,
    *args: int,
    days: Annotated[list[datetime.date], Field(validation_alias="for", default_factory=list)],
    **rest: int,
) -> str:
    """Show.

    Args:
        class_: Which class.
    """
    return f"{from_} {class_} {args} {len(days)} {rest}"


@functools.singledispatch
def dispatched(a: int | str, b: int = 1) -> str:
    """Show."""
    return f"{a} {b}"


@dispatched.register
def _of_text(a: str, b: int = 1) -> str:
    return f"text {a} {b}"


@tool(name="told", description="As a tool.")
def already_a_tool(a: int, context: ToolContext, b: int = 2) -> str:
    """Show."""
    return f"{a} {b} {context.principal}"


Taken = tuple[Any, dict[str, Any], dict[str, Any], Any]
INT, STR = {"type": "integer"}, {"type": "string"}
DATE = {"type": "string", "format": "date"}

TAKEN: dict[str, Taken] = {
    "bytes": (returns_bytes, {"text": STR}, {"text": "a"}, b"a\xff"),
    "*args": (star, {"args": {"type": "array", "items": INT, "default": []}}, {"args": [1, 2]}, 3),
    "*args, none given": (star, {}, {}, 0),
    "*args after others": (
        star_after,
        {"first": STR, "second": INT | {"default": 2}},
        {"first": "a", "args": [5]},
        "a 2 (5,) z",
    ),
    "*args of types": (star_of_types, {}, {"args": [1, "b"]}, "(1, 'b')"),
    "positional only": (positional_only, {"a": INT, "c": INT | {"default": 3}}, {"a": 1, "c": 4}, "1 2 4"),
    "positional context": (positional_context, {"a": INT}, {"a": 1}, "ada 1"),
    "optional context": (optional_context, {"a": INT}, {"a": 1}, "ada 1"),
    "TypedDict": (typed_dict, {}, {"who": {"name": "a", "home": {"city": "b"}}}, "['home', 'name'] {'city': 'b'}"),
    "TypedDict inside": (typed_dict_inside, {}, {"people": {"x": [{"name": "a"}]}, "link": {"to": {"to": None}}}, 2),
    "**kwargs of a TypedDict": (
        unpacked,
        {"first": INT, "limit": INT, "since": DATE, "query": STR},
        {"first": 1, "query": "q", "since": "2026-01-02"},
        "1 [('query', 'q'), ('since', datetime.date(2026, 1, 2))]",
    ),
    "**kwargs of int": (keywords_of_int, {"a": STR}, {"a": "xx", "n": 2, "m": 1.0}, {"n": 4, "m": 2}),
    "**kwargs of dates": (keywords_of_dates, {}, {"a": "2026-01-02"}, [2]),
    "dataclass": (with_dataclass, {}, {"point": {"x": 1}}, "1 []"),
    "NamedTuple": (with_named_tuple, {}, {"pair": [1, "x"]}, "1 x"),
    "Enum, IntEnum": (with_enums, {}, {"colour": "red", "level": 2}, "RED HIGH"),
    "Enum by default": (with_enums, {}, {"colour": "blue"}, "BLUE LOW"),
    "Literal": (with_literal, {"mode": {"enum": ["a", "b", 3], "default": "a"}}, {"mode": 3}, "3"),
    "constraints": (
        constrained,
        {"n": {"type": "integer", "minimum": 1, "maximum": 5, "description": "How many.", "default": 2}},
        {},
        2,
    ),
    "default factory": (fresh_default, {"items": {"type": "array", "items": INT}}, {}, [4]),
    "mutable default": (mutable_default, {"items": {"type": "array", "items": INT, "default": []}}, {}, [0]),
    "optional": (
        optional,
        {
            "a": {"anyOf": [INT, {"type": "null"}], "default": None},
            "c": {"anyOf": [DATE, {"type": "null"}], "default": None},
        },
        {},
        "None None None",
    ),
    "discriminated union": (discriminated, {}, {"pet": {"kind": "dog", "name": "x"}}, "Dog"),
    "generic model": (generic_model, {}, {"box": {"content": 1}, "boxes": [{"content": "a"}]}, 2),
    "NewType": (new_type, {"user": INT}, {"user": 4}, 5),
    "TypeVar": (type_variables, {"limited": INT, "anything": {}}, {"limited": 1, "anything": [2]}, [2]),
    "annotations as strings": (strings, {"a": INT}, {"a": 1, "b": [{"x": 2}]}, "1 [2]"),
    "sets and tuples": (
        sets,
        {"d": {"type": "array", "items": INT}},
        {"a": [1], "b": ["b"], "c": [1, "c"], "d": [1, 2]},
        "{1} ['b'] (1, 'c') (1, 2) ['set', 'frozenset', 'tuple', 'tuple']",
    ),
    "Sequence, Mapping, Iterable": (
        abstract,
        {"a": {"type": "array", "items": INT}, "c": {"type": "array", "items": DATE}},
        {"a": [1], "b": {"b": 2}, "c": ["2026-01-03"]},
        "[1] {'b': 2} [3]",
    ),
    "scalars": (
        scalars,
        {},
        {
            "a": "2026-01-02T03:04:05",
            "b": "PT1M",
            "c": "7f1c2e7a-7e0e-4b0f-8f43-0d8a5d9d6d3b",
            "d": "1.5",
            "e": "/x/y",
            "f": "text",
        },
        "2026 60.0 4 2.5 y b'text'",
    ),
    "recursive model": (recursive, {}, {"tree": {"label": "a", "children": [{"label": "b"}]}}, 2),
    "keyword only": (keyword_only, {"a": INT, "b": STR | {"default": "b"}}, {"a": 1}, "1 b"),
    "odd names": (
        odd_names,
        {"self": INT, "config": STR},
        {"self": 1, "config": "c", "name": "n", "arguments": [1], "tool": True},
        "1 c n [1] True f",
    ),
    "functools.wraps": (wrapped, {"a": INT}, {"a": 1, "b": {"x": 2}}, 3),
    "Concatenate": (concatenated, {"a": INT}, {"a": 1}, "prefix 1"),
    "ParamSpec, not wrapped": (unwrapped, {"args": {"type": "array", "default": []}}, {"args": [3], "b": 1}, 2),
    "__call__": (Multiply(3), {"a": INT}, {"a": 2}, 6),
    "partial": (functools.partial(fetch, "secret", retries=1), {"path": STR}, {"path": "p"}, "secret p 1"),
    "partial with the name of its function": (
        functools.update_wrapper(functools.partial(fetch, "secret"), fetch),
        {"path": STR, "retries": INT | {"default": 3}},
        {"path": "p"},
        "secret p 3",
    ),
    "no annotations": (unannotated, {"a": {}, "b": {"default": 2}}, {"a": [1]}, [[1], 2]),
    "nothing returned": (returns_nothing, {"a": INT | {"description": "The number."}}, {"a": 1}, None),
    "type alias": (aliased, {}, {"names": ["a"]}, 1),
    "defaults that JSON lacks": (odd_defaults, {}, {}, "inf True today"),
    "strict model": (
        strict_model,
        {"colour": {"const": "red", "type": "string"}},
        {"exact": {"day": "2026-01-02", "pair": [3, 4]}, "colour": "red"},
        "2 (3, 4) RED",
    ),
    "typing.List": (
        old_generics,
        {"a": {"type": "array"}, "c": {"type": "object"}},
        {"a": [1], "b": {"x": [1]}, "c": {}},
        "[1] {'x': (1,)} {}",
    ),
    "NewType of a TypedDict": (new_type_of_typed_dict, {}, {"place": {"city": "c"}, "tuples": []}, "c ()"),
    "functools.cache": (cached, {"a": INT}, {"a": 1}, "1 None"),
    "defaults without annotations": (unannotated_defaults, {"a": {}, "b": {}, "c": {}}, {}, "(1, 2) RED 2"),
    "whole numbers": (
        whole_numbers,
        {"b": {"type": "array", "items": INT}},
        {"a": 1.0, "b": [2.0, 3], "c": {"x": [4.0]}, "d": 5.0, "e": 1.0, "f": 6.0},
        "1 [2, 3] {'x': [4]} 5 1 6.0",
    ),
    "Enum of what JSON lacks": (
        members_that_json_lacks,
        {},
        {"corner": [0, 1], "corners": ["2026-01-02"], "what": "x"},
        "LEFT ['DAY'] b'x'",
    ),
    "Literal of an Enum beside bytes": (
        members_that_json_lacks,
        {},
        {"corner": [0, 1], "corners": [], "what": "red"},
        "LEFT [] <Colour.RED: 'red'>",
    ),
    "defaults of other types": (
        defaults_of_other_types,
        {"b": {"anyOf": [{"format": "path", "type": "string"}, STR]}, "f": INT | {"default": 2}},
        {},
        f"['Colour', '{type(pathlib.Path()).__name__}'] hunter2 hunter2 n 2",
    ),
    "secrets": (secrets_inside, {}, {"account": {}, "accounts": [{"user": "bob"}]}, "hunter2 hunter2 bob"),
    "what was given": (
        what_was_given,
        {},
        {"patch": {"age": 1}, "patches": {"a": {}}},
        f"{{'age'}} set() {type(pathlib.Path()).__name__}",
    ),
    "alias": (
        renamed,
        {"class": {"enum": ["a", "b"], "type": "string", "default": "a", "description": "Which class."}},
        {"from": "ab", "class": "b", "args": [1], "for": ["2026-01-02"], "n": 1.0},
        "ab b (1,) 1 {'n': 1}",
    ),
    "alias, not given": (renamed, {"from": STR | {"minLength": 2}}, {"from": "ab"}, "ab a () 0 {}"),
    "singledispatch": (dispatched, {"b": INT | {"default": 1}}, {"a": "x"}, "text x 1"),
    "partial of a tool": (
        functools.partial(already_a_tool, b=3),
        {"a": INT},
        {"a": 1},
        "1 3 ada",
    ),
    "builtin": (divmod, {"x": {}, "y": {}}, {"x": 7, "y": 2}, (3, 1)),
}


@pytest.mark.parametrize("case", TAKEN)
@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
async def test_what_is_taken(case: str, isolation: Isolation) -> None:
    function, schema, arguments, expected = TAKEN[case]
    made = make_tool(function, isolation=isolation)
    properties = made.spec.parameters["properties"]
    assert {name: _without_title(properties[name]) for name in schema} == schema
    registry = ToolRegistry([made])
    for _ in range(2):  # nothing is left behind by the first
        result = await registry.execute(made.name, arguments, context=ToolContext("ada"))
        assert (result.error, result.data) == (None, expected)
        assert await made.execute(arguments, context=ToolContext("ada")) == expected


def _without_title(schema: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in schema.items() if name != "title"}


def test_a_tool_called_directly_is_its_authors_function() -> None:
    assert tool(star)(1, 2) == 3
    assert tool(positional_only)(1, 2, c=4) == "1 2 4"
    assert tool(concatenated)(1) == "prefix 1"


# What a schema must refuse


@pytest.mark.parametrize(
    ("function", "arguments", "says"),
    [
        (star, {"args": ["x"]}, "args"),
        (star_of_types, {"args": [1]}, "args"),
        (keywords_of_int, {"a": "x", "n": "two"}, "n"),
        (keywords_of_dates, {"a": "someday"}, "'a'"),
        (unpacked, {"first": 1, "query": "q", "more": 1}, "more"),
        (unpacked, {"first": 1}, "query"),
        (typed_dict, {"who": {"age": 1}}, "name"),
        (typed_dict, {"who": {"name": "a", "home": {"street": "s"}}}, "city"),
        (functools.partial(fetch, key="secret"), {"path": "p", "key": "mine"}, "key"),
        (functools.partial(keywords_of_int, n=3), {"a": "x", "n": 1}, "n"),
        (with_enums, {"colour": "green"}, "colour"),
        (sets, {"a": [1], "b": ["b"], "c": [1], "d": []}, "c"),
        (constrained, {"n": 6}, "n"),
        (whole_numbers, {"a": 1.5, "b": [], "c": {}, "d": 1, "e": 1, "f": 1}, "'a'"),
        (members_that_json_lacks, {"corner": [1, 0], "corners": [], "what": "x"}, "'corner'"),
        (renamed, {"from": "a"}, "'from'"),
        (renamed, {"from": "ab", "from_": 1}, "tool 'renamed' has no argument 'from_'"),
        (renamed, {"from": "ab", "days": 1}, "tool 'renamed' has no argument 'days'"),
    ],
)
async def test_wrong_arguments_are_refused_by_name(
    function: Callable[..., Any], arguments: dict[str, Any], says: str
) -> None:
    with pytest.raises(InvalidArgumentsError, match=says):
        await make_tool(function).execute(arguments)


# What is refused when it is defined


def callback(a: int, done: Callable[[int], None]) -> None:
    """Call back."""


def arbitrary(a: int, what: Unknown) -> None:
    """Take."""


def a_type(kind: type[int]) -> None:
    """Take."""


def types_inside(kinds: list[type[Cat] | None]) -> None:
    """Take."""


def itself(other: Self) -> None:  # type: ignore[misc]
    """Take."""


def nowhere(a: int, b: "Nowhere") -> None:  # type: ignore[name-defined]  # noqa: F821
    """Take."""


def nowhere_returned(a: int) -> "Nowhere":  # type: ignore[name-defined]  # noqa: F821
    """Give."""


def two_contexts(one: ToolContext, two: ToolContext) -> None:
    """Take."""


def no_typed_dict(**options: Unpack[Place]) -> None:
    """Take."""


no_typed_dict.__annotations__["options"] = Unpack[int]


def twice(city: str, /, **options: Unpack[Place]) -> None:
    """Take."""


class Unfinished(BaseModel):
    later: "Later"  # type: ignore[name-defined]  # noqa: F821


def unfinished(given: Unfinished) -> None:
    """Take."""


def unknown_rest(**rest: Unknown) -> None:
    """Take."""


def no_type(a: "1 / 0") -> None:  # type: ignore[valid-type]
    """Take."""


class Opaque(enum.Enum):
    ONE = object()


class Needy:
    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        raise ImportError("email-validator is not installed, run `pip install 'pydantic[email]'`")


def needs_more(one: Needy) -> None:
    """Take."""


def opaque(one: Opaque) -> None:
    """Take."""


def two_aliases(one: Annotated[int, Field(validation_alias=AliasChoices("a", "b"))]) -> None:
    """Take."""


def alias_of_another(one: Annotated[int, Field(alias="two")], two: int) -> None:
    """Take."""


@functools.wraps(already_a_tool)
def around_a_tool(*args: Any, **kwargs: Any) -> Any:
    return already_a_tool(*args, **kwargs)


REFUSED: dict[str, tuple[Any, str]] = {
    "Callable": (callback, r"the type of 'done' in tool 'callback' has no JSON Schema: .*Callable.* cannot be made"),
    "any class": (arbitrary, r"the type of 'what' in tool 'arbitrary' has no JSON Schema: Unknown cannot be made"),
    "type[...]": (a_type, r"the type of 'kind' in tool 'a_type' has no JSON Schema: type\[int\]"),
    "type[...] inside": (types_inside, r"the type of 'kinds' in tool 'types_inside' has no JSON Schema"),
    "Self": (itself, r"the type of 'other' in tool 'itself' has no JSON Schema: .*Self"),
    "unresolvable": (nowhere, r"the type of parameter 'b' of tool 'nowhere' cannot be read: name 'Nowhere' is not"),
    "unresolvable result": (nowhere_returned, r"the type of the result of tool 'nowhere_returned' cannot be read"),
    "two contexts": (two_contexts, r"two ToolContext parameters: 'one' and 'two'"),
    "unpacks no TypedDict": (no_typed_dict, r"parameter 'options' of tool 'no_typed_dict' unpacks .*int"),
    "a parameter twice": (twice, r"parameter 'city' of tool 'twice' is there twice"),
    "unfinished model": (
        unfinished,
        r"'given' in tool 'unfinished' has .*: Unfinished is not fully defined",
    ),
    "**rest of any class": (unknown_rest, r"the type of '\*\*rest' in tool 'unknown_rest' has no JSON Schema"),
    "an expression that fails": (
        no_type,
        r"of parameter 'a' of tool 'no_type' cannot be read: division by zero",
    ),
    "Enum of objects": (opaque, r"the type of 'one' in tool 'opaque' has no JSON Schema: Opaque cannot be made from"),
    "type of a package": (needs_more, r"the type of 'one' in tool 'needs_more' has no .*: email-validator is not inst"),
    "two aliases": (two_aliases, r"parameter 'one' of tool 'two_aliases' can have one name as its alias"),
    "alias that is taken": (alias_of_another, r"parameter 'two' of tool 'alias_of_another' is there twice"),
    "decorator above @tool": (around_a_tool, r"a decorator stands above @tool of 'told'; put @tool above all others"),
    "builtin without signature": (max, r"the signature of <built-in function max> for tool 'max' cannot be read"),
    "lambda without a name": (lambda a: a, r"'<lambda>'"),
    "a class": (Unknown, r"is not a function"),
    "not callable": (3, r"3 is not a function"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why(case: str) -> None:
    function, says = REFUSED[case]
    with pytest.raises(ToolValidationError, match=says) as caught:
        make_tool(function)
    assert "\n" not in str(caught.value)


async def test_a_lambda_with_a_name_and_a_description() -> None:
    made = make_tool(lambda a, b=1: a + b, name="add", description="Add.")
    assert await made.execute({"a": 1}) == 2


async def test_annotations_that_the_future_makes_strings(monkeypatch: pytest.MonkeyPatch) -> None:
    source = """
from __future__ import annotations
from typing import TypedDict, NotRequired
from toolcrib import tool

class Inner(TypedDict):
    n: int
    m: NotRequired[int]

class Outer(TypedDict, total=False):
    inner: Inner

def outer():
    Whole = int
    @tool
    def f(a: Outer, *rest: Whole, **more: str) -> Inner:
        'F.'
        return {"n": a["inner"]["n"] + sum(rest)}
    return f
"""
    somewhere = types.ModuleType("somewhere")
    monkeypatch.setitem(sys.modules, "somewhere", somewhere)
    exec(source, vars(somewhere))
    made: Tool = somewhere.outer()
    assert await made.execute({"a": {"inner": {"n": 1}}, "rest": [2], "x": "y"}) == {"n": 3}
    with pytest.raises(InvalidArgumentsError, match="'x'"):
        made.validate({"a": {}, "x": 1})


@pytest.mark.skipif(sys.version_info < (3, 12), reason="PEP 695 came with Python 3.12")
async def test_type_parameters() -> None:
    namespace: dict[str, Any] = {"tool": tool}
    exec(
        "type Numbers = list[int]\n"
        "@tool\n"
        "def first[T: int](a: T, rest: Numbers, more: 'list[T]' = ()) -> T:\n"
        "    'First.'\n"
        "    return a\n",
        namespace,
    )
    made: Tool = namespace["first"]
    assert made.spec.parameters["properties"]["a"]["type"] == "integer"
    assert await made.execute({"a": 1, "rest": [2], "more": [3]}) == 1
    with pytest.raises(InvalidArgumentsError, match="rest"):
        made.validate({"a": 1, "rest": ["x"]})


# Generators


async def pages(n: int) -> AsyncIterator[str]:
    """Pages."""
    for each in range(n):
        await asyncio.sleep(0)
        yield str(each)


def points() -> Iterator[Point]:
    """Points."""
    yield Point(1)


def numbers() -> typing.Generator[int, None, None]:
    """Numbers."""
    yield 1


def anything():
    """Anything."""
    yield 1


@pytest.mark.parametrize(
    ("function", "items", "ways"),
    [
        (pages, STR, ("async", "inline")),
        (points, {"$ref": "#/$defs/Point"}, ("sync", "thread")),
        (numbers, INT, ("sync", "thread")),
        (anything, None, ("sync", "thread")),
    ],
)
def test_what_a_generator_returns_is_the_list_of_its_items(
    function: Callable[..., Any], items: dict[str, Any] | None, ways: tuple[str, str]
) -> None:
    spec = tool(function).spec
    assert spec.returns["type"] == "array"
    assert spec.returns.get("items") == items
    assert (spec.execution_mode, spec.isolation) == ways


def mapped(n: int) -> Iterator[str]:
    """Map."""
    return map(str, range(n))


def paired(n: int) -> Iterable[tuple[int, int]]:
    """Pair."""
    return zip(range(n), range(n), strict=True)


def counted(n: int) -> Sequence[int]:
    """Count."""
    return range(n)


def keyed(n: int) -> Mapping[str, int]:
    """Key."""
    return types.MappingProxyType({str(each): each for each in range(n)})


def viewed(n: int) -> typing.Collection[int]:
    """View."""
    return dict.fromkeys(range(n)).keys()


async def generated(n: int) -> Iterable[int]:
    """Generate."""
    return (each for each in range(n))


async def generated_later(n: int) -> Iterator[int]:
    """Generate."""
    await asyncio.sleep(0)
    return iter(range(n))


def passed_on(n: int) -> AsyncIterator[str]:
    """Pages."""
    return pages(n)


async def passed_on_later(n: int) -> AsyncIterator[str]:
    """Pages."""
    return pages(n)


@pytest.mark.parametrize("isolation", ["inline", "thread", "process"])
@pytest.mark.parametrize("timeout_seconds", [None, 60])
@pytest.mark.parametrize(
    ("function", "told"),
    [
        (mapped, ["0", "1"]),
        (paired, [[0, 0], [1, 1]]),
        (counted, [0, 1]),
        (keyed, {"0": 0, "1": 1}),
        (viewed, [0, 1]),
        (generated, [0, 1]),
        (generated_later, [0, 1]),
        (passed_on, ["0", "1"]),
        (passed_on_later, ["0", "1"]),
    ],
)
async def test_what_comes_bit_by_bit_is_told_as_a_whole_as_often_as_it_is_looked_at(
    function: Callable[..., Any], told: Any, timeout_seconds: float | None, isolation: Isolation
) -> None:
    if isolation == "inline" and not asyncio.iscoroutinefunction(function):
        timeout_seconds = None  # nobody could stop it
    made = make_tool(function, isolation=isolation, timeout_seconds=timeout_seconds)
    assert made.spec.returns["type"] in ("array", "object")
    result = await ToolRegistry([made]).execute(made.name, {"n": 2})
    assert [result.to_json()["data"] for _ in range(2)] == [told, told]


def test_a_function_that_returns_an_iterable_returns_an_array() -> None:
    def squares(n: int) -> Iterable[int]:
        """Squares."""
        return [each * each for each in range(n)]

    assert tool(squares).spec.returns == {"type": "array", "items": INT}


def test_results_without_a_schema_are_not_checked() -> None:
    def odd() -> Unknown:
        """Odd."""
        return Unknown()

    def result() -> ToolResult | None:
        """Result."""
        return None

    assert tool(odd).spec.returns == {}
    assert make_tool(result).spec.returns == {}


async def test_a_tool_may_return_a_result_of_its_own_or_something_else() -> None:
    async def look(found: bool) -> Annotated[ToolResult | int, "What there is."]:
        """Look."""
        return ToolResult.success_result("much") if found else 3

    registry = ToolRegistry([look])
    assert (await registry.execute("look", {"found": True})).data == "much"
    assert (await registry.execute("look", {"found": False})).data == 3


def test_there_are_at_least_forty_five() -> None:
    assert len(TAKEN) + len(REFUSED) >= 45

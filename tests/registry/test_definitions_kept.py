"""Definitions are made once, and are everybody's own all the same."""

import copy
import dataclasses
import gc
import json
import operator
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from toolcrib import ExportError, ToolRegistry, ToolSpec
from toolcrib.define import create_tool
from toolcrib.formats import Handover
from toolcrib.formats.kept import KeptDefinitions


def make(name: str, description: str = "d") -> Any:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "y"]}}, "required": ["a"]}
    return create_tool().name(name).description(description).schema(schema).implement(dict).build()


@pytest.fixture
def registry() -> ToolRegistry:
    return ToolRegistry([make("first"), make("second")])


def ruin(value: Any) -> None:
    for child in list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, list) else ():
        ruin(child)
    if isinstance(value, dict | list):
        value.clear()


@pytest.mark.parametrize("format", ["openai", "openai-responses", "anthropic", "gemini", "mcp", "openapi", "compact"])
def test_nobody_sees_what_another_does_to_his(registry: ToolRegistry, format: str) -> None:
    before = json.dumps(registry.definitions(format))
    for _ in range(3):
        ruin(registry.definitions(format))
        assert json.dumps(registry.definitions(format)) == before


@dataclasses.dataclass
class Held:
    tools: list[Any]


# ruff: noqa: RUF005, RUF015, C416, FURB192
READS: list[Callable[[list[Any]], Any]] = [
    operator.itemgetter(0),
    operator.itemgetter(-1),
    lambda given: given[:1][0],
    lambda given: next(iter(given)),
    lambda given: next(reversed(given)),
    lambda given: given.pop(),
    lambda given: given.pop(0),
    lambda given: given.copy()[0],
    lambda given: (given + [])[0],
    lambda given: ([] + given)[0],
    lambda given: [*given][0],
    lambda given: (given * 2)[-1],
    lambda given: (2 * given)[-1],
    lambda given: list(given)[0],
    lambda given: tuple(given)[0],
    lambda given: sorted(given, key=str)[0],
    lambda given: [given.sort(key=lambda each: each["function"]["name"]), given[0]][1],
    lambda given: copy.copy(given)[0],
    lambda given: copy.deepcopy(given)[0],
    lambda given: dataclasses.asdict(Held(given))["tools"][0],
    lambda given: type(given)(each for each in given)[0],
    lambda given: pickle.loads(pickle.dumps(given))[0],
    lambda given: (given.insert(0, {"mine": 1}), given[1])[1],  # type: ignore[func-returns-value]
    lambda given: (given.__iadd__([{"mine": 1}]), given[0])[1],
    lambda given: [each for each in given][0],
]


@pytest.mark.parametrize("read", READS)
def test_what_is_taken_out_is_a_plain_dict_that_may_be_changed(registry: ToolRegistry, read: Any) -> None:
    before = json.dumps(registry.definitions())
    taken = read(registry.definitions())
    assert type(taken) is dict
    assert type(taken["function"]["parameters"]["required"]) is list
    ruin(taken)
    assert json.dumps(registry.definitions()) == before
    assert len(registry.definitions()) == 2


def test_what_the_caller_puts_in_stays_his_and_in_its_place(registry: ToolRegistry) -> None:
    registry.definitions()
    mine = {"type": "web_search"}
    given = registry.definitions()
    given.insert(1, mine)
    del given[0]
    given.append(mine)
    assert [each.get("type") for each in given] == ["web_search", "function", "web_search"]
    assert given[0] is mine
    assert given[1]["function"]["name"] == "second"


def test_what_gets_at_the_shared_copy_cannot_change_it(registry: ToolRegistry) -> None:
    """Pydantic reads a list without asking it, and keeps what it finds there."""

    class Kept(BaseModel):
        tools: list[Any]

    registry.definitions()
    before = json.dumps(registry.definitions())
    [definition, _] = TypeAdapter(Kept).validate_python({"tools": registry.definitions()}).tools
    for change in (
        lambda: definition.update(a=1),
        lambda: definition["function"].pop("name"),
        lambda: definition["function"]["parameters"]["required"].append("b"),
        lambda: operator.ior(definition, {"a": 1}),
    ):
        with pytest.raises(TypeError, match=r"shared with others; change a copy of it: copy.deepcopy"):
            change()
    mine = copy.deepcopy(definition)
    mine["function"]["parameters"]["required"].append("b")
    assert type(pickle.loads(pickle.dumps(definition))) is dict
    assert json.dumps(registry.definitions()) == before


def test_the_tools_that_are_there_now_are_handed_over(registry: ToolRegistry) -> None:
    def names() -> list[str]:
        return [each["function"]["name"] for each in registry.definitions()]

    assert names() == names() == ["first", "second"]
    registry.register(make("third"))
    assert names() == ["first", "second", "third"]
    registry.update("first", make("first", "another description"))
    assert registry.definitions()[0]["function"]["description"] == "another description"
    registry.remove("second")
    assert names() == ["first", "third"]
    registry.remove("first")
    registry.register(make("first"))
    assert names() == names() == ["third", "first"]
    registry.clear()
    assert names() == []


def test_options_are_kept_apart(registry: ToolRegistry) -> None:
    for _ in range(2):
        assert "strict" not in registry.definitions()[0]["function"]
        assert registry.definitions(strict=True)[0]["function"]["strict"] is True
        assert "cache_control" in registry.definitions("anthropic", cache=True)[1]
        assert "cache_control" not in registry.definitions("anthropic")[1]


@pytest.mark.parametrize("pinned", [["first"], ("first",), {"first"}, frozenset({"first"})])
def test_pinned_tools_are_named_in_any_collection_and_kept(registry: ToolRegistry, pinned: Any) -> None:
    first = registry.definitions("anthropic", defer=True, pinned=pinned)
    again = registry.definitions("anthropic", defer=True, pinned=pinned)
    assert type(again) is KeptDefinitions
    assert again == first


@pytest.mark.parametrize("format", ["anthropic", "openai-responses", "openai"])
def test_what_functions_say_is_asked_each_time_and_kept_as_long_as_they_say_the_same(format: str) -> None:
    registry = ToolRegistry([make("first"), make("second"), make("third")])
    registry.register(registry.search_tool())
    registry.register(registry.call_tool())
    deferred, asked, space = {"second": True, "third": True}, [], "a"

    def defer(spec: ToolSpec) -> bool:
        asked.append(spec.name)
        return deferred[spec.name]

    def handed() -> Handover:
        return registry.handover(format, defer=defer, pinned=["first"], namespaces=lambda _: space)

    before = handed()
    assert asked == ["second", "third"], "those that are pinned, and our search, are never deferred"
    assert type(handed().definitions) is KeptDefinitions
    assert handed() == before
    deferred["second"] = False
    assert handed().definitions != before.definitions
    deferred["second"], space = True, "b"
    assert [loss.field for loss in handed().losses] == [loss.field for loss in before.losses]
    assert type(handed().definitions) is KeptDefinitions


@pytest.mark.parametrize("namespaces", [lambda _: ["a"], lambda _: {}, lambda _: 7])
def test_a_function_that_says_what_is_no_namespace_is_told(registry: ToolRegistry, namespaces: Any) -> None:
    for _ in range(2):
        with pytest.raises(ExportError, match="a namespace is text or None"):
            registry.definitions("openai-responses", defer=True, namespaces=namespaces)


def test_a_handover_is_the_same_the_second_time() -> None:
    registry = ToolRegistry([make("math.root")])
    first, second = registry.handover(), registry.handover()
    assert first == second
    assert second.resolve("math_root") == "math.root"
    assert second.losses
    assert pickle.loads(pickle.dumps(second)) == copy.deepcopy(second) == first
    dict.clear(second.names)  # type: ignore[arg-type]
    assert registry.handover() == first


def test_little_is_kept_and_nothing_of_tools_that_are_gone() -> None:
    registry = ToolRegistry([make("a")])
    gone = weakref.ref(registry.get("a"))
    others = ("openai", "openai-responses", "openrouter", "anthropic", "gemini", "mcp", "compact", "prompt")
    for each in others:
        registry.definitions(each)
    for strict in (True, False):
        registry.definitions("openai", strict=strict)
    registry.clear()
    for each in others:  # as many as are kept
        registry.definitions(each)
    gc.collect()
    assert gone() is None


PRINTED = """
from toolcrib import ToolRegistry, tool
from dataclasses import dataclass
from pydantic import BaseModel
from typing import Literal
import json, sys

class Filter(BaseModel):
    kinds: set[str] = {"x", "y", "z"}
    by_place: dict[int, list[frozenset[str]]] = {1: [frozenset({"oslo", "paris", "rome"})]}

@dataclass
class Page:
    columns: frozenset[str]

@tool(tags=["b", "a"])
async def f(
    z: int, a: Literal["x", "y"] = "x", m: dict[str, int] | None = None, *, k: list[str] = [],
    only: set[str] = {"red", "green", "blue"}, where: Filter = Filter(), mixed: set[str | int] = {"b", 1, "a", "c"},
    page: Page = Page(frozenset({"name", "size", "date"})),
) -> list[int]:
    "F."
    return {}

registry = ToolRegistry([f])
for each in ("openai", "openai-responses", "openrouter", "anthropic", "gemini"):
    print(json.dumps(registry.definitions(each, strict=each != "gemini")))
"""


def test_the_bytes_are_the_same_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PRINTED], env={"PYTHONHASHSEED": seed, "PYTHONPATH": ":".join(sys.path)},
            check=True, capture_output=True,
        ).stdout
        for seed in ("0", "1", "2")
    }  # fmt: skip
    assert len(printed) == 1
    assert printed.pop().count(b"\n") == 5

"""Values meet JSON Schema: checks, defaults, and messages that name the argument."""

import time
from typing import Any

import pytest

from toolcrib import InvalidArgumentsError, InvalidSchemaError
from toolcrib.core.schema import ArgumentCheck, compile_schema

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string"},
        "count": {"type": "integer", "default": 3},
        "ratio": {"type": "number"},
        "options": {
            "type": "object",
            "properties": {"deep": {"type": "boolean", "default": True}, "tags": {"type": "array", "default": []}},
        },
        "rows": {"type": "array", "items": {"type": "object", "properties": {"n": {"type": "integer", "default": 1}}}},
    },
    "required": ["path"],
    "additionalProperties": False,
}


def check(arguments: Any) -> dict[str, Any]:
    return ArgumentCheck(SCHEMA, "reader")(arguments)


def test_defaults_are_filled_in_at_every_depth() -> None:
    given = {"path": "x", "options": {}, "rows": [{}, {"n": 5}]}
    assert check(given) == {
        "path": "x",
        "count": 3,
        "options": {"deep": True, "tags": []},
        "rows": [{"n": 1}, {"n": 5}],
    }
    assert given == {"path": "x", "options": {}, "rows": [{}, {"n": 5}]}


def test_a_default_that_is_changed_by_one_call_is_fresh_for_the_next() -> None:
    checker = ArgumentCheck({"type": "object", "properties": {"l": {"type": "array", "default": []}}}, "t")
    checker({})["l"].append(1)
    assert checker({}) == {"l": []}


def test_a_default_stands_in_for_a_required_argument_and_need_not_fit_its_schema() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"type": "integer", "default": 1}, "b": {"type": "string", "default": None}},
        "required": ["a"],
    }
    assert ArgumentCheck(schema, "t")({}) == {"a": 1, "b": None}


@pytest.mark.parametrize(
    ("arguments", "argument", "says"),
    [
        ({}, "path", "tool 'reader' needs the argument 'path'"),
        ({"path": 3}, "path", "argument 'path' of tool 'reader': 3 is not of type \"string\""),
        ({"path": "x", "count": True}, "count", "argument 'count' of tool 'reader': true is not"),
        ({"path": "x", "ratio": False}, "ratio", "argument 'ratio'"),
        ({"path": "x", "options": {"deep": 1}}, "options.deep", "argument 'options.deep'"),
        ({"path": "x", "rows": [{"n": "1"}]}, "rows.0.n", "argument 'rows.0.n'"),
        ({"pth": "x"}, "pth", "no argument 'pth'; did you mean 'path'?"),
        ([], "", "must be an object"),
        ("path", "", "must be an object"),
        ({1: 2}, "", "are not JSON"),
    ],
)
def test_messages_name_the_tool_and_the_argument(arguments: Any, argument: str, says: str) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        check(arguments)
    assert says in str(caught.value)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    "schema",
    [{"type": "objekt"}, {"properties": []}, 3, {"$ref": "#/nowhere"}, {"a": object()}, {1: 2}, {"title": "\ud800"}],
)
def test_what_is_not_a_schema_is_refused(schema: Any) -> None:
    with pytest.raises(InvalidSchemaError, match="is not a JSON Schema"):
        compile_schema(schema, "the thing")


def test_a_schema_can_neither_nest_without_end_nor_hang() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"properties": {"a": deep}}
    with pytest.raises(InvalidSchemaError):
        compile_schema(deep)
    hang = compile_schema({"type": "string", "pattern": "^(a+)+$"})
    started = time.perf_counter()
    hang.is_valid("a" * 5000 + "b")
    assert time.perf_counter() - started < 1

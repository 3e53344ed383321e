"""The way back from strict definitions: a null for what is left out is not given, and one that is a value stays."""

import copy
import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from toolcrib import ToolRegistry, ToolSpec, tool
from toolcrib.define import create_tool
from toolcrib.formats.nulls import holds_null, without_nulls
from toolcrib.frameworks.offer import offers


class Line(BaseModel):
    product: str
    count: int = 1
    note: str | None = "none"


class Card(BaseModel):
    kind: Literal["card"]
    number: str
    holder: str = "nobody"


class Cash(BaseModel):
    kind: Literal["cash"]
    holder: str | None = "somebody"


@tool
async def order(
    customer: str,
    lines: list[Line] = [],  # noqa: B006
    express: bool = False,
    comment: str | None = "no comment",
    pay: Card | Cash | None = None,
    sizes: dict[str, int | None] = {},  # noqa: B006
) -> dict[str, Any]:
    """Order."""
    return {
        "customer": customer,
        "lines": [line.model_dump() for line in lines],
        "express": express,
        "comment": comment,
        "pay": pay and pay.model_dump(),
        "sizes": sizes,
    }


async def ordered(**arguments: Any) -> Any:
    call = {"type": "function_call", "call_id": "c1", "name": "order", "arguments": json.dumps(arguments)}
    [answer] = await ToolRegistry([order]).execute_calls([call])
    return json.loads(answer["output"])


async def test_a_null_for_what_is_left_out_is_the_default_and_one_that_is_a_value_stays() -> None:
    got = await ordered(customer="c", lines=None, express=None, comment=None, pay=None, sizes=None)
    assert got == {"customer": "c", "lines": [], "express": False, "comment": None, "pay": None, "sizes": {}}


async def test_at_every_depth() -> None:
    got = await ordered(customer="c", lines=[{"product": "p", "count": None, "note": None}], sizes={"a": None})
    assert got["lines"] == [{"product": "p", "count": 1, "note": None}]
    assert got["sizes"] == {"a": None}


async def test_in_the_alternative_that_is_meant() -> None:
    got = await ordered(customer="c", pay={"kind": "card", "number": "1", "holder": None})
    assert got["pay"] == {"kind": "card", "number": "1", "holder": "nobody"}
    got = await ordered(customer="c", pay={"kind": "cash", "holder": None})
    assert got["pay"] == {"kind": "cash", "holder": None}


async def test_a_null_for_what_is_required_is_still_wrong() -> None:
    got = await ordered(customer=None, express=None)
    assert got["error_code"] == "invalid_arguments"
    assert "customer" in got["error"]
    assert "express" not in got["error"]


GIVEN = {"customer": "c", "express": None}
CALLS = [
    ("openai", {"id": "c", "type": "function", "function": {"name": "order", "arguments": json.dumps(GIVEN)}}),
    ("openrouter", {"id": "c", "type": "function", "function": {"name": "order", "arguments": GIVEN}}),
    ("openai-responses", {"type": "function_call", "call_id": "c", "name": "order", "arguments": json.dumps(GIVEN)}),
    ("anthropic", {"type": "tool_use", "id": "c", "name": "order", "input": GIVEN}),
    ("gemini", {"functionCall": {"id": "c", "name": "order", "args": GIVEN}}),
]


@pytest.mark.parametrize(("format", "call"), CALLS)
async def test_in_every_format_and_nothing_that_is_handed_in_is_changed(format: str, call: Any) -> None:
    before = copy.deepcopy(call)
    answer = await ToolRegistry([order]).execute_call(format, call)
    assert "express" in str(answer)
    assert "invalid_arguments" not in str(answer)
    assert call == before


async def test_a_program_that_gives_a_null_is_told() -> None:
    result = await ToolRegistry([order]).execute("order", GIVEN)
    assert result.error_code == "invalid_arguments"


async def test_a_definition_that_was_handed_over_elsewhere_is_read_the_same() -> None:
    definitions = ToolRegistry([order]).definitions("openai-responses", strict=True)
    assert definitions[0]["strict"] is False  # of its sizes: names are not known before
    strict = ToolSpec(name="t", description="d", parameters={"properties": {"a": {"type": "integer", "default": 3}}})
    elsewhere = ToolRegistry(
        [create_tool().name("t").description("d").schema(strict.parameters).implement(dict).build()]
    )
    call = {"type": "function_call", "call_id": "c", "name": "t", "arguments": '{"a": null}'}
    [answer] = await elsewhere.execute_calls([call])
    assert answer["output"] == '{"a": 3}'


async def test_a_word_that_only_looks_like_a_null() -> None:
    got = await ordered(customer="null", comment="null")
    assert (got["customer"], got["comment"]) == ("null", "null")


async def test_a_framework_gets_the_same() -> None:
    registry = ToolRegistry([order])
    [offer] = offers(registry, lambda name, arguments, _: registry.execute(name, arguments), "a framework")
    result = await offer.call(GIVEN)
    assert result.success
    assert result.data["express"] is False


TREE = {
    "type": "object",
    "properties": {"left": {"$ref": "#"}, "value": {"type": "integer"}, "maybe": {"$ref": "#/$defs/maybe"}},
    "$defs": {"maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]}},
}


@pytest.mark.parametrize(
    ("schema", "given", "read"),
    [
        (TREE, {"left": {"left": None, "value": None, "maybe": None}}, {"left": {"maybe": None}}),
        ({"properties": {"a": {"type": "integer"}}}, {"a": None, "b": None}, {"b": None}),
        ({"properties": {"a": {}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": True}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"enum": [1, None]}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"enum": [1]}}}, {"a": None}, {}),
        ({"properties": {"a": {"const": None}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"not": {"type": "null"}}}}, {"a": None}, {}),
        ({"properties": {"a": {"oneOf": [{"type": "null"}, {"type": ["null", "integer"]}]}}}, {"a": None}, {}),
        ({"properties": {"a": {"allOf": [{"type": ["null", "integer"]}, {"type": "integer"}]}}}, {"a": None}, {}),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}}], "required": ["a"]}, {"a": None}, {"a": None}),
        ({"allOf": [{"properties": {"a": {"type": "integer"}}}]}, {"a": None}, {}),
        (
            {"properties": {"a": {"prefixItems": [{}, TREE]}}},
            {"a": [None, {"value": None}, {"value": None}]},
            {"a": [None, {}, {"value": None}]},
        ),
        ({"additionalProperties": {"properties": {"a": {"type": "integer"}}}}, {"x": {"a": None}}, {"x": {}}),
        ({"properties": {"a": {"$ref": "#/$defs/none"}}}, {"a": None}, {"a": None}),
        ({"properties": {"a": {"$ref": "#it"}}, "$defs": {"b": {"$anchor": "it", "type": "integer"}}}, {"a": None}, {}),
        (
            {"anyOf": [{"properties": {"a": {"type": "integer"}}, "required": ["b"]}, {"required": ["c"]}]},
            {"a": None, "b": 1},
            {"b": 1},
        ),
    ],
)
def test_which_nulls_are_none(schema: Any, given: Any, read: Any) -> None:
    before = copy.deepcopy(given)
    assert without_nulls(schema, given) == read
    assert given == before


LEAF = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "m": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
TWIG = {"type": "object", "properties": {"inner": {"$ref": "#"}}, "required": ["inner"], "additionalProperties": False}
TREE_OR_LEAF = {
    "type": "object",
    "properties": {"leaf": LEAF, "part": {"anyOf": [{"$ref": "#/properties/leaf"}, TWIG]}},
}
DIALECTS = [None, "http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema#"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_alternative_may_refer_to_any_part_of_its_document(dialect: str | None) -> None:
    schema = TREE_OR_LEAF if dialect is None else {"$schema": dialect, **TREE_OR_LEAF}
    leaf = {"n": 1, "m": None}
    given = {"part": {"inner": {"leaf": leaf, "part": leaf}}}
    assert without_nulls(schema, given) == {"part": {"inner": {"leaf": {"n": 1}, "part": {"n": 1}}}}


@pytest.mark.parametrize("name", ["branch", "root", "#"])
def test_a_definition_may_have_any_name(name: str) -> None:
    leaf = {"$ref": f"#/definitions/{name.replace('#', '%23')}"}
    either = {"anyOf": [TWIG, {"type": "object", "properties": {"leaf": leaf}, "required": ["leaf"]}]}
    schema = {"type": "object", "properties": {"a": either}, "definitions": {name: LEAF}}
    assert without_nulls(schema, {"a": {"leaf": {"n": 1, "m": None}}}) == {"a": {"leaf": {"n": 1}}}


@pytest.mark.parametrize("wrapped", ["anyOf", "allOf"])
async def test_a_null_at_the_end_of_a_very_long_way_is_left_to_the_check(wrapped: str) -> None:
    definitions: dict[str, Any] = {
        f"d{number}": {wrapped: [{"$ref": f"#/$defs/d{number + 1}"}]} for number in range(2_000)
    }
    schema = {"properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": definitions | {"d2000": {"type": "integer"}}}
    assert without_nulls(schema, {"a": None}) == {"a": None}


def test_a_null_is_found_however_deep_it_is() -> None:
    deep: Any = None
    for _ in range(100_000):
        deep = [deep]
    given = {"a": deep}
    assert holds_null(given)
    assert without_nulls({"properties": {"a": {"items": {"items": {}}}}}, given) is given


def test_arguments_without_a_null_are_not_looked_at() -> None:
    given = {"a": [1, {"b": "null"}], "c": {}}
    assert not holds_null(given)
    assert without_nulls({"properties": {"a": {"$ref": "#/nowhere"}}}, given) is given

"""What counts as JSON, equality, and references: one home for all of them."""

import re
from collections import ChainMap, deque
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel

from toolcrib import Image, InvalidQueryError, InvalidSchemaError, ToolSpec, ToolValidationError
from toolcrib.core.json import MAX_DEPTH, as_json, check_json, lookup, read_json, same
from toolcrib.core.query import parse
from toolcrib.core.schema import compile_schema


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value


def test_one_limit_holds_for_values_schemas_and_filters() -> None:
    deepest, too_deep = nested(MAX_DEPTH), nested(MAX_DEPTH + 1)
    check_json(deepest)
    ToolSpec(name="t", description="", metadata=deepest)
    compile_schema({"const": nested(MAX_DEPTH - 1)})
    parse({"metadata": {"$eq": deepest}})
    with pytest.raises(ValueError, match=f"nested more than {MAX_DEPTH} deep"):
        check_json(too_deep)
    with pytest.raises(ToolValidationError, match=f"'metadata'.*nested more than {MAX_DEPTH} deep"):
        ToolSpec.parse({"name": "t", "description": "", "metadata": too_deep})
    with pytest.raises(InvalidSchemaError, match=f"nested more than {MAX_DEPTH} deep"):
        compile_schema({"const": deepest})
    with pytest.raises(InvalidQueryError, match=f"'metadata'.*nested more than {MAX_DEPTH} deep"):
        parse({"metadata": {"$eq": too_deep}})


@pytest.mark.parametrize(
    ("value", "says"),
    [
        (float("nan"), "nan is not a JSON number"),
        ({"a": [1, float("inf")]}, "inf is not a JSON number (at 'a.1')"),
        ({"a": 10**34}, "more than 34 digits (at 'a')"),
        ({"a": "\ud800"}, "half of a surrogate pair (at 'a')"),
        ({"\ud800": 1}, "half of a surrogate pair"),
        ({1: 1}, "the key 1 is not text"),
        ({"a": {1, 2}}, "is a set, which is not JSON (at 'a')"),
    ],
)
def test_what_is_not_json_is_named_with_its_place(value: Any, says: str) -> None:
    with pytest.raises(ValueError, match=re.escape(says)):
        check_json(value)


def test_true_is_not_one_and_the_order_of_keys_does_not_count() -> None:
    assert same({"a": 1, "b": [True]}, {"b": [True], "a": 1})
    assert not same({"a": 1}, {"a": True})
    assert not same([1], [1.0])
    assert not same([1], [1, 2])


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("#", {"$defs": {"a/b": {"x": [1, 2]}, "": 3, "ü": 4}}),
        ("#/$defs/a~1b/x/1", 2),
        ("#/$defs/", 3),
        ("#/$defs/%C3%BC", 4),
        ("#/$defs/nowhere", None),
        ("#anchor", None),
        ("https://x.example/#/$defs", None),
        (3, None),
    ],
)
def test_a_reference_leads_to_its_place(reference: object, found: Any) -> None:
    assert lookup({"$defs": {"a/b": {"x": [1, 2]}, "": 3, "ü": 4}}, reference) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [("{", "Expecting property name"), ("[" * 100_000, "it is nested too deep"), (b"\xff", "can't decode byte")],
)
def test_text_that_is_not_json_is_a_value_error(text: str | bytes, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        read_json(text)
    with pytest.raises(ToolValidationError, match=says):
        ToolSpec.from_json(text)


def test_equal_keys_are_refused_if_wanted() -> None:
    assert read_json('{"a": 1, "a": 2}') == {"a": 2}
    with pytest.raises(ValueError, match="the key 'a' stands twice"):
        read_json('[{"b": {"a": 1, "a": 2}}]', unique_keys=True)


class Unshown:
    def __repr__(self) -> str:
        raise ZeroDivisionError


class Chart(BaseModel):
    title: str
    png: bytes
    shown: Image = Image(b"\xff")


def test_a_model_keeps_its_shape_if_its_bytes_are_no_text() -> None:
    image = {"type": "image", "media_type": "image/png", "data": "/w=="}
    assert as_json(Chart(title="Sales", png=b"text")) == {"title": "Sales", "png": "text", "shown": image}
    told = as_json({"charts": [Chart(title="Sales", png=b"\xff")]})
    assert told == {"charts": [{"title": "Sales", "png": "/w==", "shown": image}]}


def test_any_value_becomes_json() -> None:
    loop: list[Any] = []
    loop.append(loop)
    value = {"inf": float("-inf"), "says": "NaN", "raw": b"\xff", "half": "\ud800", "kind": int, "set": {1}}
    told = as_json({**value, 1: (2,)})
    assert told == {
        "inf": "-Infinity", "says": "NaN", "raw": "/w==", "half": "?", "kind": "<class 'int'>", "set": [1], "1": [2],
    }  # fmt: skip
    assert as_json(loop) == "[[...]]"
    assert as_json({"odd": Unshown(), "n": 1}) == {"odd": "<Unshown that cannot be shown>", "n": 1}
    assert as_json([10**5000]) == "<list that cannot be shown>"
    assert check_json(told) is told


@dataclass
class Sound:
    wave: bytes
    shown: Image


def test_bytes_are_base64_that_everybody_reads_wherever_they_are() -> None:
    image = {"type": "image", "media_type": "image/png", "data": "+/8="}
    raw = b"\xfb\xff"
    assert as_json(Sound(raw, Image(raw))) == {"wave": "+/8=", "shown": image}
    assert as_json({"a": [{"b": (raw, bytearray(raw), memoryview(raw))}]}) == {"a": [{"b": ["+/8="] * 3}]}
    assert as_json(deque([{raw}])) == [["+/8="]]


def test_what_is_like_a_mapping_or_a_list_is_told_as_one() -> None:
    numbers = {"a": 1, "b": b"\xff"}
    told = {"a": 1, "b": "/w=="}
    assert as_json(MappingProxyType(numbers)) == as_json(ChainMap(numbers)) == told
    views = [numbers.keys(), numbers.values(), numbers.items()]
    assert as_json(views) == [["a", "b"], [1, "/w=="], [["a", 1], ["b", "/w=="]]]
    assert as_json({"range": range(1, 4)}) == {"range": [1, 2, 3]}

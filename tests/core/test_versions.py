"""What breaks a caller, and what a version number says about it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from toolcrib.core.errors import InvalidArgumentsError, InvalidSchemaError
from toolcrib.core.evolution import breaking_changes
from toolcrib.core.schema import ArgumentCheck
from toolcrib.core.spec import ToolSpec
from toolcrib.core.versions import broken_by, parse_version, raises_major

STRING = {"type": "string"}


def parameters(required: list[str] | None = None, **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required or [], "additionalProperties": False}


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("9.0.0", "10.0.0"), ("", "0.0.1"), ("v1.0", "v1.1"), ("1.0", "1.0.1"), ("1", "2"), ("1.0.0-rc.1", "1.0.0"),
        ("1.0.0-rc.2", "1.0.0-rc.10"), ("1.0.0-1", "1.0.0-alpha"), ("1.0.0-alpha", "1.0.0-alpha.1"), ("beta", "0.1"),
    ],
)  # fmt: skip
def test_versions_are_ordered_as_semver_says(older: str, newer: str) -> None:
    assert parse_version(older) < parse_version(newer)


def test_what_lies_behind_a_reference_by_name_is_compared() -> None:
    def referring(reference: str, kind: object, **names: str) -> dict[str, Any]:
        return {
            **parameters(a={"$ref": reference}),
            "$id": "https://x.example/s",
            "$defs": {"A": {"type": kind, **names}},
        }

    plain, anchored = referring("#/$defs/A", "string"), referring("#a", "string", **{"$anchor": "a"})
    named = referring("a", ["string", "null"], **{"$id": "https://x.example/a"})
    assert breaking_changes(plain, anchored) == breaking_changes(anchored, named) == []
    assert breaking_changes(named, anchored) == ["parameter 'a' no longer takes null"]


def test_build_metadata_and_a_v_do_not_count() -> None:
    assert parse_version("v1.2.3+build5") == parse_version("1.2.3")


@pytest.mark.parametrize(
    ("old", "new", "raised"),
    [
        ("9.0.0", "10.0.0", True), ("1.9.9", "1.10.0", False), ("", "1.0.0", True), ("", "", False),
        ("v1.0", "v2.0", True), ("2.0.0", "1.0.0", False), ("0.1.0", "0.2.0", False), ("x", "y", False),
    ],
)  # fmt: skip
def test_only_a_higher_major_number_announces_a_break(old: str, new: str, raised: bool) -> None:
    assert raises_major(old, new) is raised


OBJECT = {"type": "object", "properties": {"x": STRING}, "required": ["x"]}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (parameters(a=STRING), parameters(), "parameter 'a' was removed"),
        (parameters(a=STRING), parameters(b=STRING), "parameter 'a' was removed"),
        (parameters(), parameters(["a"], a=STRING), "parameter 'a' is now required"),
        (parameters(a=STRING), parameters(["a"], a=STRING), "parameter 'a' is now required"),
        (parameters(a={"type": ["string", "null"]}), parameters(a=STRING), "parameter 'a' no longer takes null"),
        (parameters(a={"type": "number"}), parameters(a={"type": "integer"}), "no longer takes number"),
        (parameters(a={"enum": ["x", "y"]}), parameters(a={"enum": ["x"]}), "parameter 'a' no longer takes 'y'"),
        (parameters(a={"enum": [1]}), parameters(a={"enum": [True]}), "parameter 'a' no longer takes 1"),
        (parameters(a=STRING), parameters(a={"enum": ["x"]}), "parameter 'a' takes only certain values now"),
        (parameters(a={}), parameters(a=STRING), "parameter 'a' no longer takes"),
        (parameters(a={"type": "boolean"}), parameters(a={"const": True}), "parameter 'a' no longer takes False"),
        (parameters(a=OBJECT), parameters(a={**OBJECT, "required": ["x", "y"]}), "parameter 'a.y' is now required"),
        (parameters(a={"type": "array", "items": {"type": ["string", "null"]}}),
         parameters(a={"type": "array", "items": STRING}), "parameter 'a[]' no longer takes null"),
        (parameters(a={"type": "integer"}), parameters(a={"type": "integer", "minimum": 1}), "higher minimum"),
        (parameters(a={**STRING, "maxLength": 9}), parameters(a={**STRING, "maxLength": 8}), "lower 'maxLength'"),
        (parameters(a=STRING), parameters(a={**STRING, "pattern": "^x"}), "the rule 'pattern' of"),
        ({"type": "object"}, {"type": "object", "additionalProperties": False}, "refuses arguments now"),
        (parameters(a={"anyOf": [STRING, {"type": "integer"}]}), parameters(a=STRING), "no longer takes integer"),
        ({**parameters(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"enum": ["x", "y"]}}},
         {**parameters(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"enum": ["x"]}}}, "no longer takes 'y'"),
        (parameters(["a"], a={**STRING, "default": "x"}), parameters(["a"], a=STRING), "'a' is now required"),
        (parameters(), parameters(["a"], a={**STRING, "default": 3}), "default does not fit"),
    ],
)  # fmt: skip
def test_a_break_is_told_in_words(old: dict[str, Any], new: dict[str, Any], words: str) -> None:
    assert words in "; ".join(breaking_changes(old, new))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (parameters(), parameters(a=STRING)),
        (parameters(["a"], a=STRING), parameters(a=STRING)),
        (parameters(), parameters(["a"], a={**STRING, "default": "x"})),
        (parameters(a=STRING), parameters(a={"type": ["string", "null"]})),
        (parameters(a=STRING), parameters(a={"anyOf": [STRING, {"type": "null"}]})),
        (parameters(a={"anyOf": [STRING, {"type": "null"}]}), parameters(a={"type": ["null", "string"]})),
        (parameters(a={"type": "integer"}), parameters(a={"type": "number"})),
        (parameters(a={"enum": ["x"]}), parameters(a={"enum": ["x", "y"]})),
        (parameters(a={"enum": ["x"]}), parameters(a=STRING)),
        (parameters(a={"const": "x"}), parameters(a={"oneOf": [{"const": "x"}, {"const": "y"}]})),
        (parameters(a={**STRING, "pattern": "^x", "minLength": 3}), parameters(a=STRING)),
        (parameters(a={"type": "integer", "multipleOf": 6}), parameters(a={"type": "integer", "multipleOf": 3})),
        (parameters(a=STRING), parameters(a={**STRING, "description": "other words", "default": "x"})),
        ({"type": "object", "properties": {}}, {"type": "object", "properties": {"a": STRING}}),
        ({**parameters(a={"$ref": "#/$defs/A"}), "$defs": {"A": STRING}}, parameters(a=STRING)),
        (parameters(a=STRING), {**parameters(a={"$ref": "#/$defs/B", "title": "t"}), "$defs": {"B": STRING}}),
    ],
)
def test_what_every_caller_survives_is_no_break(old: dict[str, Any], new: dict[str, Any]) -> None:
    assert breaking_changes(old, new) == []


def test_recursive_schemas_are_compared() -> None:
    def tree(leaf: dict[str, Any]) -> dict[str, Any]:
        node = {"type": "object", "properties": {"value": leaf, "next": {"$ref": "#/$defs/Node"}}}
        return {**parameters(root={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}

    assert breaking_changes(tree({"enum": ["a"]}), tree({"enum": ["a", "b"]})) == []
    assert breaking_changes(tree({"enum": ["a", "b"]}), tree({"enum": ["a"]})) == [
        "parameter 'root.value' no longer takes 'b'"
    ]
    endless = {"type": "object", "additionalProperties": {"$ref": "#"}}
    assert breaking_changes({"type": "object", "additionalProperties": True}, endless)


def test_a_higher_major_version_excuses_every_break() -> None:
    old = ToolSpec(name="t", description="", version="9.0.0", parameters=parameters(a=STRING))
    assert broken_by(old, old.with_changes(parameters=parameters(), version="10.0.0")) == []
    assert broken_by(old, old.with_changes(parameters=parameters(), version="9.1.0")) == ["parameter 'a' was removed"]


# The law: judged compatible, every call that was accepted is accepted still.

KINDS = ["string", "integer", "number", "boolean", "null", "array", "object"]
SCALARS = [None, True, False, 0, 1, 2, 1.5, 2.0, -1, "", "a", "ab", "abc"]
VALUES = [
    *SCALARS, [], ["a"], [1, 1], ["a", 1], [{"a": 2}], [[1]],
    {}, {"a": 1}, {"b": "a"}, {"a": "ab", "b": None}, {"c": 1}, {"a": {"a": 1}}, {"a": 1, "b": 2, "c": 3},
]  # fmt: skip
CALLS: list[dict[str, Any]] = [
    {},
    *({name: value} for name in "abc" for value in VALUES),
    *({"a": one, "b": other} for one in VALUES for other in VALUES),
]
IN_MAPS = ("properties", "$defs", "patternProperties", "dependentSchemas")
IN_LISTS = ("anyOf", "oneOf", "allOf", "prefixItems")
IN_PLACE = ("items", "additionalProperties", "not", "if", "then", "else", "contains")
COMMON = [
    "type",
    "enum",
    "const",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "properties",
    "required",
    "items",
    "anyOf",
]


class Schemas:
    """Small schemas with every rule that can be compared, and neighbours of them: near pairs are the hard ones."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def tool(self) -> dict[str, Any]:
        random = self.random
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: self.schema(0) for name in random.sample("ab", random.randint(0, 2))},
            "required": random.sample("ab", random.randint(0, 2)),
        }
        if random.random() < 0.5:
            schema["additionalProperties"] = self.schema(0)
        if random.random() < 0.25:
            schema |= {
                rule: self.rule(rule, 0) for rule in ["minProperties", random.choice([*IN_LISTS[:3], "if", "$ref"])]
            }
        for sub in schema["properties"].values():
            if isinstance(sub, dict) and random.random() < 0.25:
                sub["default"] = random.choice(SCALARS)
        recursive = {"properties": {"a": {"$ref": "#/$defs/R"}}, "type": random.sample(KINDS, 2)}
        schema["$defs"] = {"D": self.schema(0), "R": recursive}
        return schema

    def schema(self, depth: int) -> Any:
        random = self.random
        if depth > 2 or random.random() < 0.1:
            return random.choice([True, False, {}, {"type": random.choice(KINDS)}])
        rules = random.sample(
            COMMON if random.random() < 0.6 else [*self.simple(), *self.nested(depth)], random.randint(0, 3)
        )
        return {rule: self.rule(rule, depth) for rule in rules}

    def rule(self, rule: str, depth: int) -> Any:
        return (self.simple() | self.nested(depth))[rule]()

    def simple(self) -> dict[str, Callable[[], Any]]:
        random, choice = self.random, self.random.choice
        return {
            "type": lambda: choice(KINDS) if random.random() < 0.6 else random.sample(KINDS, random.randint(1, 3)),
            "enum": lambda: random.sample(SCALARS, random.randint(1, 3)),
            "const": lambda: choice(SCALARS),
            "minimum": lambda: choice([0, 1, 1.5]),
            "exclusiveMinimum": lambda: choice([0, 1]),
            "maximum": lambda: choice([0, 1, 2]),
            "exclusiveMaximum": lambda: choice([1, 2]),
            "multipleOf": lambda: choice([1, 2, 0.5]),
            "minLength": lambda: choice([0, 1, 2]),
            "maxLength": lambda: choice([0, 1, 3]),
            "pattern": lambda: choice(["^a", "b$"]),
            "minItems": lambda: choice([0, 1]),
            "maxItems": lambda: choice([0, 1, 2]),
            "uniqueItems": lambda: choice([True, False]),
            "minProperties": lambda: choice([0, 1]),
            "maxProperties": lambda: choice([0, 1, 2]),
            "required": lambda: random.sample("ab", random.randint(0, 2)),
            "dependentRequired": lambda: {"a": ["b"]},
            "propertyNames": lambda: choice([{"enum": ["a"]}, {"maxLength": 1}]),
            "unevaluatedProperties": lambda: choice([False, {"type": "string"}]),
            "unevaluatedItems": lambda: False,
            "minContains": lambda: choice([0, 1, 2]),
            "title": lambda: choice("tu"),
            "default": lambda: choice(SCALARS),
            "$ref": lambda: choice(["#/$defs/D", "#/$defs/R"]),
        }

    def nested(self, depth: int) -> dict[str, Callable[[], Any]]:
        random = self.random

        def inner() -> Any:
            return self.schema(depth + 1)

        return {
            "properties": lambda: {name: inner() for name in random.sample("ab", random.randint(1, 2))},
            "patternProperties": lambda: {"^a": inner()},
            "dependentSchemas": lambda: {"a": inner()},
            **{rule: lambda: [inner() for _ in range(random.randint(1, 2))] for rule in IN_LISTS},
            **dict.fromkeys(IN_PLACE, inner),
        }

    def neighbour(self, schema: dict[str, Any]) -> dict[str, Any]:
        new, random = copy.deepcopy(schema), self.random
        for _ in range(random.randint(1, 2)):
            holder, key = random.choice([*places(new), ({"": new}, "")])
            sub = holder[key]
            action = random.choice(["replace", "drop", "drop", "add", "extend", "wrap"])
            if action == "replace" and key:
                holder[key] = self.schema(1)
            elif action == "wrap" and key:
                holder[key] = {"anyOf": [sub, self.schema(1)]}
            elif isinstance(sub, dict) and action == "drop" and (rules := sorted(sub.keys() - {"$defs"})):
                del sub[random.choice(rules)]
            elif isinstance(sub, dict) and action == "add":
                rule = random.choice([*self.simple(), *self.nested(1)])
                sub[rule] = self.rule(rule, 1)
            elif isinstance(sub, dict) and "enum" in sub:
                sub["enum"] = [*sub["enum"], random.choice(SCALARS)]
        return new


def places(node: dict[str, Any]) -> list[tuple[Any, Any]]:
    """Every schema inside, as the thing that holds it and its key there."""
    found: list[tuple[Any, Any]] = []
    for key, value in node.items():
        if key in IN_MAPS:
            found += [(value, name) for name in value]
        elif key in IN_LISTS:
            found += [(value, index) for index in range(len(value))]
        elif key in IN_PLACE:
            found.append((node, key))
    return found + [place for holder, key in found if isinstance(holder[key], dict) for place in places(holder[key])]


def speak_of_everything(schema: dict[str, Any]) -> None:
    """Leave no object open without a word: those are the calls that the law does not count."""
    for holder, key in [*places(schema), ({"": schema}, "")]:
        if isinstance(holder[key], dict):
            holder[key].setdefault("additionalProperties", True)


def accepted(check: ArgumentCheck, arguments: dict[str, Any]) -> bool:
    try:
        check(arguments)
    except InvalidArgumentsError:
        return False
    return True


@settings(max_examples=800, deadline=None)
@given(st.randoms(use_true_random=True))
def test_a_change_judged_compatible_refuses_no_call_that_was_accepted(random: Random) -> None:
    generated = Schemas(random)
    old = generated.tool()
    speak_of_everything(old)
    new = generated.neighbour(old)
    try:
        before, now = ArgumentCheck(old, "t"), ArgumentCheck(new, "t")
    except InvalidSchemaError:
        return
    if breaking_changes(old, new):
        event("breaking")
        return
    event("compatible")
    for arguments in CALLS:
        if accepted(before, arguments):
            assert accepted(now, arguments), (old, new, arguments)


DRAFT_07 = "http://json-schema.org/draft-07/schema#"


def test_another_dialect_is_another_meaning() -> None:
    tuples = {"type": "object", "properties": {"a": {"items": [{"type": "string"}]}}, "$schema": DRAFT_07}
    plain = {"type": "object", "properties": {"a": {"items": {"type": "string"}}}}
    assert breaking_changes(tuples, plain)
    assert breaking_changes(tuples, {**plain, "$schema": DRAFT_07})
    assert breaking_changes(plain, {**plain, "$schema": DRAFT_07})
    assert not breaking_changes(plain, {**plain, "$schema": "https://json-schema.org/draft/2020-12/schema"})
    assert not breaking_changes(tuples, {**tuples, "description": "more"})


def test_a_default_taken_away_behind_a_reference_breaks() -> None:
    old = {"type": "object", "allOf": [{"$ref": "#/$defs/P"}],
           "$defs": {"P": {"properties": {"a": {"default": 1}}, "required": ["a"]}}}  # fmt: skip
    new = {**old, "$defs": {"P": {"properties": {"a": {}}, "required": ["a"]}}}
    assert "parameter 'a' is now required" in breaking_changes(old, new)

"""Values meet JSON Schema: checks, defaults, and messages that name the argument."""

from typing import Any

import pytest

from toolcrib import InvalidArgumentsError, InvalidSchemaError
from toolcrib.core.schema import ArgumentCheck, compile_schema, named_arguments

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
    assert not compile_schema({"type": "string", "pattern": "^(a+)+$"}).is_valid("a" * 5000 + "b")


@pytest.mark.parametrize(
    ("dialect", "schema", "fits", "fits_not"),
    [
        ("http://json-schema.org/draft-07/schema#", {"items": [{"type": "string"}]}, ["a", 1], [1]),
        ("https://json-schema.org/draft-07/schema", {"items": [{"type": "string"}]}, ["a", 1], [1]),
        ("http://json-schema.org/draft-06/schema#", {"const": 1}, 1, 2),
        ("http://json-schema.org/draft-04/schema#", {"minimum": 3, "exclusiveMinimum": True}, 4, 3),
        ("https://json-schema.org/draft/2019-09/schema", {"items": [{"type": "string"}]}, ["a", 1], [1]),
        ("https://json-schema.org/draft/2020-12/schema", {"prefixItems": [{"type": "string"}]}, ["a", 1], [1]),
    ],
)
def test_a_schema_is_read_in_the_dialect_that_it_names(
    dialect: str, schema: dict[str, Any], fits: Any, fits_not: Any
) -> None:
    validator = compile_schema({"$schema": dialect, **schema})
    assert validator.is_valid(fits)
    assert not validator.is_valid(fits_not)


@pytest.mark.parametrize("dialect", ["https://example.org/my-dialect", "draft-07", 3])
def test_an_unknown_dialect_is_refused_by_name(dialect: Any) -> None:
    with pytest.raises(
        InvalidSchemaError, match=f"{dialect!r}; the known dialects are 2020-12, 2019-09, draft-07"
    ) as _:
        compile_schema({"$schema": dialect, "type": "string"})


@pytest.mark.parametrize("address", ["https://schemas.example/a.json", "other.json", "file:///etc/passwd"])
def test_a_reference_to_another_document_is_refused_with_the_reason(address: str) -> None:
    with pytest.raises(InvalidSchemaError) as caught:
        compile_schema({"properties": {"a": {"$ref": address}}}, "the thing")
    assert f"it refers to {address!r}; only references inside the schema are followed" in str(caught.value)


DEFAULTS = {
    "type": "object",
    "allOf": [{"$ref": "#/$defs/Paged"}],
    "properties": {
        "limit": {"$ref": "#/$defs/Limit"},
        "own": {"$ref": "#/$defs/Limit", "default": 1},
        "node": {"$ref": "#/$defs/Node"},
        "pair": {"prefixItems": [{"$ref": "#/$defs/Node"}, {"type": "object"}], "items": {"$ref": "#/$defs/Paged"}},
        "same": {"$ref": "#/properties/same"},
    },
    "required": ["limit"],
    "$defs": {
        "Limit": {"type": "integer", "default": 10},
        "Paged": {"properties": {"page": {"type": "integer", "default": 0}}},
        "Node": {
            "properties": {
                "size": {"allOf": [{"$ref": "#/$defs/Limit"}]},
                "next": {"$ref": "#/$defs/Node"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Node"}},
            },
        },
    },
}


def test_defaults_behind_references_and_all_of_are_filled_in() -> None:
    fill = ArgumentCheck(DEFAULTS, "t")
    assert fill({}) == {"limit": 10, "own": 1, "page": 0}
    given = {"node": {"next": {"next": {}}, "children": [{"size": 1}, {}]}, "pair": [{}, {}, {}], "same": {}}
    assert fill(given) == {
        "limit": 10,
        "own": 1,
        "page": 0,
        "node": {"size": 10, "next": {"size": 10, "next": {"size": 10}}, "children": [{"size": 1}, {"size": 10}]},
        "pair": [{"size": 10}, {}, {"page": 0}],
        "same": {},
    }


def test_a_chain_of_references_may_be_long() -> None:
    chain = {str(n): {"properties": {"a": {"$ref": f"#/$defs/{n + 1}"}}} for n in range(3000)}
    schema = {"$ref": "#/$defs/0", "$defs": chain | {"3000": {"properties": {"b": {"default": 1}}}}}
    assert ArgumentCheck(schema, "t")({"a": {"b": 2}}) == {"a": {"b": 2}}
    assert ArgumentCheck({**schema, "$ref": "#/$defs/2999"}, "t")({"a": {}}) == {"a": {"b": 1}}


def test_what_is_wrong_behind_a_reference_is_named_too() -> None:
    schema = {
        "$ref": "#/$defs/Input",
        "$defs": {"Input": {"properties": {"path": {"type": "string"}}, "required": ["path"]}},
    }
    with pytest.raises(InvalidArgumentsError, match="tool 'reader' needs the argument 'path'"):
        ArgumentCheck(schema, "reader")({})


OPTIONS = {"type": "object", "properties": {"b": {"default": 1}}}


@pytest.mark.parametrize(
    ("reference", "document"),
    [
        ("#/$defs/O", {"$defs": {"O": OPTIONS}}),
        ("#o", {"$defs": {"O": {"$anchor": "o", **OPTIONS}}}),
        ("#o", {"$defs": {"O": {"$dynamicAnchor": "o", **OPTIONS}}}),
        ("#/$defs/O", {"$id": "https://x.example/s", "$defs": {"O": OPTIONS}}),
        ("https://x.example/s#/$defs/O", {"$id": "https://x.example/s", "$defs": {"O": OPTIONS}}),
        ("s#o", {"$id": "https://x.example/s", "$defs": {"O": {"$anchor": "o", **OPTIONS}}}),
        ("o", {"$id": "https://x.example/s", "$defs": {"O/~%": {"$id": "/o", **OPTIONS}}}),
        ("T0", {"$defs": {"O": {"$id": "T0", **OPTIONS}}}),
        ("urn:x:o#p", {"$defs": {"O": {"$id": "urn:x:o", "allOf": [{"$anchor": "p", **OPTIONS}]}}}),
        (
            "o",
            {"$defs": {"O": {"$id": "o", "$ref": "#/$defs/Own", "$defs": {"Own": OPTIONS}}, "Own": {"type": "string"}}},
        ),
        ("#o", {"$schema": "http://json-schema.org/draft-07/schema#", "definitions": {"O": {"$id": "#o", **OPTIONS}}}),
    ],
)
def test_defaults_are_found_however_a_reference_is_written(reference: str, document: dict[str, Any]) -> None:
    schema = {**document, "type": "object", "properties": {"o": {"$ref": reference}, "default": {}, "$id": {}}}
    assert ArgumentCheck(schema, "t")({"o": {}}) == {"o": {"b": 1}}


def test_values_that_look_like_schemas_stay_values() -> None:
    value = {"$id": "o", "$ref": "#/$defs/O", "$anchor": "o"}
    schema = {"properties": {"a": {"default": value}, "o": {"$ref": "#o"}}, "$defs": {"O": {"$anchor": "o", **OPTIONS}}}
    assert ArgumentCheck(schema, "t")({"o": {}}) == {"a": value, "o": {"b": 1}}


def test_where_a_dynamic_reference_leads_is_not_guessed() -> None:
    schema = {"properties": {"o": {"$dynamicRef": "#o"}}, "$defs": {"O": {"$dynamicAnchor": "o", **OPTIONS}}}
    assert ArgumentCheck(schema, "t")({"o": {}}) == {"o": {}}


@pytest.mark.parametrize(
    ("schema", "names"),
    [
        ({}, set()),
        (SCHEMA, {"path", "count", "ratio", "options", "rows"}),
        ({"properties": {"a": True}, "allOf": [{"properties": {"b": {}}}]}, {"a", "b"}),
        ({"$ref": "#/$defs/x", "$defs": {"x": {"properties": {"a": {"properties": {"inside": {}}}}}}}, {"a"}),
        ({"oneOf": [{"properties": {"a": {}}}, {"anyOf": [{"properties": {"b": {}}}]}]}, {"a", "b"}),
        ({"if": {"properties": {"a": {}}}, "then": {"properties": {"b": {}}}, "else": False}, {"a", "b"}),
        ({"dependentSchemas": {"a": {"properties": {"b": {}}}}}, {"b"}),
        ({"properties": {"a": {}}, "additionalProperties": False}, {"a"}),
        ({"properties": {"a": {}}, "additionalProperties": True}, None),
        ({"properties": {"a": {}}, "additionalProperties": {}}, None),
        ({"allOf": [{"patternProperties": {"^x-": {}}}]}, None),
        ({"$ref": "#"}, set()),
    ],
)
def test_the_arguments_that_a_schema_speaks_of(schema: dict[str, Any], names: set[str] | None) -> None:
    assert named_arguments(schema) == names

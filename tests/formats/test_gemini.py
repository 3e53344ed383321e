from typing import Any

import pytest
from hypothesis import given
from tests.formats.specs import specs

from toolcrib import ToolSpec
from toolcrib.formats import Loss, from_definition, handover

KNOWN = {
    "type", "format", "title", "description", "nullable", "enum", "items", "maxItems", "minItems", "properties",
    "required", "minProperties", "maxProperties", "minimum", "maximum", "minLength", "maxLength", "pattern", "default",
    "anyOf",
}  # fmt: skip


def convert(**properties: Any) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    definitions = properties.pop("definitions", {})
    parameters = {"type": "object", "properties": properties, "$defs": definitions}
    handed = handover([ToolSpec(name="t", description="d", parameters=parameters)], "gemini")
    return handed.definitions[0]["parameters"]["properties"], handed.losses


@pytest.mark.parametrize(
    ("schema", "converted"),
    [
        ({"type": "string", "minLength": 1}, {"type": "string", "minLength": 1}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3},
            {"type": "integer", "default": 3, "nullable": True},
        ),
        ({"enum": ["a", None]}, {"type": "string", "enum": ["a"], "nullable": True}),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "string"}], "description": "d"},
            {"anyOf": [{"type": "integer", "description": "d"}, {"type": "string", "description": "d"}]},
        ),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
    ],
)
def test_what_gemini_can_say(schema: dict[str, Any], converted: dict[str, Any]) -> None:
    properties, losses = convert(x=schema)
    assert properties["x"] == converted
    assert losses == ()


@pytest.mark.parametrize(
    ("schema", "converted", "lost"),
    [
        ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer"}, "exclusiveMinimum"),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer"}, "enum"),
        ({"type": "string", "format": "email"}, {"type": "string"}, "format"),
        ({"type": "object", "additionalProperties": {"type": "string"}}, {"type": "object"}, "additionalProperties"),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            "oneOf",
        ),
    ],
)
def test_what_gemini_cannot_say_is_reported(schema: dict[str, Any], converted: dict[str, Any], lost: str) -> None:
    properties, losses = convert(x=schema)
    assert properties["x"] == converted
    assert [loss.field for loss in losses] == [f"parameters.properties.x.{lost}"]


def test_references_are_written_out() -> None:
    address = {"type": "object", "properties": {"street": {"type": "string"}}, "required": ["street"]}
    properties, losses = convert(home={"$ref": "#/$defs/Address"}, definitions={"Address": address})
    assert properties["home"] == address
    assert losses == ()


def test_recursion_ends_with_a_loss() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    properties, losses = convert(head={"$ref": "#/$defs/Node"}, definitions={"Node": node})
    assert properties["head"] == {"type": "object", "properties": {"next": {"type": "object"}}}
    assert [loss.field for loss in losses] == ["parameters.properties.head.properties.next.$ref"]


def test_a_tool_without_parameters_has_none() -> None:
    [definition] = handover([ToolSpec(name="t", description="d")], "gemini").definitions
    assert definition == {"name": "t", "description": "d"}


@given(specs)
def test_only_what_gemini_knows_goes_out(spec: ToolSpec) -> None:
    [definition] = handover([spec], "gemini").definitions
    if "parameters" in definition:
        _check(definition["parameters"])


def _check(schema: dict[str, Any]) -> None:
    assert schema.keys() <= KNOWN
    if "anyOf" in schema:
        assert schema.keys() == {"anyOf"}
        for branch in schema["anyOf"]:
            _check(branch)
        return
    assert isinstance(schema["type"], str)
    assert all(isinstance(value, str) for value in schema.get("enum", []))
    assert set(schema.get("required", ())) <= set(schema.get("properties", {}))
    for sub in schema.get("properties", {}).values():
        _check(sub)
    if schema["type"] == "array":
        _check(schema["items"])


@given(specs)
def test_what_went_out_comes_back_and_goes_out_the_same_without_loss(spec: ToolSpec) -> None:
    [definition] = handover([spec], "gemini").definitions
    again = from_definition("gemini", definition)
    handed = handover([again], "gemini")
    assert handed.definitions == [definition]
    assert handed.losses == ()


def test_googles_own_spelling_is_read() -> None:
    definition = {
        "name": "t",
        "description": "d",
        "parameters": {"type": "OBJECT", "properties": {"n": {"type": "INTEGER", "nullable": True}}, "required": ["n"]},
    }
    assert from_definition("gemini", definition).parameters == {
        "type": "object",
        "properties": {"n": {"type": ["integer", "null"]}},
        "required": ["n"],
    }
    plain = {"name": "t", "parametersJsonSchema": {"type": "object", "properties": {"n": {"const": 1}}}}
    assert from_definition("gemini", plain).parameters == plain["parametersJsonSchema"]

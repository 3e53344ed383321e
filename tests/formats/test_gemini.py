from typing import Any

import jsonschema_rs
import pytest
from google.genai.types import FunctionDeclaration
from hypothesis import given
from tests.formats.specs import specs

from toolcrib import ToolSpec, tool
from toolcrib.formats import Loss, from_definition, handover

KNOWN = {
    "$ref", "$defs", "type", "format", "title", "description", "enum", "items", "prefixItems", "maxItems", "minItems",
    "properties", "additionalProperties", "required", "minProperties", "maxProperties", "minimum", "maximum",
    "minLength", "maxLength", "pattern", "default", "anyOf",
}  # fmt: skip
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def convert(**properties: Any) -> tuple[dict[str, Any], tuple[Loss, ...]]:
    definitions = properties.pop("definitions", {})
    parameters = {"type": "object", "properties": properties, "$defs": definitions}
    handed = handover([ToolSpec(name="t", description="d", parameters=parameters)], "gemini")
    return handed.definitions[0]["parametersJsonSchema"], handed.losses


@pytest.mark.parametrize(
    ("schema", "converted"),
    [
        ({"type": "string", "minLength": 1}, {"type": "string", "minLength": 1}),
        ({"enum": ["a", "b"]}, {"type": "string", "enum": ["a", "b"]}),
        ({"type": "integer", "enum": [1, 2]}, {"type": "integer", "enum": [1, 2]}),
        ({"const": "a"}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3},
            {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": 3},
        ),
        ({"enum": ["a", None]}, {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "null"}]}),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"type": "string", "format": "date-time"}, {"type": "string", "format": "date-time"}),
        ({"allOf": [{"type": "string"}], "description": "d"}, {"type": "string", "description": "d"}),
        (
            {"type": "object", "additionalProperties": {"type": "string"}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        (
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
            {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}]},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        ),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({}, {}),
    ],
)
def test_what_gemini_can_say(schema: dict[str, Any], converted: dict[str, Any]) -> None:
    parameters, losses = convert(x=schema)
    assert parameters["properties"]["x"] == converted
    assert losses == ()


@pytest.mark.parametrize(
    ("schema", "converted", "lost"),
    [
        (
            {"type": "integer", "exclusiveMinimum": 0},
            {"type": "integer", "description": "(exclusiveMinimum: 0)"},
            "exclusiveMinimum",
        ),
        ({"type": "boolean", "enum": [True]}, {"type": "boolean"}, "enum"),
        ({"type": "string", "format": "email"}, {"type": "string", "description": "(format: email)"}, "format"),
        ({"type": "integer", "not": {"const": 1}}, {"type": "integer"}, "not"),
        (
            {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            {"anyOf": [{"type": "number"}, {"type": "integer"}]},
            "oneOf",
        ),
    ],
)
def test_what_gemini_cannot_say_is_reported(schema: dict[str, Any], converted: dict[str, Any], lost: str) -> None:
    parameters, losses = convert(x=schema)
    assert parameters["properties"]["x"] == converted
    assert [loss.field for loss in losses] == [f"parameters.properties.x.{lost}"]


def test_references_stay_references_and_so_do_circles() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    parameters, losses = convert(head={"$ref": "#/$defs/Node", "description": "d"}, definitions={"Node": node})
    assert parameters == {
        "type": "object",
        "properties": {"head": {"anyOf": [{"$ref": "#/$defs/Node"}], "description": "d"}},
        "$defs": {"Node": node},
    }
    assert losses == ()


def test_a_tool_without_parameters_has_none() -> None:
    [definition] = handover([ToolSpec(name="t", description="d")], "gemini").definitions
    assert definition == {"name": "t", "description": "d"}


def test_what_a_tool_returns_is_said_too() -> None:
    @tool
    async def corners(side: int) -> list[dict[str, int]]:
        """The corners of a square."""
        return []

    [definition] = handover([corners.spec], "gemini").definitions
    assert definition["responseJsonSchema"] == {
        "type": "array",
        "items": {"type": "object", "additionalProperties": {"type": "integer"}},
    }
    assert from_definition("gemini", definition).returns == definition["responseJsonSchema"]
    declared = FunctionDeclaration.model_validate(definition)
    assert declared.response_json_schema == definition["responseJsonSchema"]
    assert from_definition("gemini", declared.model_dump(exclude_none=True)) == from_definition("gemini", definition)


@given(specs)
def test_only_what_gemini_knows_goes_out(spec: ToolSpec) -> None:
    [definition] = handover([spec], "gemini").definitions
    declared = FunctionDeclaration.model_validate(definition)
    assert declared.model_dump(by_alias=True, exclude_none=True) == definition
    if "parametersJsonSchema" in definition:
        jsonschema_rs.Draft202012Validator(definition["parametersJsonSchema"])
        _check(definition["parametersJsonSchema"])


def _check(schema: dict[str, Any]) -> None:
    assert schema.keys() <= KNOWN
    assert "$ref" not in schema or schema.keys() == {"$ref"}
    assert all(type(value) in (str, int, float) for value in schema.get("enum", []))
    assert set(schema.get("required", ())) <= set(schema.get("properties", {}))
    for sub in (*schema.get("properties", {}).values(), *schema.get("anyOf", ())):
        _check(sub)


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

"""Strict definitions: the rewritten schema, what cannot be strict, and the way back from the nulls."""

import json
from collections.abc import Callable
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.specs import specs
from tests.formats.strict_schemas import filled, is_valid, parameters, values_of

from toolcrib import ExportError, ToolSpec, tool
from toolcrib.formats import Loss, handover
from toolcrib.formats.nulls import holds_null, without_nulls

STRICT = ("openai", "openai-responses", "openrouter", "anthropic")


def strict(schema: dict[str, Any], format: str = "openai-responses") -> tuple[dict[str, Any], tuple[Loss, ...]]:
    handed = handover([ToolSpec(name="t", description="d", parameters=schema)], format, strict=True)
    return handed.definitions[0], handed.losses


def of_property(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> tuple[dict[str, Any], list[str]]:
    """What becomes of a required parameter for OpenAI, and the fields of its losses."""
    given = {"type": "object", "properties": {"x": schema}, "required": ["x"], "$defs": definitions or {}}
    definition, losses = strict(given)
    assert definition["strict"] is True, losses
    return definition["parameters"]["properties"]["x"], [loss.field.removeprefix("parameters.") for loss in losses]


def of_optional(schema: dict[str, Any], definitions: dict[str, Any] | None = None) -> dict[str, Any]:
    definition, losses = strict({"type": "object", "properties": {"x": schema}, "$defs": definitions or {}})
    assert definition["strict"] is True, losses
    made: dict[str, Any] = definition["parameters"]["properties"]["x"]
    return made


TEXT_OR_NUMBER = [{"type": "string"}, {"type": "integer"}]
ONE_OR_A = [{"type": "integer", "enum": [1]}, {"type": "string", "enum": ["a"]}]
A = {"type": "object", "properties": {"a": {"type": "string"}}}
POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": "integer", "default": 0}},
    "required": ["x"],
}
STRICT_POINT = {
    "type": "object",
    "properties": {"x": {"type": "integer"}, "y": {"type": ["integer", "null"], "description": "(default: 0)"}},
    "required": ["x", "y"],
    "additionalProperties": False,
}


def test_a_whole_definition_of_openai() -> None:
    @tool
    async def search(query: str, limit: int = 10, tags: list[str] | None = None) -> list[str]:
        """Search.

        Args:
            query: What to look for
            limit: How many
        """
        return [query]

    [definition] = handover([search.spec], "openai-responses", strict=True).definitions
    assert definition == {
        "type": "function",
        "name": "search",
        "description": "Search.",
        "strict": True,
        "parameters": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What to look for"},
                "limit": {"type": ["integer", "null"], "description": "How many (default: 10)"},
                "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]},
            },
            "required": ["query", "limit", "tags"],
            "additionalProperties": False,
        },
        "output_schema": {"type": "array", "items": {"type": "string"}},
    }
    [chat] = handover([search.spec], "openai", strict=True).definitions
    assert chat["function"]["strict"] is True
    assert chat["function"]["parameters"] == definition["parameters"]


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        ({"enum": ["a", "b"]}, {"type": ["string", "null"], "enum": ["a", "b", None]}),
        ({"enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": 1, "type": "integer"}, {"type": ["integer", "null"], "enum": [1, None]}),
        (
            {"type": "array", "items": {"type": "number"}, "description": "d"},
            {"anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "null"}], "description": "d"},
        ),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"anyOf": [*TEXT_OR_NUMBER, {"type": "null"}]}),
        ({"type": ["string", "integer"]}, {"anyOf": [*TEXT_OR_NUMBER, {"type": "null"}]}),
        ({"anyOf": [{"type": "null"}], "default": None}, {"anyOf": [{"type": "null"}]}),
        ({"type": "string", "default": "x"}, {"type": ["string", "null"], "description": "(default: x)"}),
        ({"$ref": "#/$defs/Point"}, {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}]}),
        (
            {"$ref": "#/$defs/Point", "description": "d", "default": {"x": 1}},
            {"anyOf": [{"$ref": "#/$defs/Point"}, {"type": "null"}], "description": 'd (default: {"x": 1})'},
        ),
    ],
)  # fmt: skip
def test_what_may_be_left_out_is_nullable(schema: dict[str, Any], made: dict[str, Any]) -> None:
    assert of_optional(schema, {"Point": POINT}) == made


@pytest.mark.parametrize(
    ("schema", "made", "lost"),
    [
        ({"type": "string", "minLength": 3}, {"type": "string", "description": "(minLength: 3)"}, ["minLength"]),
        ({"type": "string", "format": "email"}, {"type": "string", "format": "email"}, []),
        ({"type": "string", "format": "uri"}, {"type": "string", "description": "(format: uri)"}, ["format"]),
        ({"type": "string", "pattern": "^a+$"}, {"type": "string", "pattern": "^a+$"}, []),
        ({"type": "string", "pattern": "a(?!b)"}, {"type": "string", "description": "(pattern: a(?!b))"}, ["pattern"]),
        ({"type": "integer", "minimum": 1, "title": "N"}, {"type": "integer", "minimum": 1}, []),
        (
            {"type": "array", "items": {"type": "integer"}, "uniqueItems": True, "maxItems": 3},
            {"type": "array", "items": {"type": "integer"}, "maxItems": 3, "description": "(uniqueItems: true)"},
            ["uniqueItems"],
        ),
        ({"type": "integer", "not": {"const": 3}}, {"type": "integer"}, ["not"]),
        ({"type": "integer", "minLength": 3}, {"type": "integer"}, []),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            [],
        ),
        (
            {"oneOf": [{"type": "number"}, {"type": "integer"}]},
            {"anyOf": [{"type": "number"}, {"type": "integer"}]},
            ["oneOf"],
        ),
        ({"allOf": [{"type": "integer", "minimum": 1}, {"minimum": 3}]}, {"type": "integer", "minimum": 3}, []),
        ({"allOf": [{"$ref": "#/$defs/Point"}]}, {"$ref": "#/$defs/Point"}, []),
        ({"allOf": [{"enum": [1, 2, "a"]}, {"enum": ["a", 1]}]}, {"anyOf": ONE_OR_A}, []),
        ({"allOf": [{"enum": ["a", "b"]}, {"const": "b"}]}, {"type": "string", "enum": ["b"]}, []),
        (
            {"type": "string", "anyOf": [{"pattern": "^a"}, {"pattern": "^b"}]},
            {"anyOf": [{"pattern": "^a", "type": "string"}, {"pattern": "^b", "type": "string"}]},
            [],
        ),
    ],
)
def test_what_strict_mode_does_not_know_is_told_in_words(
    schema: dict[str, Any], made: dict[str, Any], lost: list[str]
) -> None:
    found, losses = of_property(schema, {"Point": POINT})
    assert found == made
    assert losses == [f"properties.x.{keyword}" for keyword in lost]


def test_alternatives_that_a_word_tells_apart_lose_nothing() -> None:
    branches = [
        {"type": "object", "properties": {"kind": {"const": kind}}, "required": ["kind"]} for kind in ("a", "b")
    ]
    made, losses = of_property({"oneOf": branches, "discriminator": {"propertyName": "kind"}})
    assert [each["properties"]["kind"]["enum"] for each in made["anyOf"]] == [["a"], ["b"]]
    assert losses == []


def test_of_very_many_alternatives_nobody_looks_whether_they_are_apart() -> None:
    made, losses = of_property({"oneOf": [{"const": f"{number}"} for number in range(1_000)]})
    assert len(made["anyOf"]) == 1_000
    assert losses == ["properties.x.oneOf"]


def test_definitions_are_kept_and_strict_too() -> None:
    schema = {"type": "object", "properties": {"p": {"$ref": "#/$defs/Point"}}, "$defs": {"Point": POINT, "Unused": {}}}
    definition, losses = strict(schema)
    assert definition["parameters"]["$defs"] == {"Point": STRICT_POINT}
    assert losses == ()


def test_parts_of_a_whole_become_one() -> None:
    schema = {
        "allOf": [
            {"properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"properties": {"b": {"type": "string"}, "a": {"minimum": 1}}},
        ]
    }
    definition, losses = strict(schema)
    assert definition["parameters"] == {
        "type": "object",
        "properties": {"a": {"type": "integer", "minimum": 1}, "b": {"type": ["string", "null"]}},
        "required": ["a", "b"],
        "additionalProperties": False,
    }
    assert losses == ()


def test_parameters_that_are_elsewhere_are_those_and_what_stands_beside() -> None:
    schema = {"$ref": "#/$defs/Base", "properties": {"b": {"type": "string"}}, "required": ["b"], "$defs": {"Base": A}}
    for target in STRICT:
        for options in ({}, {"strict": True}):
            handed = handover([ToolSpec(name="t", description="d", parameters=schema)], target, **options)
            body = handed.definitions[0].get("function", handed.definitions[0])
            made = body.get("parameters") or body["input_schema"]
            assert made["properties"].keys() == {"a", "b"}
            assert "b" in made["required"]
    [line] = handover([ToolSpec(name="t", description="d", parameters=schema)], "compact").definitions
    assert line["signature"] == "t(a?: str, b: str) - d"


@pytest.mark.parametrize("reference", ["#", "#/$defs/A", "https://json-schema.org/draft/2020-12/schema"])
def test_parameters_that_are_nowhere_are_not_taken_for_none(reference: str) -> None:
    circle = {"A": {"$ref": "#/$defs/B"}, "B": {"$ref": "#/$defs/A"}}
    definition, losses = strict({"$ref": reference, "$defs": circle})
    assert definition["strict"] is False
    assert losses[0].field == "parameters.$ref"


def test_a_long_way_through_definitions_has_an_end() -> None:
    """As in large models, each of which has fields of others."""
    ways: list[Callable[[dict[str, Any]], dict[str, Any]]] = [
        lambda then: {"type": "object", "properties": {"next": then}, "required": ["next"]},
        lambda then: {"anyOf": [then, {"type": "null"}]},
    ]
    for way in ways:
        definitions = {f"d{number}": way({"$ref": f"#/$defs/d{number + 1}"}) for number in range(400)}
        definitions["d400"] = {"type": "integer"}
        schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": definitions}
        for target in STRICT:
            definition, _ = strict(schema, target)
            assert definition.get("function", definition)["strict"] is True
        spec = ToolSpec(name="t", description="d", parameters=schema, returns={"$ref": "#/$defs/d0", **schema})
        assert handover([spec], "gemini").definitions[0]["parametersJsonSchema"]["$defs"].keys() == definitions.keys()
        assert "output_schema" in handover([spec], "openai-responses").definitions[0]


def test_what_is_written_out_inside_of_itself_ends() -> None:
    part = [{"$ref": "#/$defs/Node"}, {"minProperties": 1}]
    node = {"type": "object", "properties": {"child": {"allOf": part}}}
    for use in ({"allOf": part}, {"$ref": "#/$defs/Node"}, {"$ref": "#/$defs/Node/properties/child"}):
        schema = {"type": "object", "properties": {"x": use}, "$defs": {"Node": node}}
        definition, losses = strict(schema)
        assert (definition["strict"], "no end" in losses[0].reason) == (False, True)
        spec = ToolSpec(name="t", description="d", parameters=schema)
        [declared] = handover([spec], "gemini").definitions
        assert len(json.dumps(declared)) < 1_000


def test_the_same_part_twice_is_no_circle() -> None:
    part = {"allOf": [{"$ref": "#/$defs/Point"}, {"minProperties": 1}]}
    both = {"allOf": [{"$ref": "#/$defs/Point"}, {"properties": {"inner": part}}]}
    made, _ = of_property(both, {"Point": {key: POINT[key] for key in POINT if key != "additionalProperties"}})
    assert made["properties"].keys() == {"x", "y", "inner"}


def test_a_schema_that_refers_to_itself_is_one_for_openai_and_none_for_anthropic() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    schema = {"type": "object", "properties": {"head": {"$ref": "#/$defs/Node"}}, "$defs": {"Node": node}}
    assert strict(schema)[0]["strict"] is True
    definition, losses = strict(schema, "anthropic")
    assert definition["strict"] is False
    assert definition["input_schema"] == schema
    assert [loss.field for loss in losses] == ["parameters.$defs.Node.properties.next.$ref"]


def test_names_and_anchors_of_references_are_followed() -> None:
    point = {"$anchor": "point", **POINT}
    made, losses = of_property({"$ref": "#point"}, {"Point": point})
    assert made == {"$ref": "#/$defs/Point"}
    assert losses == []
    slash = {
        "type": "object",
        "properties": {"p": {"$ref": "#/$defs/a~1b"}},
        "required": ["p"],
        "$defs": {"a/b": POINT},
    }
    definition, _ = strict(slash)
    assert jsonschema_rs.Draft202012Validator(definition["parameters"]).is_valid({"p": {"x": 1, "y": None}})


@pytest.mark.parametrize(
    ("schema", "field", "reason"),
    [
        ({"type": "object", "additionalProperties": {"type": "integer"}}, "properties.x", "not named"),
        ({**A, "additionalProperties": True}, "properties.x", "not named"),
        ({"type": "object"}, "properties.x", "not named"),
        ({}, "properties.x", "any value fits it"),
        ({"type": "array"}, "properties.x.items", "its items may be anything"),
        ({"type": "array", "items": {}}, "properties.x.items", "any value fits it"),
        ({"type": "array", "prefixItems": [{"type": "string"}]}, "properties.x.prefixItems", "places"),
        ({**A, "patternProperties": {"^b": {}}}, "properties.x.patternProperties", "patternProperties"),
        ({**A, "if": {}, "then": {}}, "properties.x.if", "'if'"),
        ({**A, "required": ["b"]}, "properties.x.required", "'b'"),
        ({"enum": [{"a": 1}]}, "properties.x.enum", "objects or arrays"),
        ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "properties.x.allOf", "'type'"),
        ({"allOf": [{"enum": ["a", "b"]}, {"const": None}]}, "properties.x.allOf", "'const'"),
        (
            {"allOf": [{**A, "additionalProperties": False}, {"properties": {"b": {}}}]},
            "properties.x.allOf",
            "'additionalProperties'",
        ),
        ({"$ref": "#/properties/x/items", "items": {"$ref": "#/properties/x"}}, "", ""),
        ({"anyOf": [False]}, "properties.x", "no value"),
    ],
)  # fmt: skip
def test_what_cannot_be_strict_is_sent_as_it_is_and_says_why(schema: dict[str, Any], field: str, reason: str) -> None:
    given = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    for target in STRICT:
        definition, losses = strict(given, target)
        body = definition.get("function", definition)
        assert body["strict"] is False
        assert (body.get("parameters") or body["input_schema"]) == given
        [loss] = losses
        assert loss.reason.startswith("it is sent without 'strict': ")
        assert reason in loss.reason
        assert loss.field.startswith(f"parameters.{field}" if field else "parameters")


def test_what_is_said_at_the_top_is_lost_unless_it_brings_parameters() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}]}
    definition, losses = strict(schema)
    assert (definition["strict"], [loss.field for loss in losses]) == (True, ["parameters.anyOf"])
    definition, losses = strict({"type": "object", "oneOf": [POINT, {"$ref": "#/$defs/P"}], "$defs": {"P": POINT}})
    assert definition["strict"] is False
    assert "alternatives at the top" in losses[0].reason


def test_a_tool_without_parameters_is_strict() -> None:
    for schema in ({"type": "object", "properties": {}}, {"type": "object"}, {}):
        definition, losses = strict(schema)
        empty = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
        assert (definition["parameters"], definition["strict"], losses) == (empty, True, ())


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({f"p{n}": {"type": "string"} for n in range(5_001)}, "5,001 properties"),
        ({"e": {"enum": [f"{n}" for n in range(1_001)]}}, "1,001 values of enums"),
        ({"e": {"enum": [f"{n:0100}" for n in range(251)]}}, "an enum of 251 has over 15,000 characters"),
        ({f"{n:01000}": {"type": "string"} for n in range(121)}, "121,000 characters"),
    ],
)
def test_what_is_too_large_for_openai_is_not_strict(schema: dict[str, Any], reason: str) -> None:
    definition, losses = strict({"type": "object", "properties": schema, "required": list(schema)})
    assert definition["strict"] is False
    assert reason in losses[-1].reason


def test_what_is_too_deep_for_openai_is_not_strict() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "string"}}}
    for _ in range(9):
        schema = {"type": "object", "properties": {"a": schema}}
    assert strict(schema)[0]["strict"] is True
    definition, losses = strict({"type": "object", "properties": {"a": schema}})
    assert definition["strict"] is False
    assert "11 levels" in losses[-1].reason


def test_references_that_multiply_end() -> None:
    definitions = {
        f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}, {"minimum": n}]}
        for n in range(30)
    }
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/d0"}},
        "$defs": definitions | {"d30": {"type": "integer"}},
    }
    definition, losses = strict(schema)
    assert definition["strict"] is False
    assert "10,000 parts" in losses[0].reason


# Anthropic


def test_anthropic_keeps_what_may_be_left_out_optional() -> None:
    schema = {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "default": 3},
            "s": {"type": "string", "maxLength": 9},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "m": {"type": "array", "items": {"type": "string", "format": "uri"}, "minItems": 2},
        },
        "required": ["n"],
    }
    definition, losses = strict(schema, "anthropic")
    assert definition["strict"] is True
    assert definition["input_schema"] == {
        "type": "object",
        "properties": {
            "n": {"type": "integer", "default": 3, "description": "(minimum: 1)"},
            "s": {"type": "string", "description": "(maxLength: 9)"},
            "l": {"type": "array", "items": {"type": "string"}, "minItems": 1},
            "m": {"type": "array", "items": {"type": "string", "format": "uri"}, "description": "(minItems: 2)"},
        },
        "required": ["n"],
        "additionalProperties": False,
    }
    assert [loss.field.rpartition(".")[2] for loss in losses] == ["minimum", "maxLength", "minItems"]


@pytest.mark.parametrize(
    ("schema", "made"),
    [
        ({"enum": ["a", None]}, [{"type": "string", "enum": ["a"]}, {"type": "null"}]),
        ({"type": ["string", "null"], "enum": ["a", None]}, [{"type": "string", "enum": ["a"]}, {"type": "null"}]),
        ({"type": ["string", "null"], "format": "date"}, [{"type": "string", "format": "date"}, {"type": "null"}]),
    ],
)
def test_anthropic_takes_no_list_of_types_beside_what_is_said_of_one(schema: dict[str, Any], made: list[Any]) -> None:
    definition, losses = strict({"type": "object", "properties": {"x": schema}}, "anthropic")
    assert definition["strict"] is True
    assert definition["input_schema"]["properties"]["x"] == {"anyOf": made}
    assert losses == ()


@pytest.mark.parametrize(
    ("schema", "required", "fit", "reason"),
    [
        ({"a": {"type": "string"}}, ["a"], 20, "20 strict tools"),
        ({"a": {"type": "string"}, "b": {"type": "string"}}, [], 12, "24 optional parameters"),
        ({"a": {"type": ["string", "null"]}}, ["a"], 16, "16 parameters of several types"),
    ],
)
def test_anthropic_takes_so_many_strict_tools(
    schema: dict[str, Any], required: list[str], fit: int, reason: str
) -> None:
    given = {"type": "object", "properties": schema, "required": required}
    tools = [ToolSpec(name=f"t{n}", description="d", parameters=given) for n in range(fit + 2)]
    handed = handover(tools, "anthropic", strict=True)
    assert [definition["strict"] for definition in handed.definitions] == [True] * fit + [False] * 2
    assert [loss.tool for loss in handed.losses] == [f"t{fit}", f"t{fit + 1}"]
    assert reason in handed.losses[0].reason
    assert handed.definitions[-1]["input_schema"] == given


@pytest.mark.parametrize("format", ["gemini", "mcp", "openapi", "compact", "prompt"])
def test_a_format_without_strict_definitions_says_so(format: str) -> None:
    with pytest.raises(ExportError, match="has no strict definitions; leave out strict=True"):
        handover([], format, strict=True)


@pytest.mark.parametrize("format", STRICT)
def test_an_option_that_is_none_is_told(format: str) -> None:
    with pytest.raises(ExportError, match="no option 'stritc'; did you mean 'strict'"):
        handover([], format, stritc=True)  # type: ignore[call-arg]


# Laws


def check(schema: dict[str, Any]) -> None:
    """The rules of OpenAI."""
    assert schema.keys() & {"type", "anyOf", "$ref"}
    assert not schema.keys() & {"oneOf", "allOf", "not", "default", "const", "minLength", "patternProperties", "title"}
    if "$ref" in schema:
        assert schema.keys() == {"$ref"}
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])
    if schema.get("type") == "array":
        assert "items" in schema
    for part in (*schema.get("properties", {}).values(), *schema.get("$defs", {}).values(), *schema.get("anyOf", ())):
        check(part)
    if "items" in schema:
        check(schema["items"])


@given(specs | parameters.map(lambda schema: ToolSpec(name="t", description="d", parameters=schema)))
def test_a_strict_definition_keeps_the_rules(spec: ToolSpec) -> None:
    before = spec.to_json()
    for target in STRICT:
        handed = handover([spec], target, strict=True)
        again = handover([ToolSpec.from_json(before)], target, strict=True)
        assert json.dumps(handed.definitions) == json.dumps(again.definitions)
        body = handed.definitions[0].get("function", handed.definitions[0])
        schema = body.get("parameters") or body["input_schema"]
        jsonschema_rs.Draft202012Validator(schema)
        assert body["strict"] or any("without 'strict'" in loss.reason for loss in handed.losses)
        if body["strict"] and target != "anthropic":
            assert schema["type"] == "object"
            assert "anyOf" not in schema
            check(schema)
    assert spec.to_json() == before


def bare(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: bare(item) for name, item in value.items() if item is not None}
    return [bare(item) for item in value] if isinstance(value, list) else value


@given(st.data())
def test_what_fits_the_tool_fits_its_strict_schema_with_nulls_and_comes_back(data: st.DataObject) -> None:
    schema = data.draw(parameters)
    definition, losses = strict(schema)
    if not definition["strict"] or losses:
        return
    made = definition["parameters"]
    given = data.draw(values_of(schema, schema))
    if not is_valid(schema, schema, given):
        return
    said = filled(given, made, made)
    assert is_valid(made, made, said)
    before = json.dumps(said)
    back = without_nulls(schema, said)
    assert json.dumps(said) == before
    assert is_valid(schema, schema, back)
    assert bare(back) == bare(given)


@given(st.data())
def test_what_fits_a_strict_schema_fits_the_tool_without_its_nulls(data: st.DataObject) -> None:
    schema = data.draw(parameters)
    definition, losses = strict(schema)
    if not definition["strict"] or losses:
        return
    made = definition["parameters"]
    said = data.draw(values_of(made, made | {"$defs": made.get("$defs", {})}))
    if not is_valid(made, made, said):
        return
    back = without_nulls(schema, said)
    assert is_valid(schema, schema, back)
    assert bare(back) == bare(said)
    assert without_nulls(schema, back) == back


@given(st.data())
def test_what_fits_the_tool_with_its_nulls_stays_as_it_is(data: st.DataObject) -> None:
    schema = data.draw(parameters)
    given = data.draw(values_of(schema, schema))
    if is_valid(schema, schema, given):
        assert without_nulls(schema, given) == given
    if not holds_null(given):
        assert without_nulls(schema, given) is given

from typing import Any

import jsonschema_rs
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.specs import specs

from toolcrib import ToolSpec
from toolcrib.formats import handover


def document(*tools: ToolSpec) -> dict[str, Any]:
    [made] = handover(tools, "openapi").definitions
    return made


def body_schema(made: dict[str, Any], name: str) -> dict[str, Any]:
    body = made["paths"][f"/tools/{name}/run"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return {**body, "components": made["components"]}


def test_a_document_of_the_service() -> None:
    made = document(
        ToolSpec(name="a", description="d", tags=("x",), category="c", deprecated=True),
        ToolSpec(name="b", description="e"),
    )
    assert made["openapi"] == "3.1.0"
    assert list(made["paths"]) == ["/tools/a/run", "/tools/b/run"]
    operation = made["paths"]["/tools/a/run"]["post"]
    assert (operation["operationId"], operation["tags"], operation["deprecated"]) == ("a", ["c", "x"], True)


def test_references_lead_somewhere() -> None:
    address = {"type": "object", "properties": {"street": {"type": "string"}, "next": {"$ref": "#/$defs/Address"}}}
    parameters = {
        "type": "object",
        "properties": {"home": {"$ref": "#/$defs/Address"}},
        "$defs": {"Address": address},
        "required": ["home"],
    }
    made = document(ToolSpec(name="move.house", description="d", parameters=parameters, returns={"type": "integer"}))
    validator = jsonschema_rs.Draft202012Validator(body_schema(made, "move.house"))
    assert validator.is_valid({"arguments": {"home": {"street": "x", "next": {"street": "y"}}}})
    assert not validator.is_valid({"arguments": {"home": {"street": "x", "next": {"street": 1}}}})
    answer = made["paths"]["/tools/move.house/run"]["post"]["responses"]["200"]["content"]["application/json"]["schema"]
    answers = jsonschema_rs.Draft202012Validator({**answer, "components": made["components"]})
    assert answers.is_valid({"success": True, "data": 1, "error": None, "error_code": None, "metadata": {}})
    assert not answers.is_valid({"success": True, "data": "1"})


@given(st.lists(specs, max_size=3, unique_by=lambda spec: spec.name))
def test_every_tool_has_its_place(tools: list[ToolSpec]) -> None:
    made = document(*tools)
    assert len(made["paths"]) == len(tools)
    for spec in tools:
        jsonschema_rs.Draft202012Validator(body_schema(made, spec.name))

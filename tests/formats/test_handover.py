import json
import re
from functools import cache
from typing import Any

import jsonschema_rs
import pytest
from anthropic.types import ToolParam
from google.genai.types import FunctionDeclaration
from hypothesis import given
from hypothesis import strategies as st
from mistralai.client.models import Tool as MistralTool
from openai.types.chat import ChatCompletionFunctionToolParam
from openai.types.responses import FunctionToolParam
from pydantic import BaseModel, TypeAdapter
from tests.formats.specs import names, specs

from toolcrib import ExportError, ToolNotFoundError, ToolRegistry, ToolSpec, tool
from toolcrib.formats import FORMATS, from_definition, handover, tool_called
from toolcrib.formats.anthropic import add_cache_control

PROVIDERS = ("openai", "openrouter", "mistral", "anthropic", "gemini", "mcp")
PATTERNS = {
    "openai": r"[a-zA-Z0-9_-]{1,64}",
    "openrouter": r"[a-zA-Z0-9_-]{1,64}",
    "mistral": r"[a-zA-Z0-9_-]{1,64}",
    "anthropic": r"[a-zA-Z0-9_-]{1,128}",
    "gemini": r"[A-Za-z_][A-Za-z0-9_.-]{0,63}",
    "mcp": r"[A-Za-z0-9_.-]{1,128}",
}

READ_FILE = ToolSpec(
    name="read_file",
    display_name="Read file",
    description="Read a file",
    parameters={
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where it is"},
            "encoding": {"enum": ["utf-8", "ascii"], "default": "utf-8"},
        },
        "required": ["path"],
    },
    returns={"type": "string"},
)


def test_openai() -> None:
    handed = handover([READ_FILE], "openai")
    assert handed.definitions == [
        {
            "type": "function",
            "function": {"name": "read_file", "description": "Read a file", "parameters": READ_FILE.parameters},
        }
    ]
    assert [str(loss) for loss in handed.losses] == ["read_file: returns: OpenAI has no place for an output schema"]


@pytest.mark.parametrize("format", ["openrouter", "mistral"])
def test_others_take_the_same_shape(format: str) -> None:
    assert handover([READ_FILE], format).definitions == handover([READ_FILE], "openai").definitions


def test_mistral_takes_its_definitions() -> None:
    [given] = handover([READ_FILE], "mistral").definitions
    assert MistralTool.model_validate(given).function.name == "read_file"
    with pytest.raises(ExportError, match="Mistral has no strict definitions"):
        handover([READ_FILE], "mistral", strict=True)


def test_anthropic() -> None:
    assert handover([READ_FILE], "anthropic").definitions == [
        {"name": "read_file", "description": "Read a file", "input_schema": READ_FILE.parameters}
    ]


def test_openai_responses_is_told_that_it_is_not_strict_and_what_comes_back() -> None:
    spec = READ_FILE.with_changes(returns={"type": "object", "properties": {"text": {"type": "string"}}})
    handed = handover([spec], "openai-responses")
    assert handed.definitions == [
        {
            "type": "function",
            "name": "read_file",
            "description": "Read a file",
            "parameters": READ_FILE.parameters,
            "strict": False,
            "output_schema": spec.returns,
        }
    ]
    assert handed.losses == ()
    assert from_definition("openai-responses", handed.definitions[0]).returns == spec.returns


@pytest.mark.parametrize(
    "returns", [{"type": "string"}, {"anyOf": [{"type": "integer"}, {"enum": ["a"]}]}, {"description": "anything"}]
)
def test_a_text_is_sent_to_openai_as_it_is_so_its_schema_is_not(returns: dict[str, Any]) -> None:
    handed = handover([READ_FILE.with_changes(returns=returns)], "openai-responses")
    assert "output_schema" not in handed.definitions[0]
    assert [loss.field for loss in handed.losses] == ["returns"]


def test_what_comes_back_may_refer_to_itself_and_to_the_same_again_and_again() -> None:
    often = {f"d{n}": {"anyOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(40)}
    for returns in (
        {"anyOf": [{"$ref": "#"}, {"type": "integer"}]},
        {"$ref": "#/$defs/d0", "$defs": often | {"d40": {"type": "integer"}}},
    ):
        [definition] = handover([READ_FILE.with_changes(returns=returns)], "openai-responses").definitions
        assert definition["output_schema"] == returns


def test_anthropic_gets_the_examples_that_fit() -> None:
    examples = [
        {"description": "plain", "input": {"path": "a.txt"}},
        {"description": "wrong", "input": {"encoding": "ascii"}},
        {"description": "as text", "call": "read_file('a')"},
    ]
    handed = handover([READ_FILE.with_changes(examples=examples, returns={})], "anthropic")
    assert handed.definitions[0]["input_examples"] == [{"path": "a.txt"}]
    assert [str(loss) for loss in handed.losses] == ["read_file: examples.1.input: it does not fit the parameters"]
    assert from_definition("anthropic", handed.definitions[0]).examples[0].input == {"path": "a.txt"}


def test_anthropic_caches_up_to_the_last_definition_that_is_not_deferred() -> None:
    tools = [READ_FILE.with_changes(name=name) for name in ("a", "b", "c")]
    definitions = handover(tools, "anthropic", cache=True).definitions
    assert ["cache_control" in each for each in definitions] == [False, False, True]
    definitions = handover(tools, "anthropic").definitions
    definitions[2]["defer_loading"] = True
    add_cache_control(definitions)
    assert [each.get("cache_control") for each in definitions] == [None, {"type": "ephemeral"}, None]
    assert handover([], "anthropic", cache=True).definitions == []
    with pytest.raises(ExportError, match="OpenAI does not have to be told to cache definitions"):
        handover(tools, "openai", cache=True)


SDK_TYPES: dict[str, Any] = {
    "openai": ChatCompletionFunctionToolParam,
    "openai-responses": FunctionToolParam,
    "anthropic": ToolParam,
    "gemini": FunctionDeclaration,
}
WITH_EXAMPLES = READ_FILE.with_changes(
    examples=[{"input": {"path": "a"}}], returns={"type": "object", "additionalProperties": {"type": "integer"}}
)


@pytest.mark.parametrize("format", SDK_TYPES)
@given(spec=specs | st.just(WITH_EXAMPLES))
def test_the_sdks_know_all_that_is_in_a_definition(format: str, spec: ToolSpec) -> None:
    typed = _adapter(format)
    wanted: list[Any] = [{}] if format == "gemini" else [{}, {"strict": True}]
    wanted += [{"cache": True}] if format == "anthropic" else []
    for options in wanted:
        [definition] = handover([spec], format, **options).definitions
        parsed = typed.validate_python(definition, strict=True, extra="forbid")
        if isinstance(parsed, dict):  # what it yields step by step is checked when it is read
            parsed = {
                key: value if isinstance(value, dict | str | bool) else list(value) for key, value in parsed.items()
            }
            assert parsed == definition


@cache
def _adapter(format: str) -> TypeAdapter[Any]:
    return TypeAdapter(SDK_TYPES[format])


def test_mcp_loses_nothing_here() -> None:
    handed = handover([READ_FILE], "mcp")
    assert handed.losses == ()
    assert handed.definitions == [
        {
            "name": "read_file",
            "title": "Read file",
            "description": "Read a file",
            "inputSchema": READ_FILE.parameters,
            "outputSchema": {"type": "object", "properties": {"result": {"type": "string"}}, "required": ["result"]},
            "annotations": {"readOnlyHint": True},
        }
    ]


@pytest.mark.parametrize(
    ("level", "hints"),
    [
        ("safe", {"readOnlyHint": True}),
        ("low_risk", {"readOnlyHint": False, "destructiveHint": False}),
        ("medium", {"readOnlyHint": False, "destructiveHint": False}),
        ("high", {"readOnlyHint": False, "destructiveHint": True}),
        ("dangerous", {"readOnlyHint": False, "destructiveHint": True}),
    ],
)
def test_mcp_hints_follow_the_safety_level(level: str, hints: dict[str, bool]) -> None:
    [definition] = handover([READ_FILE.with_changes(safety_level=level)], "mcp").definitions
    assert definition["annotations"] == hints


def test_mcp_output_references_survive_the_wrapping() -> None:
    point = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    returns = {"type": "array", "items": {"$ref": "#/$defs/Point"}, "$defs": {"Point": point}}
    [definition] = handover([READ_FILE.with_changes(returns=returns)], "mcp").definitions
    validator = jsonschema_rs.Draft202012Validator(definition["outputSchema"])
    assert validator.is_valid({"result": [{"x": 1}]})
    assert not validator.is_valid({"result": [{"x": "1"}]})


def test_mcp_reports_an_output_that_may_be_no_object() -> None:
    spec = READ_FILE.with_changes(returns={"anyOf": [{"type": "object"}, {"type": "null"}]})
    handed = handover([spec], "mcp")
    assert "outputSchema" not in handed.definitions[0]
    assert [loss.field for loss in handed.losses] == ["returns"]


def test_compact() -> None:
    handed = handover([READ_FILE], "compact")
    assert handed.definitions == [
        {
            "name": "read_file",
            "signature": 'read_file(path: str, encoding: "utf-8"|"ascii" = "utf-8") - Read a file',
        }
    ]


def test_an_unknown_format_is_refused_with_those_there_are() -> None:
    with pytest.raises(
        ExportError,
        match=r"'opanai'.*'openai', 'openai-responses', 'openrouter', 'mistral', 'anthropic', 'gemini', 'mcp'",
    ):
        handover([], "opanai")


@pytest.mark.parametrize("format", FORMATS)
def test_no_tools_are_no_definitions(format: str) -> None:
    handed = handover([], format)
    assert (handed.names, handed.losses) == ({}, ())
    assert format == "openapi" or handed.definitions == []


@pytest.mark.parametrize("format", ["openai", "openrouter", "mistral", "anthropic"])
def test_a_forbidden_name_is_sanitised_reported_and_mapped_back(format: str) -> None:
    handed = handover([READ_FILE.with_changes(name="files.read")], format)
    assert handed.names == {"files_read": "files.read"}
    assert handed.resolve("files_read") == "files.read"
    assert ("files.read", "name") in {(loss.tool, loss.field) for loss in handed.losses}
    with pytest.raises(ToolNotFoundError, match=r"files_reed.*did you mean 'files_read'"):
        handed.resolve("files_reed")


@pytest.mark.parametrize("format", ["openai", "anthropic"])
def test_two_tools_under_one_name_are_refused(format: str) -> None:
    tools = [READ_FILE.with_changes(name="files.read"), READ_FILE.with_changes(name="files_read")]
    with pytest.raises(ExportError, match=r"'files\.read' and 'files_read' are both called 'files_read'"):
        handover(tools, format)
    assert len(handover(tools, "mcp").definitions) == 2


def test_one_tool_twice_is_refused() -> None:
    with pytest.raises(ExportError, match="'read_file' is in the list twice"):
        handover([READ_FILE, READ_FILE], "mcp")


def test_gemini_names_start_with_a_letter() -> None:
    assert handover([READ_FILE.with_changes(name="3d.render")], "gemini").names == {"tool_3d.render": "3d.render"}


def test_long_names_stay_apart() -> None:
    long = "a" * 100
    handed = handover([READ_FILE.with_changes(name=long + end) for end in ("x", "y")], "openai")
    assert len(handed.names) == 2
    assert all(len(name) == 64 for name in handed.names)


@given(st.lists(names, unique=True, max_size=8), st.sampled_from(PROVIDERS))
def test_every_exported_name_is_allowed_and_leads_back(tools: list[str], format: str) -> None:
    try:
        handed = handover([ToolSpec(name=name, description="") for name in tools], format)
    except ExportError:
        alone = [handover([ToolSpec(name=name, description="")], format) for name in tools]
        assert len({exported for one in alone for exported in one.names}) < len(tools)
        return
    assert all(re.fullmatch(PATTERNS[format], exported) for exported in handed.names)
    assert [handed.resolve(exported) for exported in handed.names] == tools
    assert [tool_called(tools, format, exported) for exported in handed.names] == tools


@given(specs, st.sampled_from(FORMATS))
def test_every_definition_is_json_and_shares_nothing_with_its_spec(spec: ToolSpec, format: str) -> None:
    before = spec.to_json()
    for definition in handover([spec], format).definitions:
        json.dumps(definition, allow_nan=False)
        _ruin(definition)
    assert spec.to_json() == before


def _ruin(value: object) -> None:
    children = list(value.values() if isinstance(value, dict) else value if isinstance(value, list) else ())
    for child in children:
        _ruin(child)
    if isinstance(value, dict | list):
        value.clear()


@given(specs)
def test_schemas_stay_schemas(spec: ToolSpec) -> None:
    for target, key in (("openai", "parameters"), ("anthropic", "input_schema"), ("mcp", "inputSchema")):
        [definition] = handover([spec], target).definitions
        schema = definition.get("function", definition)[key]
        assert schema["type"] == "object"
        jsonschema_rs.Draft202012Validator(schema)


@pytest.mark.parametrize(("format", "key"), [("openai", "parameters"), ("anthropic", "input_schema")])
def test_what_a_provider_refuses_at_the_top_is_reported(format: str, key: str) -> None:
    spec = READ_FILE.with_changes(parameters={**READ_FILE.parameters, "anyOf": [{"required": ["path"]}]}, returns={})
    handed = handover([spec], format)
    assert "anyOf" not in handed.definitions[0].get("function", handed.definitions[0])[key]
    assert [loss.field for loss in handed.losses] == ["parameters.anyOf"]


def test_a_parameter_name_that_anthropic_refuses_is_reported() -> None:
    spec = READ_FILE.with_changes(parameters={"type": "object", "properties": {"größe": {}, "n": {}}}, returns={})
    assert [loss.field for loss in handover([spec], "anthropic").losses] == ["parameters.properties.größe"]


def test_a_reference_at_the_top_is_followed() -> None:
    spec = READ_FILE.with_changes(parameters={"$ref": "#/$defs/Input", "$defs": {"Input": READ_FILE.parameters}})
    parameters = handover([spec], "openai").definitions[0]["function"]["parameters"]
    assert parameters["properties"] == READ_FILE.parameters["properties"]
    assert "$ref" not in parameters


def test_a_schema_that_only_refers_to_itself_ends() -> None:
    spec = READ_FILE.with_changes(parameters={"$ref": "#"})
    for target in FORMATS:
        assert len(handover([spec], target).definitions) == 1


def test_a_description_that_openai_refuses_is_cut_and_reported() -> None:
    spec = READ_FILE.with_changes(description="x" * 2000, returns={})
    handed = handover([spec], "openai")
    assert len(handed.definitions[0]["function"]["description"]) == 1024
    assert [loss.field for loss in handed.losses] == ["description"]
    assert handover([spec], "openrouter").losses == ()


def test_many_tools_go_out_at_once_in_their_order() -> None:
    tools = [READ_FILE.model_copy(update={"name": f"tool_{number}"}) for number in range(10_000)]
    definitions = handover(tools, "openai").definitions
    assert [definition["function"]["name"] for definition in definitions] == [tool.name for tool in tools]


def test_mcp_follows_a_reference_at_the_root_of_the_output() -> None:
    class Node(BaseModel):
        value: int
        children: list["Node"] = []

    @tool
    async def tree() -> Node:
        """A tree."""
        return Node(value=1)

    assert "$ref" in tree.spec.returns
    [definition] = handover([tree.spec], "mcp").definitions
    assert definition["outputSchema"]["type"] == "object"
    validator = jsonschema_rs.Draft202012Validator(definition["outputSchema"])
    assert validator.is_valid({"value": 1, "children": [{"value": 2, "children": []}]})
    assert not validator.is_valid({"value": 1, "children": [{"value": "2", "children": []}]})


def test_mcp_keeps_the_dialect_of_an_output_at_the_root() -> None:
    draft = "http://json-schema.org/draft-07/schema#"
    returns = {"$schema": draft, "type": "array", "items": [{"type": "integer"}]}
    [definition] = handover([READ_FILE.with_changes(returns=returns)], "mcp").definitions
    assert definition["outputSchema"]["$schema"] == draft
    assert jsonschema_rs.validator_for(definition["outputSchema"]).is_valid({"result": [1, "a"]})


async def test_a_call_under_an_exported_name_finds_its_tool() -> None:
    @tool(name="math.add")
    async def add(a: int, b: int) -> int:
        """Add."""
        return a + b

    registry = ToolRegistry([add])
    call = {"id": "c1", "type": "function", "function": {"name": "math_add", "arguments": '{"a": 1, "b": 2}'}}
    assert await registry.execute_call("openai", call) == {"role": "tool", "tool_call_id": "c1", "content": "3"}
    gemini = await registry.execute_call("gemini", {"id": "c1", "name": "math.add", "args": {"a": 1, "b": 2}})
    assert gemini == {"functionResponse": {"id": "c1", "name": "math.add", "response": {"output": 3}}}
    unknown = await registry.execute_call("anthropic", {"id": "c1", "name": "math_sub", "input": {}})
    assert (unknown["is_error"], unknown["tool_use_id"]) == (True, "c1")
    assert "math_sub" in unknown["content"]

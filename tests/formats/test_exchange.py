import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import mcp.types
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.formats.specs import specs

from toolcrib import ExportError, InvalidArgumentsError, SafetyLevel, ToolResult, ToolSpec, ToolValidationError
from toolcrib.formats import Call, from_definition, handover, parse_call, render_result

CONVERSING = ("openai", "openrouter", "mistral", "anthropic", "gemini", "mcp")


@pytest.mark.parametrize(
    ("format", "call"),
    [
        ("openai", {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}),
        ("openrouter", {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}),
        ("openai", {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'}),
        ("anthropic", {"type": "tool_use", "id": "c1", "name": "add", "input": {"a": 1}}),
        ("gemini", {"functionCall": {"id": "c1", "name": "add", "args": {"a": 1}}}),
        (
            "mcp",
            {"jsonrpc": "2.0", "id": "c1", "method": "tools/call", "params": {"name": "add", "arguments": {"a": 1}}},
        ),
    ],
)
def test_calls_are_read(format: str, call: dict[str, Any]) -> None:
    assert parse_call(format, call) == Call("add", {"a": 1}, "c1")


def test_calls_without_arguments_and_ids() -> None:
    assert parse_call("openai", {"id": "c1", "function": {"name": "now", "arguments": ""}}) == ("now", {}, "c1")
    assert parse_call("anthropic", {"name": "now"}) == ("now", {}, "")
    assert parse_call("gemini", {"name": "now"}) == ("now", {}, "now")
    assert parse_call("mcp", {"name": "now"}) == ("now", {}, "")


@pytest.mark.parametrize("arguments", ["{", "[1]", "1", "nonsense", "[" * 100_000])
def test_arguments_that_are_no_json_object_are_refused(arguments: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="the arguments of 'add'"):
        parse_call("openai", {"id": "c1", "function": {"name": "add", "arguments": arguments}})


@pytest.mark.parametrize("format", CONVERSING)
@pytest.mark.parametrize(
    "call",
    [
        {},
        {"name": 1},
        {"function": 3},
        {"functionCall": 3},
        7,
        None,
        {"name": "x", "input": 1, "args": 1, "arguments": 1},
    ],
)
def test_calls_that_are_none_are_refused(format: str, call: Any) -> None:
    with pytest.raises(InvalidArgumentsError):
        parse_call(format, call)


def test_formats_without_calls_are_refused() -> None:
    with pytest.raises(ExportError, match=r"'compact'.*'openai'"):
        parse_call("compact", {})
    with pytest.raises(ExportError, match="'nonsense'"):
        from_definition("nonsense", {})


def test_results_as_each_provider_reads_them() -> None:
    done = ToolResult.success_result({"n": 1})
    assert render_result("openai", "c1", done) == {"role": "tool", "tool_call_id": "c1", "content": '{"n": 1}'}
    assert render_result("anthropic", "c1", done) == {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": '{"n": 1}',
        "is_error": False,
    }
    assert render_result("gemini", "c1", done, name="add") == {
        "functionResponse": {"id": "c1", "name": "add", "response": {"output": {"n": 1}}}
    }
    assert render_result("gemini", "add", done) == {
        "functionResponse": {"name": "add", "response": {"output": {"n": 1}}}
    }
    assert render_result("mcp", "", done) == {
        "content": [{"type": "text", "text": '{"n": 1}'}],
        "structuredContent": {"n": 1},
        "isError": False,
    }


def test_failures_as_each_provider_reads_them() -> None:
    failed = ToolResult.failure_result("it broke", "tool_failed")
    content = json.loads(render_result("openai", "c1", failed)["content"])
    assert content == {"error": "it broke", "error_code": "tool_failed"}
    assert render_result("anthropic", "c1", failed)["is_error"] is True
    assert render_result("gemini", "add", failed)["functionResponse"]["response"] == {"error": "it broke"}
    assert render_result("mcp", "", failed) == {"content": [{"type": "text", "text": "it broke"}], "isError": True}


def test_text_stays_text_and_other_values_are_wrapped_for_mcp() -> None:
    assert render_result("openai", "c", ToolResult(True, "plain"))["content"] == "plain"
    assert render_result("mcp", "", ToolResult(True, [1]))["structuredContent"] == {"result": [1]}


@dataclass
class Point:
    x: int


class Odd:
    def __repr__(self) -> str:
        return "<odd>"


_circle: list[Any] = []
_circle.append(_circle)


@pytest.mark.parametrize("format", CONVERSING)
@pytest.mark.parametrize(
    "data",
    [
        datetime(2026, 1, 1, tzinfo=UTC),
        {1, 2},
        b"\xff\x00",
        Point(1),
        Odd(),
        math.nan,
        {"n": math.inf},
        _circle,
        {1: 2},
        "\ud800",
        {"k": "\ud800"},
    ],
    ids=repr,
)
def test_whatever_a_tool_returns_becomes_json(format: str, data: Any) -> None:
    rendered = render_result(format, "c1", ToolResult(True, data), name="t")
    json.dumps(rendered, allow_nan=False, ensure_ascii=False).encode()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_json_values_arrive_as_they_are(data: Any) -> None:
    assert render_result("gemini", "t", ToolResult(True, data))["functionResponse"]["response"]["output"] == data
    text = render_result("openai", "c", ToolResult(True, data))["content"]
    assert text == data if isinstance(data, str) else json.loads(text) == data


@given(specs, st.sampled_from(["openai", "openrouter", "anthropic", "mcp"]))
def test_what_went_out_comes_back(spec: ToolSpec, format: str) -> None:
    handed = handover([spec], format)
    lost = {loss.field.split(".")[0] for loss in handed.losses}
    again = from_definition(format, handed.definitions[0])
    assert again.name == spec.name or "name" in lost
    assert again.description == spec.description
    assert "parameters" in lost or again.parameters == spec.parameters
    if format == "mcp":
        assert again.display_name == spec.display_name
        assert (again.safety_level is SafetyLevel.SAFE) is (spec.safety_level is SafetyLevel.SAFE)
    assert handover([again], format).definitions == handed.definitions


@given(specs)
def test_the_mcp_library_reads_our_definitions(spec: ToolSpec) -> None:
    [definition] = handover([spec], "mcp").definitions
    tool = mcp.types.Tool.model_validate(definition)
    assert tool.name == spec.name
    assert tool.annotations is not None
    assert tool.annotations.read_only_hint is (spec.safety_level is SafetyLevel.SAFE)


def test_the_mcp_library_reads_our_results() -> None:
    result = mcp.types.CallToolResult.model_validate(render_result("mcp", "", ToolResult(True, {"n": 1})))
    assert result.structured_content == {"n": 1}
    assert not result.is_error


def test_an_mcp_tool_without_hints_counts_as_destructive() -> None:
    assert (
        from_definition("mcp", {"name": "t", "inputSchema": {"type": "object"}}).safety_level is SafetyLevel.HIGH_RISK
    )
    careful = {"name": "t", "annotations": {"destructiveHint": False, "title": "T"}}
    assert from_definition("mcp", careful).safety_level is SafetyLevel.MEDIUM_RISK
    assert from_definition("mcp", careful).display_name == "T"


@pytest.mark.parametrize("format", CONVERSING)
@pytest.mark.parametrize(
    "definition",
    [
        {},
        {"name": "no spaces please"},
        {"name": "t", "function": 3, "parameters": 3, "input_schema": 3, "inputSchema": 3},
        3,
    ],
)
def test_definitions_that_are_none_are_refused(format: str, definition: Any) -> None:
    with pytest.raises(ToolValidationError):
        from_definition(format, definition)

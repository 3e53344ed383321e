"""ToolSpec: frozen, digested, and the same after a trip through JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import (
    Binding,
    InvalidNameError,
    InvalidSchemaError,
    SafetyLevel,
    ToolExample,
    ToolSpec,
    ToolValidationError,
)
from toolcrib.core.schema import compile_schema
from toolcrib.surfaces.http.endpoints import NAME_SCHEMA

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(st.text(), JSON, max_size=3)
TEXTS = st.lists(st.text(), max_size=3).map(tuple)
SCHEMAS = st.sampled_from(
    [
        {"type": "object", "properties": {}},
        {"type": "object", "properties": {"a": {"type": "integer", "default": 3}}, "required": ["a"]},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"enum": ["x", 1, None]}}},
    ]
)
EXAMPLES = st.builds(
    ToolExample, description=st.text(), input=OBJECTS, output=JSON, explanation=st.text(), call=st.text()
)
SPECS = st.builds(
    ToolSpec,
    name=st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}", fullmatch=True),
    description=st.text(),
    display_name=st.text(),
    tags=TEXTS,
    parameters=SCHEMAS,
    examples=st.lists(EXAMPLES, max_size=2).map(tuple),
    compatibilities=TEXTS,
    timeout_seconds=st.none() | st.floats(0.001, 1e6),
    safety_level=st.sampled_from(SafetyLevel),
    binding=st.builds(
        Binding,
        python=st.text(),
        service_url=st.sampled_from(("", "https://a.example/run")),
        source_code_link=st.text(),
    ),
    api_spec=OBJECTS,
    actions=OBJECTS,
    credentials=OBJECTS,
    metadata=OBJECTS,
    deprecated=st.booleans(),
)


@given(SPECS)
def test_a_trip_through_json_changes_nothing(spec: ToolSpec) -> None:
    again = ToolSpec.from_json(spec.to_json())
    assert again == spec
    assert again.digest == spec.digest
    assert ToolSpec.parse(json.loads(json.dumps(spec.to_dict()))) == spec


@given(SPECS, st.text())
def test_the_digest_follows_the_content(spec: ToolSpec, text: str) -> None:
    other = spec.with_changes(author=text)
    assert (other.digest == spec.digest) == (text == spec.author)


def test_a_digest_says_nothing_of_credentials() -> None:
    bare = ToolSpec(name="a", description="b")
    assert bare.with_changes(credentials={"token": "s3cret"}).digest == bare.digest
    assert "s3cret" not in repr(bare.with_changes(credentials={"token": "s3cret"}))


def test_only_name_and_description_are_required_and_nothing_can_be_changed() -> None:
    spec = ToolSpec(name="a", description="b")
    assert [name for name, field in ToolSpec.model_fields.items() if field.is_required()] == ["name", "description"]
    with pytest.raises(ValueError, match="frozen"):
        spec.name = "c"  # type: ignore[misc]
    assert spec.parameters == {"type": "object", "properties": {}}
    assert not spec.binding


@pytest.mark.parametrize(
    ("data", "error", "says"),
    [
        ({"description": "b"}, ToolValidationError, "no 'name'"),
        ({"name": "a"}, ToolValidationError, "tool 'a' has no 'description'"),
        ({"name": "a", "description": "b", "colour": 1}, ToolValidationError, "'colour'"),
        ({"name": "a b", "description": "b"}, InvalidNameError, "'a b' is not a tool name"),
        ({"name": "", "description": "b"}, InvalidNameError, "'' is not a tool name"),
        ({"name": "../a", "description": "b"}, InvalidNameError, "'../a'"),
        ({"name": "a" * 129, "description": "b"}, InvalidNameError, "1 to 128"),
        ({"name": "-a", "description": "b"}, InvalidNameError, "starting with a letter, a digit or '_'"),
        ({"name": "a\n", "description": "b"}, InvalidNameError, "not a tool name"),
        ({"name": "a", "description": "b", "tags": 3}, ToolValidationError, "'tags' of tool 'a'"),
        ({"name": "a", "description": "b", "timeout_seconds": -1}, ToolValidationError, "'timeout_seconds'"),
        ({"name": "a", "description": "b", "timeout_seconds": True}, ToolValidationError, "'timeout_seconds'"),
        ({"name": "a", "description": "b", "safety_level": "meh"}, ToolValidationError, "'safety_level'"),
        ({"name": "a", "description": "b", "parameters": {"type": "objekt"}}, InvalidSchemaError, "parameters of 'a'"),
        ({"name": "a", "description": "b", "parameters": {"type": "string"}}, ToolValidationError, "type 'object'"),
        ({"name": "a", "description": "b", "returns": {"type": 3}}, InvalidSchemaError, "output schema of 'a'"),
        ({"name": "a", "description": "b", "metadata": {"x": {1, 2}}}, ToolValidationError, "'metadata' of tool 'a'"),
        ({"name": "a", "description": "b", "metadata": {"x": float("nan")}}, ToolValidationError, "nan is not a JSON"),
        ({"name": "a", "description": "b", "metadata": {"x": {3: 4}}}, ToolValidationError, "the key 3 is not text"),
        ({"name": "a", "description": "b", "metadata": {"x": "\ud800"}}, ToolValidationError, "surrogate"),
        ({"name": "a", "description": "\ud800"}, ToolValidationError, "'description'"),
        (
            {"name": "a", "description": "b", "parameters": {"$ref": "http://127.0.0.1:9/x"}},
            InvalidSchemaError,
            "parameters of 'a'",
        ),
    ],
)
def test_what_is_wrong_is_named(data: dict[str, Any], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=".*".join(says.split("...")).replace("(", r"\(")) as caught:
        ToolSpec.parse(data)
    assert isinstance(caught.value, ToolValidationError)
    assert "\n" not in str(caught.value)


def test_text_that_is_not_a_tool_is_refused() -> None:
    for text in ("{", "[]", "3"):
        with pytest.raises(ToolValidationError):
            ToolSpec.from_json(text)


def test_safety_levels_are_ordered_by_rank_not_by_spelling() -> None:
    levels = [
        SafetyLevel.SAFE,
        SafetyLevel.LOW_RISK,
        SafetyLevel.MEDIUM_RISK,
        SafetyLevel.HIGH_RISK,
        SafetyLevel.DANGEROUS,
    ]
    assert [level.value for level in levels] == ["safe", "low_risk", "medium", "high", "dangerous"]
    assert sorted(set(levels)) == levels
    assert SafetyLevel.DANGEROUS > SafetyLevel.SAFE and SafetyLevel.HIGH_RISK > "medium"
    assert (
        SafetyLevel("safe").value == "safe"
        and hash(SafetyLevel.SAFE) == hash("safe")
        and max(levels) is SafetyLevel.DANGEROUS
    )


@pytest.mark.parametrize("name", ["_private", "__all__", "_", "a_b", "3d.render-fast"])
def test_names_may_begin_with_an_underscore(name: str) -> None:
    assert ToolSpec(name=name, description="").name == name
    assert compile_schema(NAME_SCHEMA).is_valid(name)

"""Words of a command line become arguments of the type that the tool's schema asks for."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolcrib import InvalidArgumentsError, ToolSpec
from toolcrib.surfaces.cli.arguments import typed_arguments

SPEC = ToolSpec(
    name="demo",
    description="A tool with an argument of every kind.",
    parameters={
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "ratio": {"type": "number"},
            "loud": {"type": "boolean"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "sizes": {"type": "array", "items": {"type": "integer"}},
            "options": {"type": "object"},
            "max_results": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "level": {"enum": ["low", "high"]},
            "point": {"$ref": "#/$defs/Point"},
            "anything": {},
        },
        "$defs": {"Point": {"type": "object", "properties": {"x": {"type": "integer"}}}},
    },
)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--text", "12"], {"text": "12"}),
        (["--text", "true"], {"text": "true"}),
        (["--text="], {"text": ""}),
        (["--text", "-x"], {"text": "-x"}),
        (["--count", "12"], {"count": 12}),
        (["--count", "-12"], {"count": -12}),
        (["--ratio=0.5"], {"ratio": 0.5}),
        (["--ratio", "1e3"], {"ratio": 1000.0}),
        (["--loud"], {"loud": True}),
        (["--no-loud"], {"loud": False}),
        (["--loud", "no"], {"loud": False}),
        (["--loud", "--count", "1"], {"loud": True, "count": 1}),
        (["--tags", "a"], {"tags": ["a"]}),
        (["--tags", "a", "--tags", "b"], {"tags": ["a", "b"]}),
        (["--tags", '["a", "b"]', "--tags", "c"], {"tags": ["a", "b", "c"]}),
        (["--tags", "12"], {"tags": ["12"]}),
        (["--sizes", "12", "--sizes", "13"], {"sizes": [12, 13]}),
        (["--options", '{"a": [1]}'], {"options": {"a": [1]}}),
        (["--max-results", "3"], {"max_results": 3}),
        (["--max_results", "null"], {"max_results": None}),
        (["--level", "low"], {"level": "low"}),
        (["--point", '{"x": 1}'], {"point": {"x": 1}}),
        (["--anything", "[1]"], {"anything": [1]}),
        (["--anything", "plain"], {"anything": "plain"}),
    ],
)
def test_words_are_typed_by_the_schema(words, expected):
    assert typed_arguments(SPEC, words) == expected


@pytest.mark.parametrize("text", ["twelve", "1.5x", ""])
def test_what_is_not_of_the_type_stays_text_for_the_tool_to_refuse(text):
    assert typed_arguments(SPEC, ["--count", text]) == {"count": text}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--colour", "red"], "has no argument 'colour'"),
        (["--cout", "1"], "did you mean 'count'"),
        (["red"], "'red' is not an argument"),
        (["--"], "'--' is not an argument"),
        (["--count"], "--count of 'demo' needs a value"),
        (["--count", "1", "--count", "2"], "given twice"),
    ],
)
def test_a_wrong_word_is_named(words, complaint):
    with pytest.raises(InvalidArgumentsError, match=complaint):
        typed_arguments(SPEC, words)


def test_a_tool_that_takes_anything_gets_anything():
    free = ToolSpec(name="free", description="Takes anything.", parameters={"type": "object"})
    assert typed_arguments(free, ["--a", "1", "--b", "x", "--c"]) == {"a": 1, "b": "x", "c": True}


_json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
_typed = st.one_of(
    st.tuples(st.just("integer"), st.integers()),
    st.tuples(st.just("number"), st.floats(allow_nan=False, allow_infinity=False)),
    st.tuples(st.just("boolean"), st.booleans()),
    st.tuples(st.just("string"), st.text()),
    st.tuples(st.just("array"), st.lists(_json_values)),
    st.tuples(st.just("object"), st.dictionaries(st.text(), _json_values)),
)


@settings(max_examples=60)
@given(_typed)
def test_every_value_can_be_written(typed):
    kind, value = typed
    spec = ToolSpec(name="x", description="x", parameters={"type": "object", "properties": {"v": {"type": kind}}})
    text = value if kind == "string" else json.dumps(value)
    assert typed_arguments(spec, [f"--v={text}"]) == {"v": value}

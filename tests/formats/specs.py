"""Generated tools for the laws of the formats."""

from typing import Any

from hypothesis import strategies as st

from toolcrib import SafetyLevel, ToolSpec

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}", fullmatch=True)
words = st.from_regex(r"[a-z][a-z0-9_]{0,9}", fullmatch=True)
sentences = st.text(st.characters(codec="utf-8"), max_size=60)
scalars = st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=8)


def _leaf() -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries(
            {"type": st.just("string")},
            optional={
                "description": sentences,
                "minLength": st.integers(0, 9),
                "format": st.sampled_from(["date", "uri"]),
            },
        ),
        st.fixed_dictionaries(
            {"type": st.just("integer")}, optional={"default": st.integers(0, 9), "exclusiveMinimum": st.integers(0, 9)}
        ),
        st.fixed_dictionaries({"type": st.sampled_from(["number", "boolean"])}),
        st.fixed_dictionaries({"enum": st.lists(scalars, min_size=1, max_size=4)}),
        st.fixed_dictionaries({"const": scalars}),
        st.fixed_dictionaries({"type": st.just(["string", "null"])}, optional={"default": st.none()}),
        st.just({}),
    )


def _grown(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner, "maxItems": st.integers(0, 9)}),
        st.fixed_dictionaries({"anyOf": st.lists(inner, min_size=1, max_size=3)}, optional={"description": sentences}),
        st.fixed_dictionaries({"oneOf": st.lists(inner, min_size=1, max_size=3)}),
        st.fixed_dictionaries({"allOf": st.lists(inner, min_size=1, max_size=2)}),
        objects_of(inner),
    )


def objects_of(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("object"), "properties": st.dictionaries(words, inner, max_size=4)},
        optional={"required": st.lists(words, unique=True, max_size=2), "additionalProperties": st.booleans()},
    )


schemas = st.recursive(_leaf(), _grown, max_leaves=8)
parameters = objects_of(schemas)

specs: st.SearchStrategy[ToolSpec] = st.builds(
    ToolSpec,
    name=names,
    description=sentences,
    display_name=st.just("") | sentences,
    parameters=parameters,
    returns=st.just({}) | schemas,
    safety_level=st.sampled_from(SafetyLevel),
    deprecated=st.booleans(),
)

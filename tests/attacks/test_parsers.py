"""Row 11: what strangers write costs as much as it is long, or is refused before it costs more.

The sizes are such that what is not refused ends all the same; what was quadratic took minutes at the sizes that an
upload may have.
"""

import gc
import tracemalloc
from contextlib import closing
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib import ExportError, InvalidArgumentsError, InvalidBundleError, InvalidSchemaError, ToolSpec
from toolcrib.bootstrap.stores import open_store
from toolcrib.core.errors import did_you_mean
from toolcrib.core.evolution import breaking_changes
from toolcrib.core.query import parse
from toolcrib.core.ranking import terms_of
from toolcrib.core.references import with_pointers
from toolcrib.core.schema import ArgumentCheck, Compiled, Kept, OutputCheck, compile_schema
from toolcrib.core.schema_cost import CAP, costs, size_and_depth
from toolcrib.core.versions import parse_version
from toolcrib.formats import gemini, signature, tool_instructions
from toolcrib.formats.bundle import parse_json_object
from toolcrib.formats.nulls import without_nulls
from toolcrib.formats.provider import Loss
from toolcrib.formats.rewriting import rewritten
from toolcrib.formats.strict import ANTHROPIC, strict_schema

Schema = dict[str, Any]


def referring(times: int, keyword: str = "anyOf", last: Any = None) -> Schema:
    """Schemas of which each refers twice to the next one."""
    twice = {number: [{"$ref": f"#/$defs/d{number + 1}"}] * 2 for number in range(times)}
    parts: Schema = {f"d{number}": {keyword: both} for number, both in twice.items()}
    parts[f"d{times}"] = last or {"type": "string"}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": parts}


def object_of(**members: Any) -> Schema:
    return {"type": "object", "properties": members}


def nested(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"a": value}
    return value


@pytest.mark.parametrize("where", ["first", "last", "nested", "every"])
def test_a_key_that_stands_twice_is_named_at_once(where: str) -> None:
    many = ",".join(f'"k{number}":{{"a":1}}' for number in range(60_000))
    text = {
        "first": f'{{"twice":1,"twice":2,{many}}}',
        "last": f'{{{many},"twice":1,"twice":2}}',
        "nested": f'{{{many},"b":[[{{"twice":1,"twice":2}}]]}}',
        "every": "{" + '"twice":1,' * 60_000 + '"twice":1}',
    }[where]
    with pytest.raises(InvalidBundleError, match="'twice' stands twice"):
        parse_json_object(text, "spec.json")


SLOW = r"^(a|aa)+(?!x)$"
"""Goes back as often as it may for each text that does not match."""
AGAIN = r"^(?:a(?=a*$))*$"
"""Looks over all of the text at each of its characters."""


def slow(number: int) -> str:
    return "a" * 35 + f"!{number}"


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string", "pattern": AGAIN}, "a" * 4000),
        ({"type": "string", "pattern": r"^(?=(a*))\1*$"}, "a" * 4000),
        ({"type": "string", "pattern": "x(?!y)"}, "a" * 40_000),
        ({"type": "string", "pattern": "(?x)(?:a #[\n(?=a*$))*$ #]"}, "a" * 4000),
        ({"type": "string", "pattern": "[ab]*a[ab]{2000}c"}, "ab" * 40_000),
        ({"type": "array", "items": {"anyOf": [{"pattern": SLOW}, True]}}, [slow(number) for number in range(300)]),
        ({"type": "array", "items": {"$ref": "#/$defs/x"}}, [slow(number) for number in range(300)]),
        ({"patternProperties": {SLOW: {}}}, {slow(number): 1 for number in range(300)}),
        ({"patternProperties": {f"a{{{n}}}b": {} for n in range(300)}}, {f"{'a' * 3000}{n}": 1 for n in range(1000)}),
        ({"propertyNames": {"not": {"pattern": SLOW}}}, {slow(number): 1 for number in range(300)}),
        ({"allOf": [{"not": {"pattern": f"{SLOW}|{number}"}} for number in range(300)]}, slow(0)),
        ({"items": {"additionalProperties": {"pattern": SLOW}}}, [{"k": slow(number)} for number in range(60_000)]),
        ({"$dynamicRef": "#x"}, [slow(number) for number in range(300)]),
    ],
)
def test_no_pattern_keeps_a_check_busy(schema: Schema, value: Any) -> None:
    """Larger ones took hours, of which nothing else of the service ran."""
    check = ArgumentCheck(
        {**object_of(x=schema), "$defs": {"x": {"not": {"pattern": SLOW}, "$dynamicAnchor": "x"}}}, "evil"
    )
    with pytest.raises(InvalidSchemaError, match="cannot be checked for texts this long or this many"):
        check({"x": value})


@pytest.mark.parametrize(
    ("pattern", "text", "fits"),
    [
        (r"^(?!\s*$).+", "x" * 50_000, True),
        (r"^(?!\s*$).+", "   ", False),
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", "Abcdefg1", True),
        (r"^(?=.*[A-Z])(?=.*\d).{8,}$", "abcdefg1", False),
        (r"^(?!-)(?:[a-z0-9-]{1,63}(?<!-)\.)+[a-z]{2,6}$", "tools.example.org", True),
        (r"^(['\"]).*\1$", "'quoted'", True),
        ("^[a-z ]+$", "x" * 2_000_000, True),
        ("^[a-z ]+$", "x" * 2_000 + "!", False),
        (r"\S", "x" * 3_000_000, True),
        (r"^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", "x" * 500_000, False),
        (
            r"^[\w.!#$%&'*+/=?^`{|}~-]+@[a-z](?:[a-z-]{0,61}[a-z])?(?:\.[a-z](?:[a-z-]{0,61}[a-z])?)*$",
            "a@b.c" * 999,
            False,
        ),
    ],
)
def test_what_people_write_is_checked_as_ever(pattern: str, text: str, fits: bool) -> None:
    check = ArgumentCheck(object_of(x={"type": "string", "pattern": pattern}, beside={"type": "string"}), "good")
    given = {"x": text, "beside": "y" * 1_000_000}
    if fits:
        assert check(given) == given
        return
    with pytest.raises(InvalidArgumentsError):
        check(given)


def test_patterns_that_would_fill_the_memory_are_not_compiled() -> None:
    large = [{"pattern": rf"\p{{L}}{{100}}{number}"} for number in range(100)]
    many = [{"pattern": str(number)} for number in range(10_000)]
    for patterns in (large, many):
        with pytest.raises(InvalidSchemaError, match="its patterns take too much memory together"):
            ArgumentCheck({"type": "object", "anyOf": patterns}, "evil")


@pytest.mark.parametrize("levels", [30, 60])
def test_references_that_multiply_do_not_keep_a_check_busy(levels: int) -> None:
    with pytest.raises(InvalidSchemaError, match="'evil' cannot be checked for a value this large or this deep"):
        ArgumentCheck(referring(levels), "evil")({"a": 1})
    with pytest.raises(InvalidSchemaError, match="cannot be checked"):
        OutputCheck(referring(levels, "allOf"), "evil")({"a": "x"})


def test_an_error_that_would_take_long_to_explain_is_told_briefly() -> None:
    check = ArgumentCheck(referring(16), "evil")
    assert check({"a": "x"}) == {"a": "x"}
    with pytest.raises(InvalidArgumentsError, match="too many alternatives to say why"):
        check({"a": 1})


def test_what_does_not_fit_is_told_once_if_it_is_long() -> None:
    """All of it at once would be as many copies of the value: 13 GB for 900 of one text of 4 MB."""
    schema = {"allOf": [{"minLength": 200_000} for _ in range(200)]}
    assert len(list(compile_schema(schema).iter_errors("x"))) == 200
    assert len(list(compile_schema(schema).iter_errors("x" * 100_000))) == 1
    either = compile_schema({"anyOf": [{"minLength": 200_000} for _ in range(200)]})
    assert len(list(either.iter_errors("x"))) == 1
    with pytest.raises(InvalidSchemaError, match="it is too large or they have too many alternatives to say why"):
        either.iter_errors("x" * 100_000)
    many = object_of(a={"type": "array", "items": {"type": "string"}})
    with pytest.raises(InvalidArgumentsError, match="argument 'a.0' of tool 'evil': 0 is not of type"):
        ArgumentCheck(many, "evil")({"a": list(range(10_000))})


def test_values_to_compare_with_count_as_cost() -> None:
    """Forty thousand lists, each compared with forty thousand, kept everybody waiting for 160 s."""
    check = ArgumentCheck(object_of(a={"items": {"enum": [[number] for number in range(2000)]}}), "evil")
    assert check({"a": [[1], [1999]]})
    with pytest.raises(InvalidSchemaError, match="cannot be checked for a value this large"):
        check({"a": [[1999]] * 2000})
    with pytest.raises(InvalidSchemaError, match="cannot be checked for a value this large"):
        ArgumentCheck(object_of(a={"items": {"enum": [*range(300)]}}), "evil")({"a": [0.5] * 20_000})
    countries = {"items": {"enum": [f"country {number}" for number in range(3000)]}}
    assert ArgumentCheck(object_of(a=countries), "honest")({"a": ["country 2999"] * 20_000})


def test_many_rows_of_a_few_columns_are_checked() -> None:
    columns = {f"column{number}": {"type": ["integer", "null"]} for number in range(10)}
    row = {**object_of(**columns), "required": [*columns], "additionalProperties": False}
    OutputCheck({"type": "array", "items": row}, "honest")([dict.fromkeys(columns, 1)] * 20_000)


def test_a_refusal_names_no_other_tool_that_has_the_same_schema() -> None:
    for tool in ("secret", "mine"):
        with pytest.raises(InvalidSchemaError, match=f"the parameters of '{tool}' cannot be checked"):
            ArgumentCheck(referring(30), tool)({"a": 1})


def test_a_result_may_have_more_values_than_a_request_and_is_counted_so() -> None:
    dear = {"type": "array", "items": {"allOf": [{"minLength": 1}] * 100}}
    assert ArgumentCheck(object_of(a=dear), "honest")({"a": ["x"] * 99_000})
    with pytest.raises(InvalidSchemaError, match="cannot be checked for a value this large"):
        OutputCheck(dear, "evil")(["x"] * 240_000)


def test_schemas_are_forgotten_before_they_fill_the_memory() -> None:
    kept, compiled = Kept(most=10, most_characters=1000), Compiled(None, {}, "{}", None)
    counts = []
    for number in range(8):
        kept.keep(f"{number}" * 300, compiled)
        counts.append(len(kept))
    assert counts == [1, 2, 3, 1, 2, 3, 1, 2]


def test_a_schema_that_refers_to_itself_in_many_ways_takes_only_what_is_flat() -> None:
    back = {"properties": {"a": {"$ref": "#"}}}
    check = ArgumentCheck({"type": "object", "anyOf": [back, back]}, "evil")
    assert check(nested(4)) == nested(4)
    with pytest.raises(InvalidSchemaError, match="cannot be checked"):
        check(nested(79))


def test_schemas_that_refer_to_themselves_once_are_cheap() -> None:
    anything = {
        "anyOf": [
            {"type": "string"},
            {"type": "array", "items": {"$ref": "#"}},
            {"type": "object", "additionalProperties": {"$ref": "#"}},
        ]
    }
    assert costs(anything)[-1] < 1_000
    tree = object_of(left={"$ref": "#"}, right={"$ref": "#"}, value={})
    assert costs(tree)[-1] < 1_000
    dynamic = {"$dynamicAnchor": "node", **object_of(next={"$dynamicRef": "#node"})}
    assert 80 < costs(dynamic)[-1] < 1_000
    assert costs(referring(40))[-1] == CAP


def test_a_type_is_told_in_few_words_however_references_multiply() -> None:
    """A thousand times a thousand times a thousand alternatives; and one long text that every parameter may be."""
    parts: Schema = {
        "a": {"anyOf": [{"$ref": "#/$defs/b"}] * 1000},
        "b": {"enum": [*range(1000)]},
        "long": {"const": ["x" * 500_000]},
    }
    many = {"x": {"anyOf": [{"$ref": "#/$defs/a"}] * 1000}}
    for members in (many, {f"x{number}": {"$ref": "#/$defs/long"} for number in range(10_000)}):
        spec = ToolSpec(name="evil", description="Wide.", parameters={**object_of(**members), "$defs": parts})
        assert len(signature(spec)) < 200_000
        assert len(tool_instructions(spec)) < 500_000


@given(st.recursive(st.integers(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner)))
def test_the_size_of_a_value_counts_its_leaves(value: Any) -> None:
    def leaves(one: Any) -> int:
        inside = list(one.values()) if isinstance(one, dict) else one
        return sum(map(leaves, inside)) if isinstance(inside, list) and inside else 1

    assert size_and_depth(value)[0] == leaves(value)


@pytest.mark.parametrize("size", [4, 8, 12])
def test_the_cost_is_never_less_than_what_is_done(size: int) -> None:
    """A schema that counts: each way to the last part is an error of its own."""
    schema = referring(size, "allOf", {"type": "string"})
    errors = jsonschema_rs.Draft202012Validator(schema).iter_errors({"a": 1})
    assert sum(1 for _ in errors) <= costs(schema)[-1]


def test_defaults_behind_references_are_looked_for_within_bounds() -> None:
    chain: Schema = {f"d{number}": {"$ref": f"#/$defs/d{number + 1}"} for number in range(1000)}
    chain["d1000"] = {}
    members = {str(number): {"$ref": f"#/$defs/d{number}"} for number in range(1000)}
    shared = {str(number): {"default": number} for number in range(500)}
    many = {f"x{number}": {"allOf": [{"$ref": "#/$defs/a"}]} for number in range(500)}
    for schema in (
        {**object_of(**members), "$defs": chain},
        {**object_of(**many), "$defs": {"a": object_of(**shared)}},
    ):
        with pytest.raises(InvalidSchemaError, match="many others refer to"):
            ArgumentCheck(schema, "evil")


def test_the_way_to_a_part_with_a_name_is_short() -> None:
    parts = {str(number): {"$anchor": f"a{number}"} for number in range(1000)}
    with pytest.raises(InvalidSchemaError, match="use shorter ones"):
        with_pointers(object_of(**{"k" * 100_000: object_of(**parts)}))
    short = object_of(k=object_of(**parts), x={"$ref": "#a7"})
    assert with_pointers(short)["properties"]["x"] == {"$ref": "#/properties/k/properties/7"}
    wide = {"$id": "https://example.com/", **object_of(**{"k" * 100_000: object_of(**{name: {} for name in parts})})}
    assert with_pointers(wide)["properties"].keys() == wide["properties"].keys()


def test_what_is_too_large_to_compare_counts_as_broken() -> None:
    def alternatives(first: int) -> Schema:
        return object_of(a={"anyOf": [{"type": "string", "minLength": number + first} for number in range(800)]})

    def values(first: int) -> Schema:
        return object_of(a={"enum": list(range(first, 2_000))})

    for make in (alternatives, values):
        assert breaking_changes(make(0), make(1)) == [
            "its parameters have too many alternatives or values to be compared"
        ]
        assert breaking_changes(make(0), make(0)) == []


def test_what_is_too_large_for_a_provider_is_refused() -> None:
    around: Schema = {"type": "string"}
    for _ in range(30):
        around = {**object_of(a=around), "anyOf": [{}, {}]}
    itself: Schema = {"type": "object", "allOf": [{"$ref": "#"}]}
    for schema in (around, referring(30, "allOf", {"type": "object"}), referring(30, "allOf")):
        spec = ToolSpec.model_construct(name="evil", description="", parameters=schema, returns={})
        with pytest.raises(ExportError, match="too large for Gemini"):
            rewritten(spec, gemini.SUBSET, [])
        losses: list[Loss] = []
        assert strict_schema(spec, ANTHROPIC, losses) is None
        assert "more than 10,000 parts" in losses[0].reason
    for schema in (referring(30), itself, {"type": "object", "allOf": [{"$ref": "#"}] * 50}):
        spec = ToolSpec.model_construct(name="evil", description="", parameters=schema, returns={})
        assert len(str(rewritten(spec, gemini.SUBSET, []))) < 10_000
        strict_schema(spec, ANTHROPIC, [])


def test_nulls_that_could_be_read_in_many_ways_are_left_alone() -> None:
    """Each alternative is tried with each of those inside of it: 2 ** 60 ways."""
    node = {"properties": {"a": {"$ref": "#/$defs/n"}, "b": {"type": "integer"}}, "required": ["c"]}
    definitions = {"n": {"anyOf": [node, {**node, "title": "another"}]}}
    value: Any = {"b": None}
    for _ in range(60):
        value = {"a": value}
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": definitions}
    assert without_nulls(schema, value) is value
    many = {"a": [{"b": None}] * 50_000}
    array = {"type": "array", "items": definitions["n"]}
    assert without_nulls({"type": "object", "properties": {"a": array}}, many) == many


def test_long_names_are_not_compared() -> None:
    assert did_you_mean("ab" * 100_000, ["ba" * 100_000]) == ""
    assert did_you_mean("nmae", ["name"]) == "; did you mean 'name'?"


@pytest.mark.parametrize("text", ["1" * 5_000, f"1.{'2' * 5_000}", f"1.0.0-{'3' * 5_000}"])
def test_a_version_with_thousands_of_digits_is_one_like_any_other(text: str) -> None:
    assert parse_version(text) <= parse_version("2")
    assert ToolSpec(name="a", description="b", version=text).version == text


def test_the_terms_of_long_words_are_not_remembered() -> None:
    """One word of 100,000 characters can be 50,000 terms, and 20,000 words are remembered."""
    words = [f"{'Ab' * 2000}{number}" for number in range(20)]
    for word in words:
        terms_of(word)  # what is remembered for good anyway
    tracemalloc.start()
    try:
        for word in words:
            terms_of(f"{word}0")
        assert tracemalloc.get_traced_memory()[0] < 1_000_000
    finally:
        tracemalloc.stop()


def test_no_value_of_a_filter_is_remembered(tmp_path: Path) -> None:
    """How long its postings are is remembered of 10,000 filters, which may have a million characters each."""
    with closing(open_store(f"sqlite:///{tmp_path}/tools.db")) as store:

        def ask(number: int) -> None:
            tags = [f"{number} {each} {'x' * 9000}" for each in range(50)]
            store.query(parse({"tags": {"$in": tags}, "tool_type": f"type {number}"}))

        ask(0)
        tracemalloc.start()
        try:
            for number in range(1, 11):
                ask(number)
            gc.collect()
            assert tracemalloc.get_traced_memory()[0] < 2_000_000
        finally:
            tracemalloc.stop()

"""The filter language: what it means, what it refuses, and how it is moved to other names."""

from typing import Any

import pytest
from tests.support.filters import to_mongo

from toolcrib.core.errors import InvalidQueryError, QueryBudgetError
from toolcrib.core.query import ALL, NOTHING, parse, rename

DOCUMENT: dict[str, Any] = {
    "name": "a",
    "tags": ["web", "nlp"],
    "stars": 3,
    "ratio": 0.5,
    "open": True,
    "nothing": None,
    "empty": [],
    "matrix": [[1, 2], [3]],
    "people": [{"name": "x", "age": 1}, {"name": "y", "age": 9}, 5],
    "deep": {"a": {"b": [{"c": 1}, {"c": [2, 3]}]}},
}


@pytest.mark.parametrize(
    "where",
    [
        {},
        {"name": "a", "stars": 3.0},
        {"tags": "web"},
        {"tags": ["web", "nlp"]},
        {"tags.1": "nlp"},
        {"tags": {"$all": ["nlp", "web"]}},
        {"tags": {"$size": 2}, "empty": {"$size": 0}},
        {"tags": {"$in": ["x", "nlp"]}},
        {"tags": {"$nin": ["x"]}},
        {"stars": {"$gt": 2, "$lte": 3}},
        {"people.age": {"$gt": 8, "$lt": 2}},  # no one element has to fulfil both
        {"people": {"$elemMatch": {"age": {"$gt": 0}, "name": "x"}}},
        {"people": {"$elemMatch": {"$eq": 5}}},
        {"people": {"$not": {"$elemMatch": {"age": 1, "name": "y"}}}},
        {"matrix": [3]},
        {"matrix": {"$elemMatch": {"0": 1}}},
        {"matrix": {"$elemMatch": {"$elemMatch": {"$gt": 2}}}},
        {"deep.a.b.c": 3},
        {"deep.a.b.0.c": 1},
        {"missing": None, "nothing": None},
        {"missing": {"$exists": False}, "nothing": {"$exists": True}},
        {"missing": {"$in": [1, None]}},
        {"missing": {"$ne": 1}},
        {"missing": {"$gte": None}},
        {"nothing": {"$type": "null"}, "missing": {"$not": {"$type": "null"}}},
        {"stars": {"$type": ["string", "int"]}, "ratio": {"$type": 1}, "open": {"$type": "bool"}},
        {"tags": {"$type": "array"}},
        {"open": {"$ne": 1}},
        {"name": {"$lt": "b"}, "stars": {"$not": {"$lt": "b"}}},
        {"name": {"$regex": "^A$", "$options": "i"}},
        {"tags": {"$regex": "^w.b"}},
        {"$or": [{"name": "b"}, {"stars": 3}]},
        {"$nor": [{"name": "b"}, {"stars": 4}]},
        {"$and": [{"name": "a"}, {"$or": [{"stars": 3}]}]},
        {"deep.a": {"$eq": {"b": [{"c": 1}, {"c": [2, 3]}]}}},
    ],
    ids=repr,
)
def test_what_matches(where: dict[str, Any]):
    assert parse(where).matches(DOCUMENT)
    assert not parse({"$nor": [where]}).matches(DOCUMENT)
    assert parse(to_mongo(parse(where))).matches(DOCUMENT)


@pytest.mark.parametrize(
    "where",
    [
        {"stars": "3"},
        {"open": 1},
        {"stars": True},
        {"tags": ["nlp", "web"]},
        {"tags": {"$ne": "web"}},
        {"tags": {"$nin": ["web"]}},
        {"tags": {"$all": []}},
        {"tags.name": None},
        {"empty.x": None},
        {"matrix": 1},
        {"matrix.0": 1},
        {"matrix.00": [1, 2]},
        {"people": {"$elemMatch": {"age": 1, "name": "y"}}},
        {"people": {"$size": 2}},
        {"nothing": {"$gt": None}},
        {"name": {"$gt": 1}},
        {"name": {"$regex": "^A$"}},
        {"stars": {"$regex": "3"}},
        {"missing": {"$exists": True}},
    ],
    ids=repr,
)
def test_what_does_not_match(where: dict[str, Any]):
    assert not parse(where).matches(DOCUMENT)


def test_the_order_of_keys_counts():
    assert parse({"a": {"x": 1, "y": 2}}).matches({"a": {"x": 1, "y": 2.0}})
    assert not parse({"a": {"x": 1, "y": 2}}).matches({"a": {"y": 2, "x": 1}})


def test_a_list_of_values_may_hold_objects():
    assert parse({"a": {"$in": [{"b": {"$ref": 1}}, [{"$gt": 1}]]}}).matches({"a": {"b": {"$ref": 1}}})


def test_all_and_nothing():
    assert ALL.matches({})
    assert not NOTHING.matches({})
    assert parse({}) == ALL
    assert not parse(to_mongo(NOTHING)).matches({})


def nested(depth: int) -> dict[str, Any]:
    return {"a": 1} if depth == 0 else {"$and": [nested(depth - 1)]}


@pytest.mark.parametrize(
    ("where", "named"),
    [
        ([], "filter"),
        ({"$where": "sleep(1000)"}, "'$where'"),
        ({"$expr": {"$eq": [1, 1]}}, "'$expr'"),
        ({"$text": {"$search": "x"}}, "'$text'"),
        ({"a": {"$function": 1}}, "'$function' of 'a'"),
        ({"a": {"$regx": "x"}}, "did you mean '$regex'"),
        ({"a": {"$gt": 1, "b": 2}}, "'a' mixes"),
        ({"a": {"b": 2, "$gt": 1}}, "'a' mixes"),
        ({"a": {"$in": 1}}, "$in of 'a'"),
        ({"a": {"$in": [1, {"$gt": 1}]}}, "$in of 'a' takes values, not operators such as {'$gt': 1}"),
        ({"a": {"$nin": [{"$regex": "x"}]}}, "$nin of 'a' takes values, not operators"),
        ({"a": {"$all": [{"$gt": 1}]}}, "$all of 'a' takes values, not operators"),
        ({"a": {"$elemMatch": {"$in": [{"$gt": 1}]}}}, "$in of 'a' takes values, not operators"),
        ({"a": {"$size": -1}}, "$size of 'a'"),
        ({"a": {"$size": True}}, "$size of 'a'"),
        ({"a": {"$type": "date"}}, "'date'"),
        ({"a": {"$exists": "yes"}}, "$exists of 'a'"),
        ({"a": {"$not": 1}}, "$not of 'a'"),
        ({"a": {"$not": {}}}, "$not of 'a'"),
        ({"a": {"$options": "i"}}, "$options of 'a'"),
        ({"a": {"$regex": "x", "$options": "x"}}, "option 'x'"),
        ({"a": {"$regex": 1}}, "$regex of 'a'"),
        ({"a": {"$elemMatch": 1}}, "$elemMatch of 'a'"),
        ({"a": {"$elemMatch": {"$all": [1]}}}, "$all inside $elemMatch"),
        ({"a": {"$all": [{"$elemMatch": {}}, 1]}}, "$all of 'a'"),
        ({"a": {"$gt": {"b": 1}}}, "no order"),
        ({"$or": []}, "$or"),
        ({"$and": {"a": 1}}, "$and"),
        ({"a": float("nan")}, "'a'"),
        ({"a": float("inf")}, "'a'"),
        ({"a": 2**63}, "64 bits"),
        ({"a": {1, 2}}, "which is not JSON"),
        ({"a": "\ud800"}, "surrogate"),
        ({1: 1}, "field name"),
        ({"": 1}, "''"),
        ({"a..b": 1}, "'a..b'"),
        ({"a\0": 1}, "field name"),
        ({"a" * 600: 1}, "too long"),
        ({"a": "x" * 20_000}, "longer than"),
        ({"a": {"$in": list(range(2000))}}, "2000 values"),
        (nested(50), "deep"),
        ({"$or": [{"a": 1}] * 600}, "clauses"),
        ({"credentials": {}}, "'credentials' cannot be queried"),
        ({"credentials.token": {"$regex": "^a"}}, "'credentials.token' cannot be queried"),
        ({"$nor": [{"a": 1, "credentials.x": {"$exists": True}}]}, "cannot be queried"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_what_is_refused_is_named(where: Any, named: str):
    with pytest.raises(InvalidQueryError) as caught:
        parse(where)
    assert named in str(caught.value)
    assert len(str(caught.value)) < 400


def test_secrets_are_found_under_other_names_too():
    mapping = {"secrets": "credentials", "box": "a"}
    with pytest.raises(InvalidQueryError, match="cannot be queried"):
        rename(parse({"$or": [{"secrets.x": 1}]}), mapping)
    with pytest.raises(InvalidQueryError, match="cannot be queried"):
        parse({"box": {"$elemMatch": {"in.x": 1}}}, forbidden=("box.in",))
    assert parse({"credentials": 1}, forbidden=()).matches({"credentials": 1})


def test_rename_moves_paths_and_nothing_else():
    where = parse({
        "tool_id": "x",
        "$or": [{"tool_metadata.tool_id": 1}, {"link": {"$not": {"$regex": "z"}}}],
        "list": {"$elemMatch": {"tool_id": 1}},
    })  # fmt: skip
    moved = rename(where, {"tool_id": "name", "tool_metadata": "metadata", "link": "binding.source_code_link"})
    assert moved.matches({"name": "x", "metadata": {"tool_id": 1}, "list": [{"tool_id": 1}]})
    assert moved.matches({"name": "x", "binding": {"source_code_link": "y"}, "list": [{"tool_id": 1}]})
    assert not moved.matches({"name": "x", "binding": {"source_code_link": "z"}, "list": [{"tool_id": 1}]})
    assert not moved.matches({"tool_id": "x", "metadata": {"tool_id": 1}, "list": [{"tool_id": 1}]})


def test_a_filter_cannot_be_changed_through_what_it_was_made_of():
    wanted = {"a": [1, {"b": 2}]}
    where = parse(wanted)
    wanted["a"].append(3)
    assert where.matches({"a": [1, {"b": 2}]})


def test_a_large_filter_is_read():
    where = parse({"$or": [{f"field{number}": {"$in": list(range(1000))}} for number in range(20)]})
    assert where.matches({"field19": 999})
    assert not where.matches({"field19": 1000})


@pytest.mark.parametrize(
    "where",
    [
        {"$or": [{"a": {"$in": list(range(1000))}} for _ in range(21)]},
        {"$or": [{"a": {"$all": list(range(1000))}} for _ in range(21)]},
        {"$and": [{"a": {"$elemMatch": {"$nin": list(range(1000))}}} for _ in range(21)]},
        {"$or": [{"a": {"$regex": f"x{number}"}} for number in range(21)]},
        {"a": {"$elemMatch": {"$not": {"$regex": "x" * 1000}}}, "b": {"$regex": "y" * 1000}, "c": {"$regex": "z"}},
    ],
)
def test_a_filter_that_no_honest_user_writes_is_refused(where: dict[str, Any]):
    with pytest.raises(QueryBudgetError, match="the filter"):
        parse(where)

"""Filters: what they match is decided in memory, and every store says the same."""

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any

from tests.attacks.fuzz.target import Attack, Fault, Target, refusing

from toolcrib.bootstrap import open_store
from toolcrib.core.errors import QueryBudgetError
from toolcrib.core.json import read_json
from toolcrib.core.query import parse
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Change, Store
from toolcrib.surfaces.http.parameters import entry_filter

_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, 1.5, -1, 2**53, "", "a", "Web\n", "ß", "x'\"\\y", [], ["a",
    1], [{"a": 1}, {"b": [1]}], {}, {"a": None},
    {"a": {"b": 1}, "0": "z"}, [[1, 2], [3]], "a" * 200,
)  # fmt: skip


def _documents() -> list[dict[str, Any]]:
    shared: dict[str, Any] = {"description": "web tool", "tags": ["web", "nlp"], "tool_type": "parser"}
    return [
        ToolSpec.parse(
            {"name": f"t{number}", **shared, "tags": ["web", "a"][: number % 3], "metadata": {"a": value, "b": [value]}}
        ).to_dict()
        for number, value in enumerate(_VALUES)
    ]


def _found(store: Store, content: Any) -> list[str] | None:
    """What the store finds; None if the question is more than it may cost."""
    try:
        return [record.name for record in store.query(parse(content))]
    except QueryBudgetError:
        return None


@contextmanager
def opened_on(*addresses: str) -> Iterator[Attack]:
    """The attack on several stores at once."""
    documents = _documents()
    with ExitStack() as closed:
        stores = [closed.enter_context(closing(open_store(address))) for address in addresses]
        for store in stores:
            store.commit([Change(document["name"], document) for document in documents])

        def attack(content: bytes) -> None:
            try:
                value = read_json(content)
            except ValueError:
                return
            with refusing():
                entry_filter(value)
            with refusing():
                where = parse(value)
                expected = sorted(document["name"] for document in documents if where.matches(document))
                for store, address in zip(stores, addresses, strict=True):
                    found = _found(store, value)
                    if found is not None and sorted(found) != expected:
                        raise Fault(f"{address.partition(':')[0]} finds {found}, the filter's meaning is {expected}")

        yield attack


@contextmanager
def _opened(folder: Path) -> Iterator[Attack]:
    with opened_on("memory:", f"sqlite:///{folder}/tools.db") as attack:
        yield attack


_FILTERS: tuple[Any, ...] = (
    {}, {"tags": "web"}, {"metadata.a": {"$gte": 1,
    "$lt": 2}}, {"metadata.a.b": 1}, {"metadata.b.0": {"$exists": True}},
    {"tags": {"$in": ["web", None]}}, {"tags": {"$all": ["web", "a"]}}, {"metadata.a": {"$size": 2}},
    {"$or": [{"tool_type": "parser"}, {"$and": [{"name": "t1"}, {"tags": {"$ne": "a"}}]}]}, {"$nor": [{"name": "t3"}]},
    {"metadata.a": {"$elemMatch": {"a": {"$type": ["int", "string"]}}}}, {"metadata.a": {"$not": {"$type": "null"}}},
    {"description": {"$regex": "^W.b (tool|x{1,3})?\\b", "$options": "im"}}, {"metadata.a": {"$nin": [1, "a", None]}},
    {"metadata": {"a": 1, "b": [1]}}, {"metadata.a": {"$elemMatch": {"$gt": 1, "$lt": 9}}},
    {"$and": [{"tags": "web"}] * 40}, {"name": {"$regex": "(a+)+$"}},
    {"metadata.a": {"$all": [{"$elemMatch": {"a": 1}}]}},
)  # fmt: skip
_WORDS = (
    "$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$type", "$regex", "$options", "$all",
    "$size",
    "$elemMatch", "$and", "$or", "$nor", "$not", "$where", "credentials", "credentials.key", "binding.service_url",
    "metadata.a",
    "default_tool_usage_credentials", "tool_metadata", "tool_tags", "[a-z]*", "(?i)a|b", "\\bweb\\b", "(x{0,9}){0,9}",
    "im",
)  # fmt: skip

TARGET = Target(
    "filters",
    tuple(json.dumps(where).encode() for where in _FILTERS),
    tuple(json.dumps(word).encode() for word in _WORDS),
    _opened,
    12_000,
)

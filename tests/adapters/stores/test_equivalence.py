"""Memory, SQLite and a real MongoDB give the same answer to the same question."""

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, event, example, given, settings
from pymongo.read_concern import ReadConcern
from pymongo.write_concern import WriteConcern
from tests.adapters.stores.generated import questions

from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.adapters.stores.mongo import MongoStore
from toolcrib.adapters.stores.mongo_write import row_of
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.query import ALL, parse, to_mongo
from toolcrib.ports import Change, Record, Store

Asked = tuple[tuple[dict[str, Any], ...], list[dict[str, Any]]]


@pytest.fixture(scope="module")
def stores(mongo_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Store]]:
    """Durability is tested elsewhere and takes time, so it is switched off here."""
    sqlite = SqliteStore(tmp_path_factory.mktemp("equivalence") / "tools.db")
    sqlite._writer.execute("PRAGMA synchronous = OFF")
    mongo = MongoStore(mongo_url.replace("/?", "/equivalence?"))
    mongo.commit([Change("first", {"name": "first"})])
    mongo._tools = mongo._tools.with_options(write_concern=WriteConcern(1, j=False), read_concern=ReadConcern("local"))
    opened: dict[str, Store] = {"memory": MemoryStore(), "sqlite": sqlite, "mongo": mongo}
    yield opened
    for store in opened.values():
        store.close()


def fill(store: Store, catalogue: tuple[dict[str, Any], ...]) -> None:
    if isinstance(store, MongoStore):
        store._tools.delete_many({})
        store._tools.insert_many([row_of(Record(document["name"], 1, "etag", document, 0.0)) for document in catalogue])
        return
    gone = [Change(record.name, None) for record in store.query(ALL)]
    store.commit([*gone, *(Change(document["name"], document) for document in catalogue)])


@pytest.mark.timeout(400)
@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(questions)
@example((({"name": "t0", "metadata": {"$ref": "x", "$id": 1}},), [{"metadata": {"$eq": {"$ref": "x", "$id": 1}}}]))
@example((({"name": "t0", "a": [[1, 2]]},), [{"a.0": 1}, {"a.0.1": 2}, {"a": [1, 2]}, {"a": {"$elemMatch": {"0": 1}}}]))
@example((({"name": "t0", "a": 2**64 - 1},), [{"a": 2.0**64}, {"a": {"$gt": 2**63 - 1}}, {"a": {"$type": "decimal"}}]))
def test_every_store_gives_the_same_answer(stores: dict[str, Store], asked: Asked):
    catalogue, questions = asked
    for store in stores.values():
        fill(store, catalogue)
        assert [record.document for record in store.query(ALL)] == list(catalogue)
    for question in questions:
        where = parse(question)
        expected = [document["name"] for document in catalogue if where.matches(document)]
        event("some match" if 0 < len(expected) < len(catalogue) else "all or none match")
        written_back = parse(to_mongo(where))
        assert [document["name"] for document in catalogue if written_back.matches(document)] == expected
        for name, store in stores.items():
            assert [record.name for record in store.query(where)] == expected, (name, question)
            if expected:
                assert store.count(where) == len(expected), (name, question)
            if expected[1:]:
                page = store.query(where, limit=1, after=expected[0])
                assert [record.name for record in page] == expected[1:2], (name, question)


@pytest.mark.parametrize("length", [6_140, 2_000_000])
@pytest.mark.parametrize("pattern", ["^.*Install", "^[^#]*Install$", "^(.|\n)*Install", "Inst(all)+"])
def test_a_long_manual_is_found_by_what_stands_at_its_end(stores: dict[str, Store], pattern: str, length: int):
    manual = "x" * (length - len("Install")) + "Install"
    where = parse({"manual": {"$regex": pattern}})
    for name, store in stores.items():
        fill(store, ({"name": "t0", "manual": manual}, {"name": "t1", "manual": manual[:-1]}))
        assert [record.name for record in store.query(where)] == ["t0"], name

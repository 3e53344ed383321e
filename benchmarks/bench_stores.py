"""Queries by tag, type, mode and a compound filter, beside the same indexed query written by hand for the same data.

``bench_stores.py [10000 100000 1000000]``: catalogue sizes. Ours and the hand-written query take turns, so that the
machine's moods hit both alike. Ours includes reading the filter; both parse every document they return.
MongoDB is measured where the tests' mongod is installed.
"""

from __future__ import annotations

import json
import random
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from table import print_table

sys.path.insert(0, str(Path(__file__).parents[1]))

from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.query import parse
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Change, Store

ANSWER = 20
BATCH = 1000
SECONDS = 1.5

QUESTIONS: dict[str, dict[str, Any]] = {
    "by tag, 20 in all": {"tags": "rare-7"},
    "by tag, first 20": {"tags": "common-1"},
    "by type, first 20": {"tool_type": "type-7"},
    "by mode, first 20": {"execution_mode": "batch"},
    "type and mode, first 20": {"tool_type": "type-7", "execution_mode": "batch"},
    "two tags and a mode": {"tags": {"$all": ["rare-7", "common-1"]}, "execution_mode": "batch"},
}


def documents(size: int) -> Iterator[dict[str, Any]]:
    """Tools of about 1.6 KB: 20 with each rare tag, a fifth with each common one, 50 types, 3 modes."""
    base = ToolSpec(
        name="x",
        description="Extracts what it is asked for from what it is given. " * 4,
        manual="How to use it, in some detail. " * 12,
        parameters={"type": "object", "properties": {"text": {"type": "string", "description": "the text " * 10}}},
    ).to_dict()
    chance = random.Random(7)
    rare = size // ANSWER
    order = [number % rare for number in range(size)]
    chance.shuffle(order)
    for number in range(size):
        yield {
            **base,
            "name": f"tool-{number:07d}",
            "tool_type": f"type-{chance.randrange(50)}",
            "execution_mode": ("sync", "async", "batch")[chance.randrange(3)],
            "tags": [f"rare-{order[number]}", f"common-{chance.randrange(5)}"],
            "metadata": {"stars": chance.randrange(5000)},
        }


def fill(store: Store, size: int) -> float:
    started = time.perf_counter()
    batch: list[Change] = []
    for document in documents(size):
        batch.append(Change(document["name"], document))
        if len(batch) == BATCH:
            store.commit(batch)
            batch = []
    store.commit(batch)
    return size / (time.perf_counter() - started)


def in_turns(ours: Callable[[], Any], raw: Callable[[], Any]) -> tuple[float, float]:
    """The median time of each, in microseconds."""
    times: tuple[list[float], list[float]] = ([], [])
    assert len(ours()) == len(raw())
    until = time.perf_counter() + SECONDS
    while time.perf_counter() < until or len(times[0]) < 20:
        for action, kept in zip((ours, raw), times, strict=True):
            started = time.perf_counter()
            action()
            kept.append(time.perf_counter() - started)
    return statistics.median(times[0]) * 1e6, statistics.median(times[1]) * 1e6


# By hand: SQLite

_BY_LABEL = (
    "SELECT d.document FROM tool_label AS l CROSS JOIN tool_data AS d ON d.tool_id = l.tool_id "
    "WHERE l.field = 'tags' AND l.value = ? ORDER BY l.tool_id LIMIT 20"
)
RAW_SQL: dict[str, str] = {
    "by tag, 20 in all": _BY_LABEL,
    "by tag, first 20": _BY_LABEL,
    "by type, first 20": "SELECT document FROM tool_data WHERE tool_type = ? ORDER BY tool_id LIMIT 20",
    "by mode, first 20": """
        SELECT d.document FROM tool_execution AS e CROSS JOIN tool_data AS d ON d.tool_id = e.tool_id
        WHERE e.tool_execution_mode = ? ORDER BY e.tool_id LIMIT 20
    """,
    "type and mode, first 20": """
        SELECT d.document FROM tool_data AS d JOIN tool_execution AS e ON e.tool_id = d.tool_id
        WHERE d.tool_type = ? AND e.tool_execution_mode = ? ORDER BY d.tool_id LIMIT 20
    """,
    "two tags and a mode": """
        SELECT d.document FROM tool_label AS l CROSS JOIN tool_data AS d ON d.tool_id = l.tool_id
        JOIN tool_execution AS e ON e.tool_id = l.tool_id
        JOIN tool_label AS m ON m.field = 'tags' AND m.value = ? AND m.tool_id = l.tool_id
        WHERE l.field = 'tags' AND l.value = ? AND e.tool_execution_mode = ? ORDER BY l.tool_id LIMIT 20
    """,
}
RAW_VALUES: dict[str, tuple[str, ...]] = {
    "by tag, 20 in all": ("rare-7",),
    "by tag, first 20": ("common-1",),
    "by type, first 20": ("type-7",),
    "by mode, first 20": ("batch",),
    "type and mode, first 20": ("type-7", "batch"),
    "two tags and a mode": ("common-1", "rare-7", "batch"),
}


def measure_sqlite(size: int, folder: Path) -> list[list[str]]:
    store = SqliteStore(folder / f"{size}.db")
    rate = fill(store, size)
    print(f"SQLite: {size} tools written, {rate:,.0f}/s in batches of {BATCH}; {store.path}", file=sys.stderr)
    connection = sqlite3.connect(store.path, isolation_level=None)
    rows = []
    for title, question in QUESTIONS.items():
        sql, values = RAW_SQL[title], RAW_VALUES[title]
        ours, raw = in_turns(
            lambda question=question: store.query(parse(question), limit=ANSWER),
            lambda sql=sql, values=values: [json.loads(text) for (text,) in connection.execute(sql, values)],
        )
        rows.append(_row("SQLite", title, size, ours, raw))
    names = [f"tool-{random.Random(number).randrange(size):07d}" for number in range(2000)]
    sql = "SELECT tool_id, version, etag, document, written_at FROM tool_data WHERE tool_id = ?"

    def by_hand(name: str) -> Any:
        return json.loads(connection.execute(sql, (name,)).fetchone()[3])

    ours, raw = in_turns(lambda: [store.get(name) for name in names], lambda: [by_hand(name) for name in names])
    rows.append(_row("SQLite", "get by name", size, ours / len(names), raw / len(names)))
    connection.close()
    store.close()
    return rows


# By hand: MongoDB

RAW_MONGO: dict[str, dict[str, Any]] = {
    "by tag, 20 in all": {"document.tags": "rare-7"},
    "by tag, first 20": {"document.tags": "common-1"},
    "by type, first 20": {"document.tool_type": "type-7"},
    "by mode, first 20": {"document.execution_mode": "batch"},
    "type and mode, first 20": {"document.tool_type": "type-7", "document.execution_mode": "batch"},
    "two tags and a mode": {"document.tags": {"$all": ["rare-7", "common-1"]}, "document.execution_mode": "batch"},
}


def measure_mongo(size: int, url: str) -> list[list[str]]:
    import pymongo

    from toolcrib.adapters.stores.mongo import MongoStore

    store = MongoStore(url.replace("/?", f"/bench{size}?"))
    rate = fill(store, size)
    print(f"MongoDB: {size} tools written, {rate:,.0f}/s in batches of {BATCH}", file=sys.stderr)
    client: pymongo.MongoClient[dict[str, Any]] = pymongo.MongoClient(url)
    collection = client[f"bench{size}"]["tools"]
    rows = []
    for title, question in QUESTIONS.items():
        by_hand = RAW_MONGO[title]
        ours, raw = in_turns(
            lambda question=question: store.query(parse(question), limit=ANSWER),
            lambda by_hand=by_hand: list(collection.find(by_hand, {"document": 1}).sort("_id", 1).limit(ANSWER)),
        )
        rows.append(_row("MongoDB", title, size, ours, raw))
    names = [f"tool-{random.Random(number).randrange(size):07d}" for number in range(50)]
    ours, raw = in_turns(
        lambda: [store.get(name) for name in names], lambda: [collection.find_one({"_id": name}) for name in names]
    )
    rows.append(_row("MongoDB", "get by name", size, ours / len(names), raw / len(names)))
    store.close()
    client.close()
    return rows


@contextmanager
def mongo_server(folder: Path) -> Iterator[str | None]:
    from tests.support.mongo import MongoCluster, find_mongod

    elsewhere = Path(__file__).parents[1].glob(".venv/lib/python*/site-packages/fiftyone/db/bin/mongod")
    mongod = find_mongod() or next(elsewhere, None)
    if mongod is None:
        print("no mongod here: MongoDB is left out", file=sys.stderr)
        yield None
        return
    with MongoCluster(mongod, folder, nodes=1) as cluster:
        yield cluster.url


def _row(store: str, title: str, size: int, ours: float, raw: float) -> list[str]:
    row = [store, title, f"{size:,}", f"{ours:,.0f}", f"{raw:,.0f}", f"{ours / raw:.2f}"]
    print("  ".join(row), file=sys.stderr, flush=True)  # a million tools take a while
    return row


def main() -> None:
    sizes = [int(size) for size in sys.argv[1:]] or [10_000, 100_000]
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder, mongo_server(Path(folder)) as url:
        for size in sizes:
            rows += measure_sqlite(size, Path(folder))
            if url is not None:
                rows += measure_mongo(size, url)
    rows.sort(key=lambda row: (row[0] != "SQLite", row[1]))
    print_table(
        "Stores: microseconds, the median", ["store", "question", "tools", "ours, us", "by hand, us", "ratio"], rows
    )


if __name__ == "__main__":
    main()

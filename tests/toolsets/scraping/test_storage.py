"""The bricks that store: each record once, on disk when reported, whole again after a crash."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolcrib.core.errors import StoreError
from toolcrib.stacking import Record, StepContext
from toolcrib.toolsets.scraping import BRICKS
from toolcrib.toolsets.scraping.textfiles import cut_short

STORES = ["jsonlines", "csv", "sqlite", "parquet"]
BOOKS = [{"title": f"book {number}", "price": number, "tags": ["a", "b"]} for number in range(5)]


def records(*data: dict[str, Any]) -> list[Record]:
    return [Record(row, "http://shop.example/", "", position) for position, row in enumerate(data)]


def store(name: str, path: Path, rows: list[Record], **config: Any) -> list[bool]:
    brick: Any = BRICKS[name]({"path": str(path), **config})
    brick.open()
    try:
        return [stored.new for stored in brick.process_many(rows, StepContext())]
    finally:
        brick.close()


def read(name: str, path: Path) -> list[dict[str, Any]]:
    if name == "jsonlines":
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    if name == "csv":
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))
    if name == "sqlite":
        database = sqlite3.connect(path)
        database.row_factory = sqlite3.Row
        rows = [dict(row) for row in database.execute("SELECT * FROM records")]
        database.close()
        return rows
    found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return found


@pytest.mark.parametrize("name", STORES)
def test_every_record_is_kept_once_also_by_a_later_run(name: str, tmp_path: Path) -> None:
    path = tmp_path / "deep" / "books"
    rows = records(*BOOKS)
    assert store(name, path, [*rows[:3], rows[0]]) == [True, True, True, False]
    assert store(name, path, rows) == [False, False, False, True, True]
    assert store(name, path, rows) == [False] * 5
    kept = read(name, path)
    assert [row["title"] for row in kept] == [row["title"] for row in BOOKS]
    assert [str(row["price"]) for row in kept] == ["0", "1", "2", "3", "4"]
    assert {row["_key"] for row in kept} == {row.key for row in rows}


@pytest.mark.parametrize("name", STORES)
def test_fields_of_its_own_can_name_a_row(name: str, tmp_path: Path) -> None:
    path = tmp_path / "books"
    assert store(name, path, records(BOOKS[0], {**BOOKS[0], "price": 99}), key="title") == [True, False]
    assert store(name, path, records(BOOKS[1], BOOKS[0]), key="title") == [True, False]
    kept = read(name, path)
    assert [row["title"] for row in kept] == ["book 0", "book 1"]
    assert ("_key" in kept[0]) == (name == "sqlite")


@pytest.mark.parametrize(("name", "torn"), [("jsonlines", b'{"_key": "abc", "ti'), ("csv", b'abc,"half\na row')])
def test_a_row_that_a_crash_cut_short_is_removed(name: str, torn: bytes, tmp_path: Path) -> None:
    path = tmp_path / "books"
    store(name, path, records(*BOOKS[:2]))
    whole = path.read_bytes()
    path.write_bytes(whole + torn)
    assert store(name, path, records(*BOOKS[:3])) == [False, False, True]
    assert path.read_bytes().startswith(whole)
    assert len(read(name, path)) == 3


def test_a_parquet_run_that_was_killed_goes_on_with_what_waited(tmp_path: Path) -> None:
    path = tmp_path / "books.parquet"
    store("parquet", path, records(*BOOKS[:1]))
    killed: Any = BRICKS["parquet"]({"path": str(path)})
    killed.open()
    killed.process_many(records(*BOOKS[:3]), StepContext())  # never closed
    assert len(read("parquet", path)) == 1
    assert store("parquet", path, records(*BOOKS[:4])) == [False, False, False, True]
    assert [row["title"] for row in read("parquet", path)] == ["book 0", "book 1", "book 2", "book 3"]
    assert [file.name for file in tmp_path.iterdir()] == ["books.parquet"]


def test_parquet_columns_have_the_types_of_their_values(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    store("parquet", path, records({"i": 1, "f": 1, "b": True, "s": "x", "m": 1, "n": None}))
    store("parquet", path, [Record({"i": 2, "f": 1.5, "b": False, "m": "x", "j": {"a": 1}, "big": 2**70}, "other")])
    schema = {field.name: str(field.type) for field in pq.read_schema(path)}
    assert schema == {
        "_key": "string",
        "i": "int64",
        "f": "double",
        "b": "bool",
        "s": "string",
        "m": "string",
        "n": "string",
        "j": "string",
        "big": "string",
    }
    assert [(row["m"], row["j"], row["big"]) for row in read("parquet", path)] == [
        ("1", None, None),
        ("x", '{"a": 1}', str(2**70)),
    ]


def test_csv_refuses_a_field_it_has_no_column_for(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    store("csv", path, records({"a": "x"}))
    with pytest.raises(StoreError, match="no column 'b'; name it in 'columns'"):
        store("csv", path, [Record({"b": 1}, "other")])
    with pytest.raises(StoreError, match="has the columns"):
        store("csv", path, records({"a": "x"}), columns=["z"])
    chosen = tmp_path / "u.csv"
    store("csv", chosen, records({"b": 1}), columns=["a", "b"], key="b")
    assert chosen.read_text() == "a,b\n,1\n"


def test_sqlite_grows_columns_and_quotes_names(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    odd = 'x"; DROP TABLE records; --'
    store("sqlite", path, records({"a": 1}, {odd: [1]}))
    assert read("sqlite", path)[1][odd] == "[1]"
    other = tmp_path / "other.db"
    other.write_text("not a database, but long enough to be taken for one" * 10)
    with pytest.raises(StoreError, match=r"other\.db"):
        store("sqlite", other, records({"a": 1}))


def test_a_file_of_something_else_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(StoreError, match=r"line 1 of .*notes\.txt"):
        store("jsonlines", path, records(*BOOKS))
    with pytest.raises(StoreError, match="not a Parquet file"):
        store("parquet", path, records(*BOOKS))
    assert path.read_text() == "dear diary\n"


CELLS = st.text(st.sampled_from('ab",\n\r é'), max_size=6)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6), st.integers(0, 40))
def test_a_csv_cut_anywhere_keeps_every_whole_row(
    tmp_path_factory: pytest.TempPathFactory, cells: list[tuple[str, str]], cut: int
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    store("csv", path, [Record({"a": a, "b": b}, "s", "", n) for n, (a, b) in enumerate(cells)], columns=["a", "b"])
    if not path.exists():
        return
    whole = path.read_bytes()
    before = read("csv", path)
    path.write_bytes(whole[: len(whole) - cut] if cut else whole)
    cut_short(path)
    after = read("csv", path) if path.stat().st_size else []
    assert before[: len(after)] == after
    assert cut or after == before

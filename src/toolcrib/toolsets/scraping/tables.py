"""Records in tables: ``sqlite`` and ``parquet``."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import Field

from toolcrib import StoreError
from toolcrib.toolsets.scraping.rows import KEY, Row, RowsBrick, RowsConfig, append, as_text
from toolcrib.toolsets.scraping.specs import scraping_spec
from toolcrib.toolsets.scraping.textfiles import json_lines, read_json_lines

if TYPE_CHECKING:
    import pyarrow as pa

_ROW_GROUP = 10_000
_INT64 = 2**63


class SqliteBrick(RowsBrick):
    """One table whose primary key is the row's key; a column is added when a record first brings its field."""

    class Config(RowsConfig):
        table: str = Field("records", min_length=1, description="the table; it is made if it is not there")

    spec = scraping_spec("sqlite")
    example: ClassVar[Mapping[str, Any]] = {"path": "rows.db"}
    config: Config

    def begin(self) -> Iterator[str]:
        self._table = _quoted(self.config.table)
        self._database = sqlite3.connect(self.path)
        try:
            return iter(self._known_keys())
        except sqlite3.Error as error:
            self._database.close()
            raise StoreError(f"{str(self.path)!r} cannot be used: {error}") from error

    def _known_keys(self) -> list[str]:
        with self._database:
            self._database.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({KEY} TEXT PRIMARY KEY NOT NULL)")
        self._columns = self._read_columns()
        return [row[0] for row in self._database.execute(f"SELECT {KEY} FROM {self._table}")]  # noqa: S608  quoted

    def close(self) -> None:
        self._database.close()

    def write(self, rows: Mapping[str, Row]) -> None:
        try:
            with self._database:
                for name in dict.fromkeys(name for row in rows.values() for name in row):
                    if name not in self._columns and name != KEY:
                        self._database.execute(f"ALTER TABLE {self._table} ADD COLUMN {_quoted(name)}")
                        self._columns.add(name)
                for key, row in rows.items():
                    self._insert({**row, KEY: key})
        except sqlite3.Error as error:
            self._columns = self._read_columns()
            raise StoreError(f"{str(self.path)!r} cannot be written: {error}") from error

    def _read_columns(self) -> set[str]:
        about = self._database.execute(f"SELECT * FROM {self._table} LIMIT 0")  # noqa: S608  quoted
        return {column[0] for column in about.description}

    def _insert(self, row: Row) -> None:
        names = ", ".join(_quoted(name) for name in row)
        marks = ", ".join("?" * len(row))
        values = [_cell(value) for value in row.values()]
        self._database.execute(f"INSERT OR IGNORE INTO {self._table} ({names}) VALUES ({marks})", values)  # noqa: S608  quoted


class ParquetBrick(RowsBrick):
    """A Parquet file cannot grow, so rows wait in a file beside it until the run ends, then both become the new one.

    After a crash the rows are still there and the next run goes on with them.
    """

    spec = scraping_spec("parquet")
    example: ClassVar[Mapping[str, Any]] = {"path": "rows.parquet"}
    modules = ("pyarrow",)

    def begin(self) -> Iterator[str]:
        self._waiting = self.path.with_name(f"{self.path.name}.rows")
        return (self.key_of(row) for row in chain(_parquet_rows(self.path), read_json_lines(self._waiting)))

    def write(self, rows: Mapping[str, Row]) -> None:
        append(self._waiting, json_lines(rows))

    def close(self) -> None:
        if self._waiting.exists():
            temporary = self.path.with_name(f"{self.path.name}.new")
            _write_parquet(temporary, self._all_rows)
            with temporary.open("rb") as file:
                os.fsync(file.fileno())
            temporary.replace(self.path)
            self._waiting.unlink()

    def _all_rows(self) -> Iterator[Row]:
        """What is in the file, then what waits; a row that a crash left in both comes once."""
        there = set()
        for row in _parquet_rows(self.path):
            there.add(self.key_of(row))
            yield row
        for row in read_json_lines(self._waiting):
            if self.key_of(row) not in there:
                yield row


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _cell(value: Any) -> Any:
    if isinstance(value, int):
        return value if -_INT64 <= value < _INT64 else str(value)
    return value if value is None or isinstance(value, str | float | bytes) else as_text(value)


def _parquet_rows(path: Path) -> Iterator[Row]:
    if not path.exists():
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_ROW_GROUP):
                yield from batch.to_pylist()
    except pa.ArrowException as error:
        raise StoreError(f"{str(path)!r} is not a Parquet file that can be read: {error}") from error


def _write_parquet(path: Path, rows: Any) -> None:
    """Write what ``rows()`` gives, in two passes: one for the types of the columns, one for the values."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = _schema(rows())
    text = {field.name for field in schema if field.type == pa.string()}
    with pq.ParquetWriter(path, schema) as writer:
        values = iter(rows())
        while group := list(islice(values, _ROW_GROUP)):
            columns = {name: [_parquet_cell(row.get(name), name in text) for row in group] for name in schema.names}
            writer.write_table(pa.table(columns, schema=schema))


def _schema(rows: Iterable[Row]) -> pa.Schema:
    import pyarrow as pa

    kinds: dict[str, set[type]] = {}
    for row in rows:
        for name, value in row.items():
            seen = kinds.setdefault(name, set())
            if value is not None:
                fits = not isinstance(value, int) or -_INT64 <= value < _INT64
                seen.add(type(value) if fits else str)
    types: dict[frozenset[type], pa.DataType] = {
        frozenset({bool}): pa.bool_(),
        frozenset({int}): pa.int64(),
        frozenset({float}): pa.float64(),
        frozenset({int, float}): pa.float64(),
    }
    return pa.schema([(name, types.get(frozenset(seen), pa.string())) for name, seen in kinds.items()])


def _parquet_cell(value: Any, as_string: bool) -> Any:
    return as_text(value) if as_string and value is not None else value

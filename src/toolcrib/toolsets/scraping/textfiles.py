"""Records in text files: ``jsonlines`` and ``csv``. A line that a crash cut short is removed at the next opening."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from toolcrib import StoreError
from toolcrib.toolsets.scraping.rows import KEY, Row, RowsBrick, RowsConfig, append, as_text
from toolcrib.toolsets.scraping.specs import scraping_spec


class JsonLinesBrick(RowsBrick):
    spec = scraping_spec("jsonlines")
    example: ClassVar[Mapping[str, Any]] = {"path": "rows.jsonl"}

    def begin(self) -> Iterator[str]:
        for row in read_json_lines(self.path):
            yield self.key_of(row)

    def write(self, rows: Mapping[str, Row]) -> None:
        append(self.path, json_lines(rows))


class CsvBrick(RowsBrick):
    """The columns are those of ``columns``, or the fields of the first record; a later record may not bring others."""

    class Config(RowsConfig):
        columns: tuple[str, ...] = Field((), description="the columns in their order")

    spec = scraping_spec("csv")
    example: ClassVar[Mapping[str, Any]] = {"path": "rows.csv"}
    config: Config

    def begin(self) -> Iterator[str]:
        cut_short(self.path)
        own = () if self.config.key else (KEY,)
        self._columns = (*own, *self.config.columns) if self.config.columns else ()
        if not self.path.exists() or not self.path.stat().st_size:
            return
        with self.path.open(newline="", encoding="utf-8") as file:
            reader = csv.DictReader(file)
            there = tuple(reader.fieldnames or ())
            if self._columns and self._columns != there:
                raise StoreError(f"{str(self.path)!r} has the columns {list(there)}, not {list(self._columns)}")
            self._columns = there
            for row in reader:
                yield self.key_of(row)

    def write(self, rows: Mapping[str, Row]) -> None:
        columns = self._columns or tuple(next(iter(rows.values())))
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not self.path.exists() or not self.path.stat().st_size:
            writer.writerow(columns)
        for row in rows.values():
            strange = [name for name in row if name not in columns]
            if strange:
                raise StoreError(f"{str(self.path)!r} has no column {strange[0]!r}; name it in 'columns'")
            writer.writerow([as_text(row.get(name)) for name in columns])
        append(self.path, text.getvalue().encode("utf-8", "surrogateescape"))
        self._columns = columns


def json_lines(rows: Mapping[str, Row]) -> bytes:
    lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows.values())
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")


def read_json_lines(path: Path) -> Iterator[Row]:
    """The rows of a file that may not exist; a last line without its end is cut off the file."""
    if not path.exists():
        return
    with path.open("rb") as file:
        position = 0
        for number, line in enumerate(file, 1):
            if not line.endswith(b"\n"):
                os.truncate(path, position)
                return
            position += len(line)
            try:
                row = json.loads(line)
            except ValueError:
                raise StoreError(f"line {number} of {str(path)!r} is not JSON; repair or move the file") from None
            if isinstance(row, dict):
                yield row


def cut_short(path: Path) -> None:
    """Remove an unfinished row from the end of a CSV file: whatever follows the last line end outside quotes."""
    if not path.exists():
        return
    position = complete = 0
    quoted = False
    with path.open("rb") as file:
        for line in file:
            position += len(line)
            quoted ^= line.count(b'"') % 2 == 1
            if line.endswith(b"\n") and not quoted:
                complete = position
    if complete < position:
        os.truncate(path, complete)

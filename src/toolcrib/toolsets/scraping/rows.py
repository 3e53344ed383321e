"""What the bricks that store have in common: each record is kept once, and is on disk when it is reported stored."""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

from toolcrib.stacking import BatchBrick, BrickConfig, Record, StepContext, Stored
from toolcrib.toolsets.scraping.specs import Names

KEY = "_key"

Row = dict[str, Any]


class RowsConfig(BrickConfig):
    path: str = Field(min_length=1, description="the file; it is made if it does not exist, and grows if it does")
    key: Names = Field(
        (), description=f"the fields that name a row; without them a row has a field {KEY!r} that names it"
    )


class RowsBrick(BatchBrick[Record, Stored]):
    """Keeps what it has not kept before. The same record again, also in a later run, changes nothing."""

    Config: ClassVar[type[BrickConfig]] = RowsConfig
    files = ("path",)
    takes = Record
    gives = Stored

    def open(self) -> None:
        self.path = Path(self.config.path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._kept = set(self.begin())

    def process_many(self, items: Sequence[Record], _context: StepContext, /) -> Sequence[Stored]:
        fresh: dict[str, Row] = {}
        stored = []
        for item in items:
            key, row = self.row(item)
            new = key not in self._kept and key not in fresh
            if new:
                fresh[key] = row
            stored.append(Stored(key, str(self.path), new))
        if fresh:
            self.write(fresh)
            self._kept.update(fresh)
        return stored

    def row(self, record: Record) -> tuple[str, Row]:
        if self.config.key:
            return self.key_of(record.data), dict(record.data)
        return record.key, {KEY: record.key, **record.data}

    def key_of(self, row: Mapping[str, Any]) -> str:
        """The key of a row that is in the file, or about to be."""
        if not self.config.key:
            return str(row.get(KEY, ""))
        named = "\0".join(as_text(row.get(name)) for name in self.config.key)
        return hashlib.sha256(named.encode("utf-8", "surrogatepass")).hexdigest()[:32]

    @abstractmethod
    def begin(self) -> Iterator[str]:
        """Make the place ready, repair what a crash left, and give the keys of what is there."""

    @abstractmethod
    def write(self, rows: Mapping[str, Row]) -> None:
        """Keep the rows. They are on disk when this returns."""


def as_text(value: Any) -> str:
    """A value as a cell of text: text as it is, nothing as nothing, anything else as JSON."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def append(path: Path, data: bytes) -> None:
    """Add to a file, or leave it as it was if the disk says no. On disk when this returns."""
    with path.open("ab") as file:
        size = file.tell()
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        except OSError:
            os.truncate(path, size)
            raise

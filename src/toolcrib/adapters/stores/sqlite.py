"""``sqlite:///path`` keeps the catalogue in one file. It is the default: durable, indexed, and no server to run."""

from __future__ import annotations

import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock
from typing import Any

from toolcrib.adapters.sqlite import BUSY_SECONDS, budgeted, connect, explained, failure, transaction, write_nothing
from toolcrib.adapters.stores.changes import check_after, kept_document
from toolcrib.adapters.stores.sqlite_query import Lengths, Selection, select
from toolcrib.adapters.stores.sqlite_schema import migrate
from toolcrib.adapters.stores.sqlite_write import ChangeWriter
from toolcrib.core.errors import StoreError
from toolcrib.core.json import is_unicode, read_json
from toolcrib.core.query import Filter
from toolcrib.core.query.budget import found, looked_at
from toolcrib.core.ranking import Candidate, Lookup
from toolcrib.ports import Change, OutboxEvent, Record

_WHAT = "catalogue"
_IDLE_CONNECTIONS = 8
_ROWS = 50
_WAL_BYTES = 32_000_000
"""A write-ahead log larger than this is folded back into the file."""

_RECORD = "d.tool_id, d.version, d.etag, d.document, d.written_at, d.owner, d.definition"
_GET = f"SELECT {_RECORD} FROM tool_data AS d WHERE d.tool_id = ?"  # noqa: S608 -- a constant


class SqliteStore:
    """A store in one file, for several threads and several processes. Readers never wait for writers."""

    remote = False

    def __init__(self, path: str | os.PathLike[str], *, clock: Callable[[], float] = time.time) -> None:
        self.path = str(path)
        self._clock = clock
        self._idle: deque[sqlite3.Connection] = deque()
        self._write_lock = Lock()
        self._wal_limit = _WAL_BYTES
        self._lengths = Lengths()
        self._closed = False
        with explained(_WHAT, self.path):
            self._writer = connect(self.path)
            try:
                migrate(self._writer, self.path)
            except BaseException:
                self._writer.close()
                raise
            self._watch = connect(self.path)  # never writes: SQLite tells a connection of the commits of others alone

    # Reading

    def get(self, name: str) -> Record | None:
        """The busiest path of a service, so it does without context managers."""
        if not is_unicode(name):
            return None
        connection = self._borrow()
        try:
            row: tuple[Any, ...] | None = connection.execute(_GET, (name,)).fetchone()
        except sqlite3.Error as error:
            raise failure(_WHAT, self.path, error) from error
        finally:
            self._give_back(connection)
        if row is None:
            return None
        found(len(row[3]))
        return _record(row)

    def generation(self) -> object:
        try:
            return self._watch.execute("PRAGMA data_version").fetchone()[0]
        except sqlite3.Error as error:
            raise failure(_WHAT, self.path, error) from error

    def query(self, where: Filter, *, limit: int | None = None, after: str | None = None) -> list[Record]:
        check_after(after)
        with self._reader() as connection:
            selection = select(connection, where, after=after, lengths=self._lengths)
            return self._matching(connection, selection, where, limit)

    def _matching(
        self, connection: sqlite3.Connection, selection: Selection, where: Filter, limit: int | None
    ) -> list[Record]:
        if limit is not None and limit <= 0:
            return []
        sql = f"SELECT {_RECORD} {selection.sql} ORDER BY {selection.key}"
        if selection.exact:
            most = (*selection.parameters, -1 if limit is None else limit)
            with closing(connection.execute(f"{sql} LIMIT ?", most)) as rows:
                return _answers(rows)
        records: list[Record] = []
        with closing(connection.execute(sql, selection.parameters)) as rows:
            for row in rows:
                looked_at()
                record = _record(row)
                if where.matches(record.document):
                    found(len(row[3]))
                    records.append(record)
                    if len(records) == limit:
                        break
        return records

    def count(self, where: Filter) -> int:
        with self._reader() as connection:
            selection = select(connection, where, lengths=self._lengths)
            if selection.exact:
                row = connection.execute(f"SELECT count(*) {selection.sql}", selection.parameters).fetchone()
                return int(row[0])
            count = 0
            with closing(connection.execute(f"SELECT d.document {selection.sql}", selection.parameters)) as rows:
                for (text,) in rows:
                    looked_at()
                    count += where.matches(read_json(text))
            return count

    def history(self, name: str) -> list[Record]:
        if not is_unicode(name):
            return []
        sql = (
            "SELECT tool_id, version, etag, document, written_at, owner, definition, 0 FROM tool_data "
            "WHERE tool_id = :name UNION ALL "
            "SELECT tool_id, version, etag, document, written_at, owner, definition, deleted FROM tool_history "
            "WHERE tool_id = :name ORDER BY version DESC"
        )
        with self._reader() as connection, closing(connection.execute(sql, {"name": name})) as rows:
            return _answers(rows)

    def text_candidates(self, wanted: Sequence[Lookup], *, limit: int) -> list[Candidate]:
        sql = "SELECT tool_id, words FROM tool_text WHERE tool_text MATCH ? LIMIT ?"
        with self._reader() as connection:
            rows = connection.execute(sql, (" AND ".join(map(_any_word, wanted)), limit)).fetchall()
        return [Candidate(*row) for row in rows]

    # Writing

    def commit(self, changes: Sequence[Change]) -> list[Record]:
        kept = [kept_document(change) for change in changes]
        purge = any(change.purge for change in changes)
        with self._writing(purge=purge) as connection:
            at = self._clock()
            return [
                ChangeWriter(connection, change).write(*each, at) for change, each in zip(changes, kept, strict=True)
            ]

    def outbox(self, *, limit: int = 100) -> list[OutboxEvent]:
        sql = (
            "SELECT sequence, tool_id, payload, attempts, not_before, last_error FROM tool_outbox "
            "ORDER BY sequence LIMIT ?"
        )
        with self._reader() as connection:
            rows = connection.execute(sql, (limit,)).fetchall()
        return [OutboxEvent(row[0], row[1], read_json(row[2]), *row[3:]) for row in rows]

    def acknowledge(self, sequence: int) -> None:
        with self._writing() as connection:
            connection.execute("DELETE FROM tool_outbox WHERE sequence = ?", (sequence,))

    def postpone(self, sequence: int, *, not_before: float, error: str) -> None:
        with self._writing() as connection:
            connection.execute(
                "UPDATE tool_outbox SET attempts = attempts + 1, not_before = ?, last_error = ? WHERE sequence = ?",
                (not_before, error, sequence),
            )

    def claimed(self, name: str) -> str:
        with self._reader() as connection:
            return _claimed(connection, name)

    def claim(self, name: str, value: str, *, instead_of: str = "") -> str:
        with self._writing() as connection:
            if _claimed(connection, name) == instead_of:
                connection.execute("REPLACE INTO tool_claim (name, value) VALUES (?, ?)", (name, value))
            return _claimed(connection, name)

    def ping(self) -> None:
        """Raises StoreError if the file cannot be read or written."""
        with self._writing() as connection:
            write_nothing(connection)
            connection.execute("SELECT count(*) FROM (SELECT 1 FROM tool_data LIMIT 1)").fetchone()

    def close(self) -> None:
        """Fold the write-ahead log back into the file and let go of it."""
        with self._write_lock:
            if self._closed:
                return
            self._closed = True
            with suppress(sqlite3.Error):  # everything is durable already; the log is folded back at the next start
                self._checkpoint()
            while self._idle:
                self._idle.pop().close()
            self._watch.close()
            self._writer.close()

    # Connections

    def _borrow(self) -> sqlite3.Connection:
        """A connection that is the caller's own until it is given back."""
        try:
            return self._idle.pop()
        except IndexError:
            if self._closed:
                raise StoreError(f"the catalogue {self.path!r} is closed") from None
        with explained(_WHAT, self.path):
            return connect(self.path)

    def _give_back(self, connection: sqlite3.Connection) -> None:
        if self._closed or len(self._idle) >= _IDLE_CONNECTIONS:
            connection.close()
        else:
            self._idle.append(connection)

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        connection = self._borrow()
        try:
            with explained(_WHAT, self.path), budgeted(connection):
                yield connection
        finally:
            self._give_back(connection)

    @contextmanager
    def _writing(self, *, purge: bool = False) -> Iterator[sqlite3.Connection]:
        """The connection that writes, inside a transaction: all of it or nothing.

        With ``purge`` what is deleted is overwritten with zeros, in the log too, unless a reader holds on to it.
        """
        with self._write_lock, explained(_WHAT, self.path):
            if self._closed:
                raise StoreError(f"the catalogue {self.path!r} is closed")
            with self._zeroing() if purge else nullcontext(), transaction(self._writer):
                yield self._writer
            if purge:
                with suppress(sqlite3.Error):  # the purge is done; the log is folded back at the end
                    self._checkpoint()
            self._fold_large_log()

    @contextmanager
    def _zeroing(self) -> Iterator[None]:
        """What is deleted meanwhile is overwritten."""
        (before,) = self._writer.execute("PRAGMA secure_delete").fetchone()
        self._writer.execute("PRAGMA secure_delete = ON")
        try:
            yield
        finally:
            self._writer.execute(f"PRAGMA secure_delete = {int(before)}")

    def _fold_large_log(self) -> None:
        with suppress(OSError, sqlite3.Error):  # the write is done; folding can wait
            size = Path(f"{self.path}-wal").stat().st_size
            if size > self._wal_limit:
                folded = self._checkpoint()
                self._wal_limit = _WAL_BYTES if folded else size + _WAL_BYTES

    def _checkpoint(self) -> bool:
        """Fold the log back and cut it short; False if a reader holds on to it."""
        self._writer.execute("PRAGMA busy_timeout = 200")
        try:
            busy, *_ = self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        finally:
            self._writer.execute(f"PRAGMA busy_timeout = {int(BUSY_SECONDS * 1000)}")
        return not busy


def _any_word(lookup: Lookup) -> str:
    """One lookup in the language of FTS5. Index words are letters and digits, so quotation marks are all they need."""
    end = '"*' if lookup.prefix else '"'
    return "(" + " OR ".join(f'"{word}{end}' for word in lookup.words) + ")"


def _record(row: tuple[Any, ...]) -> Record:
    name, version, etag, text, at, owner, definition, *deleted = row
    return Record(name, version, etag, read_json(text), at, bool(deleted and deleted[0]), owner, definition)


def _answers(rows: sqlite3.Cursor) -> list[Record]:
    """The records of all rows, which the query's budget pays for some at a time."""
    records: list[Record] = []
    while some := rows.fetchmany(_ROWS):
        looked_at(len(some))
        found(sum(len(row[3]) for row in some))
        records.extend(map(_record, some))
    return records


def _claimed(connection: sqlite3.Connection, name: str) -> str:
    row = connection.execute("SELECT value FROM tool_claim WHERE name = ?", (name,)).fetchone()
    return "" if row is None else str(row[0])

"""The audit in a SQLite file of its own: one chain, whose head is the last row, and the last number that SQLite gave.

What a backup brings, or an older release left, are chains before it that have ended. Their heads are in a table.

The attempt of a change is on the disk before the change is made. Outcomes and runs are written without waiting for
the disk: they survive the end of the process, and the last of them may be lost when the power goes.
"""

from __future__ import annotations

import secrets
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

from toolcrib.adapters.sqlite import connect, explained, transaction, write_nothing
from toolcrib.core.chains import PAST, Head, Link, linked
from toolcrib.ports import AuditCriteria, AuditEvent

_SCHEMA = """
create table if not exists audit (
  sequence integer primary key autoincrement,
  call text not null, at real not null, principal text not null, action text not null,
  tool text not null, outcome text not null, detail text not null
) strict;
create index if not exists audit_tool on audit (tool, sequence);
create index if not exists audit_principal on audit (principal, sequence);
create index if not exists audit_at on audit (at);
"""
_ADDED = (
    *(f"alter table audit add column {name} text not null default ''" for name in ("chain", "hash", "saw")),
    "alter table audit add column number integer not null default 0",
    "create table audit_head (chain text primary key, number integer not null, hash text not null) strict",
)
_COLUMNS = ", ".join(AuditEvent._fields)
_PLACE = "chain, number, hash, saw"
_INSERT = f"insert into audit ({_COLUMNS}, {_PLACE}) values ({', '.join('?' * (len(AuditEvent._fields) + 4))})"  # noqa: S608
_NEWEST = "where hash <> '' order by sequence desc limit 1"
_LAST = f"select chain, number, hash, chain in (select chain from audit_head) from audit {_NEWEST}"  # noqa: S608
_WHAT = "audit file"
_CHANGES = ("create", "update", "delete")
_ROWS_AT_ONCE = 1000
_LOST = "lost"
"""What is said of the chain of events of which none is left."""


class SqliteAudit:
    """Safe to use from several threads and several processes at once. Who only reads tools makes no file."""

    remote = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._waits = True
        """Whether the connection waits for the disk when it commits, as a new one does."""
        if path.exists():
            with explained(_WHAT, path):
                self._db  # noqa: B018 - a file that is none is told at the start

    @cached_property
    def _db(self) -> sqlite3.Connection:
        connection = connect(self._path)
        try:
            _migrate(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def record(self, *events: AuditEvent) -> None:
        durable = any(event.outcome == "attempt" and event.action in _CHANGES for event in events)
        with self._lock, explained(_WHAT, self._path):
            if durable is not self._waits:
                self._db.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
                self._waits = durable
            with transaction(self._db):
                self._add(events)

    def _add(self, events: Iterable[AuditEvent]) -> None:
        """The events after the last one, whoever wrote that; the transaction lets nobody come between."""
        *last, has_ended = self._db.execute(_LAST).fetchone() or (True,)
        if has_ended:
            self._put(linked(events, Head(secrets.token_hex(6), 0, ""), str(Head(*last)) if last else ""))
        else:
            self._put(linked(events, Head(*last)))

    def _put(self, links: Iterable[Link]) -> None:
        self._db.executemany(
            _INSERT, [(*event, chain, number, digest, saw) for chain, number, digest, saw, event in links]
        )

    def events(self, *, since: float = 0.0, limit: int = 100, **wanted: Unpack[AuditCriteria]) -> list[AuditEvent]:
        given = {name: value for name, value in wanted.items() if value}
        where = " and ".join(["at >= :since", *(f"{name} = :{name}" for name in given)])
        query = f"select {_COLUMNS} from audit where {where} order by sequence desc limit :limit"  # noqa: S608
        return [AuditEvent(*row) for row in self._rows(query, {**given, "since": since, "limit": limit})]

    def links(self) -> Iterator[Link]:
        """A number that SQLite gave and that is there no more is an event that was taken out."""
        before = gone = 0
        query = f"select sequence, {_PLACE}, {_COLUMNS} from audit where sequence > ? order by sequence limit ?"  # noqa: S608
        while rows := self._rows(query, (before, _ROWS_AT_ONCE)):
            for sequence, chain, number, digest, saw, *event in rows:
                gone += sequence - before - 1
                before = sequence
                yield Link(chain, number + gone, digest, saw, event)

    def heads(self) -> dict[str, Head]:
        """SQLite remembers the last number that it gave, whatever was taken out since."""
        heads = {row[0]: Head(*row) for row in self._rows("select chain, number, hash from audit_head", ())}
        given = sum(row[0] for row in self._rows("select seq from sqlite_sequence where name = 'audit'", ()))
        query = f"select sequence, chain, number, hash from audit {_NEWEST}"  # noqa: S608
        for sequence, *last in self._rows(query, ()) or [(0, _LOST, 0, "")]:
            head = Head(*last)
            newest = heads.pop(head.chain, head)
            if cut := given - sequence:
                newest = Head(head.chain, newest.number + cut, "")
            if newest.number:
                heads[head.chain] = newest
        return heads

    def adopt(self, links: Iterable[Link], heads: Mapping[str, Head]) -> None:
        with self._lock, explained(_WHAT, self._path), transaction(self._db):
            known = {row[0] for row in self._db.execute("select distinct chain from audit")}
            self._put(link for link in links if link.chain not in known)
            brought = [head for head in heads.values() if head.chain not in known]
            self._db.executemany("replace into audit_head values (?, ?, ?)", brought)

    def ping(self) -> None:
        with self._lock, explained(_WHAT, self._path), transaction(self._db):
            write_nothing(self._db)

    def close(self) -> None:
        with self._lock:
            if "_db" in vars(self):
                self._db.close()

    def _rows(self, query: str, values: Any) -> list[tuple[Any, ...]]:
        if "_db" not in vars(self) and not self._path.exists():
            return []
        with self._lock, explained(_WHAT, self._path):
            return self._db.execute(query, values).fetchall()


def _migrate(connection: sqlite3.Connection) -> None:
    """Make the tables. Events that an older release kept are linked as they are found."""
    if _is_current(connection):
        return
    connection.executescript(_SCHEMA)
    with transaction(connection):
        if _is_current(connection):
            return  # another process was quicker
        for step in _ADDED:
            connection.execute(step)
        head = Head(PAST, 0, "")
        rows = connection.execute(f"select sequence, {_COLUMNS} from audit order by sequence")  # noqa: S608
        while some := rows.fetchmany(_ROWS_AT_ONCE):
            links = linked([row[1:] for row in some], head)
            head = links[-1].head
            connection.executemany(
                "update audit set chain = ?, number = ?, hash = ? where sequence = ?",
                [(*link.head, row[0]) for link, row in zip(links, some, strict=True)],
            )
        if head.number:
            connection.execute("insert into audit_head values (?, ?, ?)", head)


def _is_current(connection: sqlite3.Connection) -> bool:
    return connection.execute("select 1 from sqlite_master where name = 'audit_head'").fetchone() is not None

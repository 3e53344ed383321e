"""The audit in a SQLite file of its own.

The attempt of a change is on the disk before the change is made. Outcomes and runs are written without waiting for
the disk: they survive the end of the process, and the last of them may be lost when the power goes.
"""

from __future__ import annotations

import sqlite3
import threading
from functools import cached_property
from pathlib import Path
from typing import Unpack

from toolcrib.adapters.sqlite import connect, explained, transaction, write_nothing
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
_COLUMNS = ", ".join(AuditEvent._fields)
_MARKS = ", ".join("?" * len(AuditEvent._fields))
_WHAT = "audit file"
_CHANGES = ("create", "update", "delete")


class SqliteAudit:
    """Safe to use from several threads and several processes at once. Who only reads tools makes no file."""

    remote = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        if path.exists():
            with explained(_WHAT, path):
                self._db  # noqa: B018 - a file that is none is told at the start

    @cached_property
    def _db(self) -> sqlite3.Connection:
        connection = connect(self._path, private=True)
        connection.executescript(_SCHEMA)
        return connection

    def record(self, *events: AuditEvent) -> None:
        durable = any(event.outcome == "attempt" and event.action in _CHANGES for event in events)
        with self._lock, explained(_WHAT, self._path):
            self._db.execute(f"pragma synchronous = {'full' if durable else 'normal'}")
            with transaction(self._db):
                self._db.executemany(f"insert into audit ({_COLUMNS}) values ({_MARKS})", events)  # noqa: S608

    def events(self, *, since: float = 0.0, limit: int = 100, **wanted: Unpack[AuditCriteria]) -> list[AuditEvent]:
        given = {name: value for name, value in wanted.items() if value}
        where = " and ".join(["at >= :since", *(f"{name} = :{name}" for name in given)])
        query = f"select {_COLUMNS} from audit where {where} order by sequence desc limit :limit"  # noqa: S608
        with self._lock, explained(_WHAT, self._path):
            rows = self._db.execute(query, {**given, "since": since, "limit": limit}).fetchall()
        return [AuditEvent(*row) for row in rows]

    def ping(self) -> None:
        with self._lock, explained(_WHAT, self._path), transaction(self._db):
            write_nothing(self._db)

    def close(self) -> None:
        with self._lock:
            if "_db" in vars(self):
                self._db.close()

"""The memory of a run: which requests are known, which are fetched, which are done.

A journal on disk is an SQLite file that one run at a time may hold. Every note survives the death of the process as
soon as it is made; once a second it is also forced to the disk, so that a power cut costs at most the pages of that
second, which are then fetched again and stored once. A journal without a path lives in memory.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from toolcrib.core.errors import ConflictError, StoreError, ToolcribError
from toolcrib.stacking.items import Page, Request

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    """CREATE TABLE IF NOT EXISTS requests (
    id INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE,
    state TEXT NOT NULL DEFAULT 'open',
    request TEXT NOT NULL,
    page TEXT,
    body BLOB,
    reason TEXT NOT NULL DEFAULT ''
)""",
)
_SYNC_SECONDS = 1.0


class Journal:
    """Requests by key, each ``open``, ``done`` or ``failed``. Failed ones are open again when a run begins."""

    def __init__(self, path: Path | None, pipeline: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self._clock = clock
        self._synced = clock()
        try:
            self._database = _connect(path)
        except (sqlite3.Error, OSError) as error:
            raise self._broken(error) from error
        try:
            self._claim(pipeline)
        except ToolcribError:
            self._database.close()
            raise
        rows = self._execute("SELECT id FROM requests WHERE state = 'open' ORDER BY id")
        self._todo: deque[int] = deque(row[0] for row in rows)
        self.done_before: int = self._execute("SELECT count(*) FROM requests WHERE state = 'done'").fetchone()[0]
        self.known: int = self._execute("SELECT count(*) FROM requests").fetchone()[0]

    def add(self, request: Request) -> None:
        """Note a request; one that is known already is left out."""
        written = self._execute(
            "INSERT OR IGNORE INTO requests (key, request) VALUES (?, ?)", (request.key, _request_text(request))
        )
        if written.rowcount and written.lastrowid is not None:
            self._todo.append(written.lastrowid)
            self.known += 1

    def take(self) -> tuple[Request, Page | None] | None:
        """The next open request, with its page if that was fetched before; None if nothing is open."""
        if not self._todo:
            return None
        row = self._execute("SELECT request, page, body FROM requests WHERE id = ?", (self._todo.popleft(),)).fetchone()
        request = _request(row[0])
        return request, None if row[1] is None else _page(request, row[1], row[2])

    def fetched(self, page: Page) -> None:
        """Keep the page until its request is done, so that it need not be fetched again."""
        if self.path is None:
            return
        about = json.dumps([page.url, page.status, dict(page.headers), page.fetched_by])
        self._execute("UPDATE requests SET page = ?, body = ? WHERE key = ?", (about, page.body, page.request.key))

    def done(self, request: Request) -> None:
        """Everything that came of the request is where it belongs."""
        self._end(request, "done", "")

    def failed(self, request: Request, reason: str) -> None:
        self._end(request, "failed", reason)

    def sync(self) -> None:
        """Force the notes to the disk if the last time is long enough ago."""
        if self.path is not None and self._clock() - self._synced >= _SYNC_SECONDS:
            self._execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._synced = self._clock()

    def close(self) -> None:
        self._database.close()

    def _end(self, request: Request, state: str, reason: str) -> None:
        self._execute(
            "UPDATE requests SET state = ?, reason = ?, page = NULL, body = NULL,"
            " request = CASE ? WHEN 'done' THEN '' ELSE request END WHERE key = ?",
            (state, reason, state, request.key),
        )

    def _claim(self, pipeline: str) -> None:
        for statement in _SCHEMA:
            self._execute(statement)
        self._execute("INSERT OR IGNORE INTO about VALUES ('pipeline', ?)", (pipeline,))
        owner = self._execute("SELECT value FROM about WHERE name = 'pipeline'").fetchone()[0]
        if owner != pipeline:
            raise ConflictError(
                f"the journal {str(self.path)!r} belongs to another pipeline; name another journal, or delete it"
            )
        self._execute("UPDATE requests SET state = 'open', reason = '' WHERE state = 'failed'")

    def _execute(self, statement: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            return self._database.execute(statement, values)
        except sqlite3.Error as error:
            raise self._broken(error) from error

    def _broken(self, error: Exception) -> StoreError:
        return StoreError(f"the journal {str(self.path)!r} cannot be used: {error}")


def _connect(path: Path | None) -> sqlite3.Connection:
    if path is None:
        return sqlite3.connect(":memory:", isolation_level=None)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(mode=0o600)  # requests hold cookies and tokens; SQLite gives its log the rights of the file
    database = sqlite3.connect(path, isolation_level=None, timeout=0.2)
    try:
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = NORMAL")
        database.execute("BEGIN IMMEDIATE")
        database.execute("COMMIT")
    except sqlite3.Error as error:
        database.close()
        if "locked" in str(error):
            raise ConflictError(f"the journal {str(path)!r} is in use by another run; wait for it to end") from None
        raise
    return database


def _request_text(request: Request) -> str:
    headers, body = dict(request.headers), request.body.hex()
    return json.dumps([request.url, request.method, headers, body, request.depth, request.proxy, request.note])


def _request(text: str) -> Request:
    url, method, headers, body, depth, proxy, note = json.loads(text)
    return Request(url, method, headers, bytes.fromhex(body), depth, proxy, note)


def _page(request: Request, text: str, body: Any) -> Page:
    url, status, headers, fetched_by = json.loads(text)
    return Page(request, url, status, bytes(body), headers, fetched_by)

"""One change through all the tables of the SQLite store."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from toolcrib.adapters.stores.changes import LABEL_FIELDS, check_expected, new_etag, owner_after
from toolcrib.adapters.stores.sqlite_schema import EXECUTION_COLUMNS, execution_row
from toolcrib.core.ranking import index_words
from toolcrib.ports import Change, Record


class ChangeWriter:
    """Writes one change through all the tables, inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, change: Change) -> None:
        self.connection = connection
        self.change = change
        self.name = change.name

    def write(self, text: str, document: dict[str, Any], at: float) -> Record:
        change, name = self.change, self.name
        old = self.connection.execute(
            "SELECT version, etag, search_id, document, owner FROM tool_data WHERE tool_id = ?", (name,)
        ).fetchone()
        check_expected(change, None if old is None else old[1])
        version = 1 + (self._last_version() if old is None else old[0])
        if old is not None:
            self._retire(old[2], json.loads(old[3]))
        etag, owner = new_etag(), owner_after(change, "" if old is None else old[4])
        if change.document is None:
            self._keep_deletion(version, etag, at)
        else:
            self._insert(version, etag, at, text, document, owner)
        if change.event is not None:
            self.connection.execute(
                "INSERT INTO tool_outbox (tool_id, payload) VALUES (?, ?)", (name, json.dumps(change.event))
            )
        return Record(name, version, etag, document, at, change.document is None, owner)

    def _last_version(self) -> int:
        sql = "SELECT max(version) FROM tool_history WHERE tool_id = ?"
        return int(self.connection.execute(sql, (self.name,)).fetchone()[0] or 0)

    def _retire(self, search_id: int, document: dict[str, Any]) -> None:
        """The current version becomes history."""
        execute, name = self.connection.execute, self.name
        execute(
            "INSERT INTO tool_history (tool_id, version, etag, written_at, deleted, document, owner) "
            "SELECT tool_id, version, etag, written_at, 0, document, owner FROM tool_data WHERE tool_id = ?",
            (name,),
        )
        self.connection.executemany(
            "DELETE FROM tool_label WHERE field = ? AND value = ? AND tool_id = ?", _labels(name, document)
        )
        execute("DELETE FROM tool_text WHERE rowid = ?", (search_id,))
        execute("DELETE FROM tool_data WHERE tool_id = ?", (name,))

    def _keep_deletion(self, version: int, etag: str, at: float) -> None:
        self.connection.execute(
            "INSERT INTO tool_history (tool_id, version, etag, written_at, deleted, document) "
            "VALUES (?, ?, ?, ?, 1, '{}')",
            (self.name, version, etag, at),
        )

    def _insert(self, version: int, etag: str, at: float, text: str, document: dict[str, Any], owner: str) -> None:
        execute, name = self.connection.execute, self.name
        description = document.get("description")
        search_id = execute(
            "INSERT INTO tool_text (tool_id, words) VALUES (?, ?)", (name, index_words(document))
        ).lastrowid
        metadata = document.get("metadata")
        execute(
            "INSERT INTO tool_data (tool_id, version, etag, written_at, search_id, tool_type, category, "
            "tool_search_description, tool_metadata, document, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (name, version, etag, at, search_id, document.get("tool_type"), document.get("category"), description,
             json.dumps(metadata, ensure_ascii=False) if "metadata" in document else None, text, owner),
        )  # fmt: skip
        columns = ", ".join(EXECUTION_COLUMNS)
        marks = ", ".join("?" * len(EXECUTION_COLUMNS))
        execute(
            f"INSERT INTO tool_execution (tool_id, {columns}) VALUES (?, {marks})",  # noqa: S608 -- constants
            (name, *execution_row(document)),
        )
        self.connection.executemany(
            "INSERT INTO tool_label (field, value, tool_id) VALUES (?, ?, ?)", _labels(name, document)
        )


def _labels(name: str, document: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(field, value, name) for field in LABEL_FIELDS for value in sorted(set(document.get(field, ())))]

"""One change through all the tables of the SQLite store."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from toolcrib.adapters.stores.changes import LABEL_FIELDS, check_expected, definition_after, new_etag, owner_after
from toolcrib.adapters.stores.sqlite_schema import EXECUTION_COLUMNS, execution_row, masked_credentials
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
        search_id, old = self._current()
        last = self._last_version() if old is None else old.version
        check_expected(change, None if old is None else old.etag, past=last > 0)
        version = 1 + last
        if old is not None:
            self._retire(search_id, old.document)
        gone, owner = change.document is None, owner_after(change, "" if old is None else old.owner)
        definition = 0 if gone else definition_after(document, version, old)
        record = Record(name, version, new_etag(), document, at, gone, owner, definition)
        if change.purge:
            self._purge()
        elif gone:
            self._keep_deletion(record)
        else:
            self._insert(record, text)
        if change.event is not None:
            self.connection.execute(
                "INSERT INTO tool_outbox (tool_id, payload) VALUES (?, ?)", (name, json.dumps(change.event))
            )
        return record

    def _current(self) -> tuple[int, Record | None]:
        """What is there, and where its words are."""
        sql = (
            "SELECT search_id, version, etag, document, written_at, owner, definition FROM tool_data WHERE tool_id = ?"
        )
        row = self.connection.execute(sql, (self.name,)).fetchone()
        if row is None:
            return 0, None
        search_id, version, etag, text, at, owner, definition = row
        return search_id, Record(self.name, version, etag, json.loads(text), at, False, owner, definition)

    def _last_version(self) -> int:
        sql = "SELECT max(version) FROM tool_history WHERE tool_id = ?"
        return int(self.connection.execute(sql, (self.name,)).fetchone()[0] or 0)

    def _retire(self, search_id: int, document: dict[str, Any]) -> None:
        """The current version becomes history."""
        execute, name = self.connection.execute, self.name
        execute(
            "INSERT INTO tool_history (tool_id, version, etag, written_at, deleted, document, owner, definition) "
            "SELECT tool_id, version, etag, written_at, 0, document, owner, definition FROM tool_data "
            "WHERE tool_id = ?",
            (name,),
        )
        self.connection.executemany(
            "DELETE FROM tool_label WHERE field = ? AND value = ? AND tool_id = ?", _labels(name, document)
        )
        execute("DELETE FROM tool_text WHERE rowid = ?", (search_id,))
        execute("DELETE FROM tool_data WHERE tool_id = ?", (name,))

    def _purge(self) -> None:
        """Nothing of the name stays; whoever writes a purge has SQLite overwrite what it deletes."""
        self.connection.execute("DELETE FROM tool_history WHERE tool_id = ?", (self.name,))

    def _keep_deletion(self, record: Record) -> None:
        self.connection.execute(
            "INSERT INTO tool_history (tool_id, version, etag, written_at, deleted, document) "
            "VALUES (?, ?, ?, ?, 1, '{}')",
            (record.name, record.version, record.etag, record.at),
        )

    def _insert(self, record: Record, text: str) -> None:
        execute, name, document = self.connection.execute, self.name, record.document
        search_id = execute(
            "INSERT INTO tool_text (tool_id, words) VALUES (?, ?)", (name, index_words(document))
        ).lastrowid
        metadata = json.dumps(document["metadata"], ensure_ascii=False) if "metadata" in document else None
        execute(
            "INSERT INTO tool_data (tool_id, version, etag, written_at, search_id, tool_type, category, "
            "tool_search_description, tool_metadata, document, owner, definition, default_tool_usage_credentials) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (name, record.version, record.etag, record.at, search_id, document.get("tool_type"),
             document.get("category"), document.get("description"), metadata, text, record.owner, record.definition,
             masked_credentials(document)),
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

"""Where API tokens are kept.

Embedded stores keep them in ``tokens.db`` in the data folder; on MongoDB they live in the same database as the tools,
so that every replica knows them.
"""

from __future__ import annotations

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

from toolcrib.adapters.sqlite import connect, explained, transaction
from toolcrib.core.tokens import TokenRecord

_TOKENS = "tokens"
_TABLE = (
    "create table if not exists tokens (digest text primary key, id text not null unique, name text not null,"
    " role text not null, created_at real not null, expires_at real not null, limits text not null default '')"
)
_COLUMNS = "id, name, role, digest, created_at, expires_at, limits"


class SqliteTokens:
    """A file of their own beside the tools, readable by its owner alone. Connections are short: reads are cached."""

    remote = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        with explained("token file", path), closing(connect(path)) as database, transaction(database):
            database.execute(_TABLE)
            columns = [row[1] for row in database.execute("pragma table_info (tokens)")]
            if "limits" not in columns:  # an older release made the file
                database.execute("alter table tokens add column limits text not null default ''")

    def add(self, record: TokenRecord) -> None:
        values = record.to_dict()
        self._run(
            f"insert into tokens ({_COLUMNS}) values (:id, :name, :role, :digest, :created_at, :expires_at, :limits)",  # noqa: S608 -- a constant
            values | {"limits": json.dumps(values["limits"]) if "limits" in values else ""},
        )

    def find(self, digest: str) -> TokenRecord | None:
        rows = self._run(f"select {_COLUMNS} from tokens where digest = :digest", {"digest": digest})  # noqa: S608
        return _from_row(rows[0]) if rows else None

    def all(self) -> list[TokenRecord]:
        return list(map(_from_row, self._run(f"select {_COLUMNS} from tokens order by created_at, id")))  # noqa: S608

    def revoke(self, token_id: str) -> bool:
        return bool(self._run("delete from tokens where id = :id returning id", {"id": token_id}))

    def close(self) -> None:
        return None

    def _run(self, sql: str, values: dict[str, Any] | None = None) -> list[Any]:
        with self._lock, explained("token file", self._path), closing(connect(self._path)) as database:
            return database.execute(sql, values or {}).fetchall()


def _from_row(row: tuple[Any, ...]) -> TokenRecord:
    *values, limits = row
    named = dict(zip(_COLUMNS.split(", "), values, strict=False))
    return TokenRecord.parse(named | ({"limits": json.loads(limits)} if limits else {}))


class MongoTokens:
    remote = True

    def __init__(self, url: str) -> None:
        from toolcrib.adapters.mongo import MongoConnection

        self._server = MongoConnection(url, lambda: self._tokens.create_index("id", unique=True))
        self._tokens = self._server.database[_TOKENS]

    def add(self, record: TokenRecord) -> None:
        document = record.to_dict()
        self._server.add(_TOKENS, [{"_id": document.pop("digest"), **document}])

    def find(self, digest: str) -> TokenRecord | None:
        document = self._server.attempt(lambda: self._tokens.find_one({"_id": digest}))
        return _from_mongo(document) if document else None

    def all(self) -> list[TokenRecord]:
        documents = self._server.attempt(lambda: list(self._tokens.find().sort([("created_at", 1), ("id", 1)])))
        return [_from_mongo(document) for document in documents]

    def revoke(self, token_id: str) -> bool:
        return bool(self._server.attempt(lambda: self._tokens.delete_one({"id": token_id})).deleted_count)

    def close(self) -> None:
        self._server.close()


def _from_mongo(document: dict[str, Any]) -> TokenRecord:
    return TokenRecord.parse({"digest": document.pop("_id"), **document})

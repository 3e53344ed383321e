"""Where API tokens are kept.

Embedded stores keep them in ``tokens.db`` in the data folder; on MongoDB they live in the same database as the tools,
so that every replica knows them.
"""

from __future__ import annotations

import threading
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolcrib.adapters.sqlite import connect, explained
from toolcrib.core.tokens import TokenRecord

_TOKENS = "tokens"


class SqliteTokens:
    """A file of their own beside the tools, readable by its owner alone. Connections are short: reads are cached."""

    remote = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._run(
            "create table if not exists tokens (digest text primary key, id text not null unique, name text not null,"
            " role text not null, created_at real not null, expires_at real not null)"
        )

    def add(self, record: TokenRecord) -> None:
        self._run(
            "insert into tokens (id, name, role, digest, created_at, expires_at)"
            " values (:id, :name, :role, :digest, :created_at, :expires_at)",
            asdict(record),
        )

    def find(self, digest: str) -> TokenRecord | None:
        rows = self._run(
            "select id, name, role, digest, created_at, expires_at from tokens where digest = :digest",
            {"digest": digest},
        )
        return TokenRecord(*rows[0]) if rows else None

    def all(self) -> list[TokenRecord]:
        rows = self._run("select id, name, role, digest, created_at, expires_at from tokens order by created_at, id")
        return [TokenRecord(*row) for row in rows]

    def revoke(self, token_id: str) -> bool:
        return bool(self._run("delete from tokens where id = :id returning id", {"id": token_id}))

    def close(self) -> None:
        return None

    def _run(self, sql: str, values: dict[str, Any] | None = None) -> list[Any]:
        with self._lock, explained("token file", self._path), closing(connect(self._path)) as database:
            return database.execute(sql, values or {}).fetchall()


class MongoTokens:
    remote = True

    def __init__(self, url: str) -> None:
        from toolcrib.adapters.mongo import MongoConnection

        self._server = MongoConnection(url, lambda: self._tokens.create_index("id", unique=True))
        self._tokens = self._server.database[_TOKENS]

    def add(self, record: TokenRecord) -> None:
        document = asdict(record)
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
    return TokenRecord(digest=document.pop("_id"), **document)

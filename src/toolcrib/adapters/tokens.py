"""Where API tokens are kept.

Embedded stores keep them in ``tokens.db`` in the data folder; on MongoDB they live in the same database as the tools,
so that every replica knows them.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolcrib.core.errors import MissingDependencyError, StoreError
from toolcrib.core.tokens import TokenRecord


class SqliteTokens:
    """A file of their own beside the tools, readable by its owner alone. Connections are short: reads are cached."""

    remote = False

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch(mode=0o600, exist_ok=True)
        except OSError as error:
            raise StoreError(f"the token file {str(path)!r} cannot be made: {error.strerror or error}") from None
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
        try:
            with self._lock, closing(sqlite3.connect(self._path, timeout=10)) as database, database:
                return database.execute(sql, values or {}).fetchall()
        except sqlite3.Error as error:
            raise StoreError(f"the token file {str(self._path)!r} failed: {error}") from None


class MongoTokens:
    remote = True

    def __init__(self, url: str) -> None:
        try:
            import pymongo
            from pymongo.errors import PyMongoError
        except ImportError:
            raise MissingDependencyError("pymongo", extra="mongo") from None
        self._failure: type[Exception] = PyMongoError
        self._client: Any = pymongo.MongoClient(url, w="majority", serverSelectionTimeoutMS=10_000)
        self._tokens = self._client.get_default_database("toolcrib")["tokens"]
        self._guarded(self._tokens.create_index, "id", unique=True)

    def add(self, record: TokenRecord) -> None:
        document = asdict(record)
        self._guarded(self._tokens.insert_one, {"_id": document.pop("digest"), **document})

    def find(self, digest: str) -> TokenRecord | None:
        document = self._guarded(self._tokens.find_one, {"_id": digest})
        return _from_mongo(document) if document else None

    def all(self) -> list[TokenRecord]:
        documents = self._guarded(lambda: list(self._tokens.find().sort([("created_at", 1), ("id", 1)])))
        return [_from_mongo(document) for document in documents]

    def revoke(self, token_id: str) -> bool:
        return bool(self._guarded(self._tokens.delete_one, {"id": token_id}).deleted_count)

    def close(self) -> None:
        self._client.close()

    def _guarded(self, method: Any, *args: Any, **options: Any) -> Any:
        try:
            return method(*args, **options)
        except self._failure as error:
            raise StoreError(f"the token collection did not answer: {str(error)[:200]}") from None


def _from_mongo(document: dict[str, Any]) -> TokenRecord:
    return TokenRecord(digest=document.pop("_id"), **document)

"""One commit to MongoDB: read what is there, decide in memory, write in bulk, all in one transaction."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from pymongo import DeleteOne, InsertOne, ReplaceOne, UpdateOne
from pymongo.errors import OperationFailure

from toolcrib.adapters.mongo import Document
from toolcrib.adapters.stores.changes import check_expected, definition_after, owner_after
from toolcrib.adapters.stores.mongo_filter import decode, encode
from toolcrib.core.ranking import index_words
from toolcrib.ports import Change, Record

if TYPE_CHECKING:
    from pymongo.client_session import ClientSession
    from pymongo.collection import Collection
    from pymongo.database import Database

_ROWS_AT_ONCE = 1000
TOOLS, HISTORY, OUTBOX, COUNTERS = "tools", "tool_history", "tool_outbox", "tool_counters"


@dataclass(frozen=True, slots=True)
class Write:
    """A change with everything drawn that must be the same at every attempt."""

    change: Change
    document: dict[str, Any]
    etag: str
    at: float


class Commit:
    """Some writes inside a session's transaction."""

    def __init__(self, database: Database[Document], session: ClientSession, writes: Sequence[Write]) -> None:
        self._tools = database[TOOLS]
        self._history = database[HISTORY]
        self._outbox = database[OUTBOX]
        self._counters = database[COUNTERS]
        self._session = session
        self._writes = writes
        self._purged: list[str] = []
        self._names = list(dict.fromkeys(write.change.name for write in writes))

    def run(self) -> list[Record]:
        before = self._current()
        now = dict(before)
        versions = {name: int(row["version"]) for name, row in before.items()}
        versions |= self._last_versions([name for name in self._names if name not in before])
        past: list[Document] = []
        records: list[Record] = []
        for write in self._writes:
            name = write.change.name
            old = now.pop(name, None)
            check_expected(write.change, None if old is None else old["etag"], past=versions.get(name, 0) > 0)
            versions[name] = versions.get(name, 0) + 1
            made = _made(write, versions[name], None if old is None else record(old))
            row = row_of(made)
            if write.change.purge:
                self._purged.append(name)
                records.append(made)
                continue
            if old is not None:
                past.append(_as_past(old))
            if made.deleted:
                past.append(_as_past(row, deleted=True))
            else:
                now[name] = row
            records.append(made)
        self._put(before, now, past)
        self._send()
        return records

    def landed(self) -> list[Record]:
        """What an earlier attempt of the same commit wrote, if it went through unnoticed."""
        etags = [write.etag for write in self._writes]
        found = {
            row["_id"]: past_record(row) for row in self._history.find({"_id": {"$in": etags}}, session=self._session)
        }
        current = self._current()
        found |= {row["etag"]: record(row) for row in current.values() if row["etag"] in etags}
        if found or current or not all(write.change.purge for write in self._writes):
            return [found[etag] for etag in etags] if found else []
        # A purge leaves nothing to be recognised by; it was there at the first attempt, and now it is not.
        return [] if self._last_versions(self._names) else [_made(write, 1, None) for write in self._writes]

    def _current(self) -> dict[str, Document]:
        return {row["_id"]: row for row in self._tools.find({"_id": {"$in": self._names}}, session=self._session)}

    def _last_versions(self, names: list[str]) -> dict[str, int]:
        """Of tools that were there once: a version is never used twice."""
        steps: list[Document] = [
            {"$match": {"name": {"$in": names}}},
            {"$group": {"_id": "$name", "version": {"$max": "$version"}}},
        ]
        found = self._history.aggregate(steps, session=self._session) if names else ()
        return {row["_id"]: int(row["version"]) for row in found}

    def _put(self, before: dict[str, Document], now: dict[str, Document], past: list[Document]) -> None:
        operations: list[InsertOne[Document] | ReplaceOne[Document] | DeleteOne] = []
        for name in self._names:
            if name in now:
                operations.append(ReplaceOne({"_id": name}, now[name]) if name in before else InsertOne(now[name]))
            elif name in before:
                operations.append(DeleteOne({"_id": name}))
        if operations:
            self._tools.bulk_write(operations, session=self._session)
        if self._purged:
            self._history.delete_many({"name": {"$in": self._purged}}, session=self._session)
        if past:
            self._history.insert_many(past, session=self._session)

    def _send(self) -> None:
        told = [(write.change.name, write.change.event) for write in self._writes if write.change.event is not None]
        if not told:
            return
        counter = self._counters.find_one_and_update(
            {"_id": "outbox"}, {"$inc": {"last": len(told)}}, upsert=True, return_document=True, session=self._session
        )
        assert counter is not None  # it is made if it is not there
        first = counter["last"] - len(told) + 1
        entry = {"attempts": 0, "not_before": 0.0, "last_error": ""}
        self._outbox.insert_many(
            [
                {"_id": first + number, "name": name, "payload": json.dumps(event), **entry}
                for number, (name, event) in enumerate(told)
            ],
            session=self._session,
        )


def _made(write: Write, version: int, old: Record | None) -> Record:
    """The record of a write over what was there."""
    change, document = write.change, write.document
    gone, owner = change.document is None, owner_after(change, "" if old is None else old.owner)
    definition = 0 if gone else definition_after(document, version, old)
    return Record(change.name, version, write.etag, document, write.at, gone, owner, definition)


def row_of(made: Record) -> Document:
    """A record as it stands among the current tools."""
    return {
        "_id": made.name,
        "version": made.version,
        "etag": made.etag,
        "at": made.at,
        "owner": made.owner,
        "definition": made.definition,
        "document": encode(made.document),
        "words": index_words(made.document).split(),
    }


def fill_in_words(tools: Collection[Document]) -> None:
    """Give words to tools that an older release wrote, and drop the index that it searched by."""
    if "tool_text" in tools.index_information():  # dropping waits for every transaction, so only if there is one
        with suppress(OperationFailure):  # another process was quicker
            tools.drop_index("tool_text")
    with tools.find({"words": {"$exists": False}}) as wordless:
        while rows := list(islice(wordless, _ROWS_AT_ONCE)):
            tools.bulk_write([_with_words(row) for row in rows], ordered=False)


def _with_words(row: Document) -> UpdateOne:
    words = index_words(decode(row["document"])).split()
    same = {"_id": row["_id"], "etag": row["etag"]}  # somebody may have replaced it meanwhile
    return UpdateOne(same, {"$set": {"words": words}, "$unset": {"words_of_name": ""}})


def _as_past(row: Document, *, deleted: bool = False) -> Document:
    """A version as it stands in the history, under its etag."""
    kept = {key: row[key] for key in ("version", "at", "document")}
    owner, definition = _later(row)
    later = {"owner": owner, "definition": definition}
    return {"_id": row["etag"], "name": row["_id"], **kept, "deleted": deleted, **later}


def record(row: Document) -> Record:
    return Record(row["_id"], row["version"], row["etag"], decode(row["document"]), row["at"], False, *_later(row))


def past_record(row: Document) -> Record:
    document, deleted = decode(row["document"]), row["deleted"]
    return Record(row["name"], row["version"], row["_id"], document, row["at"], deleted, *_later(row))


def _later(row: Document) -> tuple[str, int]:
    """What an older release did not write: the owner, and the version that the definition dates from."""
    return row.get("owner", ""), row.get("definition", 0)

"""What a store holds, in memory: current tools, their history, and the outbox."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from typing import Any

from toolcrib.adapters.stores.changes import (
    check_after,
    check_expected,
    definition_after,
    kept_document,
    new_etag,
    owner_after,
)
from toolcrib.adapters.stores.words import WordIndex
from toolcrib.core.json import read_json
from toolcrib.core.query import ALL, Filter
from toolcrib.core.query.budget import found, looked_at
from toolcrib.core.ranking import Candidate, Lookup
from toolcrib.ports import Change, OutboxEvent, Record


@dataclass(frozen=True, slots=True)
class Version:
    """A record as it is kept: the document as text, which no caller can change, and parsed for the filter."""

    name: str
    version: int
    etag: str
    at: float
    text: str
    document: Mapping[str, Any]
    deleted: bool = False
    owner: str = ""
    definition: int = 0
    purge: bool = False
    """With this deletion everything goes that there was before, and it is not kept itself."""

    def record(self) -> Record:
        """For a caller: with a document of its own."""
        return self._with(read_json(self.text))

    def seen(self) -> Record:
        """For who only looks at it."""
        return self._with(self.document)

    def _with(self, document: Any) -> Record:
        state = self.at, self.deleted, self.owner, self.definition
        return Record(self.name, self.version, self.etag, document, *state)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a commit will write, checked but not yet written."""

    versions: tuple[Version, ...]
    entries: tuple[OutboxEvent, ...]


class Contents:
    """The state of a store. Not thread-safe: its owner holds a lock."""

    def __init__(self) -> None:
        self._current: dict[str, Version] = {}
        self._names: list[str] = []
        self._history: dict[str, list[Version]] = {}
        self._outbox: dict[int, OutboxEvent] = {}
        self.claims: dict[str, str] = {}
        self.last_sequence = 0
        self._identity = object()
        self._changes = 0

    def generation(self) -> object:
        """Equal values: the same tools."""
        return self._identity, self._changes

    def get(self, name: str) -> Version | None:
        return self._current.get(name)

    def history(self, name: str) -> list[Version]:
        """Newest first."""
        return self._history.get(name, [])[::-1]

    def last(self, name: str) -> Version | None:
        """The newest version, a deletion included."""
        versions = self._history.get(name)
        return versions[-1] if versions else None

    def current_after(self, name: str | None) -> list[Version]:
        """A list that no later change touches, in the order of names."""
        start = 0 if name is None else bisect_right(self._names, name)
        return [self._current[name] for name in self._names[start:]]

    def current(self) -> Iterable[Version]:
        """In the order of names."""
        return (self._current[name] for name in self._names)

    def outbox(self, limit: int | None = None) -> list[OutboxEvent]:
        return list(self._outbox.values())[:limit]

    def plan(self, changes: Sequence[Change], at: float) -> Plan:
        """Every change in order, each seeing those before it, or the error of the first that cannot be."""
        planned: dict[str, Version] = {}
        versions: list[Version] = []
        entries: list[OutboxEvent] = []
        for change in changes:
            past = planned.get(change.name) or self.last(change.name)
            check_expected(change, None if past is None or past.deleted else past.etag, past=past is not None)
            text, document = kept_document(change)
            number, gone = 1 if past is None else past.version + 1, change.document is None
            version = Version(
                name=change.name,
                version=number,
                etag=new_etag(),
                at=at,
                text=text,
                document=document,
                deleted=gone,
                owner=owner_after(change, "" if past is None else past.owner),
                purge=change.purge,
                definition=0 if gone else definition_after(document, number, None if past is None else past.seen()),
            )
            planned[change.name] = version
            versions.append(version)
            if change.event is not None:
                event = json.loads(json.dumps(change.event))
                entries.append(OutboxEvent(self.last_sequence + len(entries) + 1, change.name, event))
        return Plan(tuple(versions), tuple(entries))

    def put(self, plan: Plan) -> None:
        for version in plan.versions:
            self.add_version(version)
        for entry in plan.entries:
            self.add_entry(entry)

    def forget(self, name: str) -> None:
        """Every version of a name that is not among the current ones."""
        self._history.pop(name, None)

    def add_version(self, version: Version) -> None:
        self._changes += 1
        self._history.setdefault(version.name, []).append(version)
        known = version.name in self._current
        if version.deleted:
            if known:
                del self._current[version.name]
                del self._names[bisect_left(self._names, version.name)]
            if version.purge:
                self.forget(version.name)
            return
        self._current[version.name] = version
        if not known:
            insort(self._names, version.name)

    def claim(self, name: str, value: str, instead_of: str) -> bool:
        """Whether ``value`` is now kept under ``name``: ``instead_of`` was there."""
        if self.claims.get(name, "") != instead_of:
            return False
        self.claims[name] = value
        return True

    def add_entry(self, entry: OutboxEvent) -> None:
        self._outbox[entry.sequence] = entry
        self.last_sequence = max(self.last_sequence, entry.sequence)

    def acknowledge(self, sequence: int) -> bool:
        return self._outbox.pop(sequence, None) is not None

    def postpone(self, sequence: int, not_before: float, error: str) -> OutboxEvent | None:
        entry = self._outbox.get(sequence)
        if entry is None:
            return None
        later = replace(entry, attempts=entry.attempts + 1, not_before=not_before, last_error=error)
        self._outbox[sequence] = later
        return later


class ContentsReader(ABC):
    """The half of a store that answers from its contents."""

    remote = False

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Contents]:
        """What the store holds now; it does not change until the end of the block."""

    def get(self, name: str) -> Record | None:
        with self._reading() as contents:
            version = contents.get(name)
        return None if version is None else _found(version)

    def generation(self) -> object:
        """Equal values: nothing was written between the two calls, by anybody."""
        with self._reading() as contents:
            return contents.generation()

    def query(self, where: Filter, *, limit: int | None = None, after: str | None = None) -> list[Record]:
        check_after(after)
        with self._reading() as contents:
            versions = contents.current_after(after)
        return [_found(version) for version in islice(_matching(versions, where), limit)]

    def count(self, where: Filter) -> int:
        with self._reading() as contents:
            versions = contents.current_after(None)
        return sum(1 for _ in _matching(versions, where))

    def text_candidates(self, wanted: Sequence[Lookup], *, limit: int) -> list[Candidate]:
        return self._words.candidates(wanted, limit)

    @cached_property
    def _words(self) -> WordIndex:
        return WordIndex(self)

    def history(self, name: str) -> list[Record]:
        with self._reading() as contents:
            versions = contents.history(name)
        return [_found(version) for version in _matching(versions, ALL)]

    def outbox(self, *, limit: int = 100) -> list[OutboxEvent]:
        with self._reading() as contents:
            return contents.outbox(limit)

    def claimed(self, name: str) -> str:
        with self._reading() as contents:
            return contents.claims.get(name, "")


def _matching(versions: Iterable[Version], where: Filter) -> Iterator[Version]:
    for version in versions:
        looked_at()
        if where.matches(version.document):
            yield version


def _found(version: Version) -> Record:
    found(len(version.text))
    return version.record()

"""What becomes of code that no tool names: it goes to the trash, and out of the trash, each after a grace.

Several collectors may run at once, and uploads beside them. Each step leaves the code in some place:

- An upload takes a reference, puts the code, writes the record, and gives the reference up. The collector asks for
  references first and for records second, so it sees the one or the other, or it has asked before there was a
  reference; then it has also moved before, and the upload puts the code anew.
- What was moved is asked about again, and taken back if it is named meanwhile. A collector that dies in between leaves
  it in the trash, where it is found, and where it is asked about once more before it is removed.
- Each move has a place of its own in the trash, and only age empties it: of two collectors neither removes what the
  other is just about to rely on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from toolcrib.catalogue.code import (
    CODE,
    REFERENCES,
    TRASH,
    digest_in,
    digest_named,
    forget_withdrawn,
    take_back,
    to_trash,
    trashed_places,
)
from toolcrib.catalogue.finding import matching_records
from toolcrib.core.query import ALL, parse
from toolcrib.ports import Blobs, Record, Store

GRACE_SECONDS = 24 * 3600.0
"""How long code stays unnamed before it goes to the trash, how long it stays there, and how long a reference counts.

Longer than any upload takes and any two clocks differ.
"""


@dataclass(frozen=True, slots=True)
class Collected:
    """Digests that went to the trash, that came back because they are needed after all, and that are gone for good."""

    trashed: list[str]
    taken_back: list[str]
    removed: list[str]


def collect(
    blobs: Blobs, store: Store, *, older_than: float = GRACE_SECONDS, clock: Callable[[], float] = time.time
) -> Collected:
    """Take away the code that no tool names, in any version that can be restored, and that nobody refers to.

    ``older_than`` is the grace. An hour at least is needed if there may be other collectors.
    """
    now = clock()
    limit = now - older_than
    seen = _Listing.of(blobs)
    needs = _Needs(blobs, store, now - GRACE_SECONDS)
    trashed = needs.lacking({kept.digest for kept in seen.code if kept.at < limit})
    for digest in trashed:
        to_trash(blobs, digest)
    expired = [kept for kept in seen.trash if kept.at < limit]
    doubtful = trashed | {kept.digest for kept in expired}
    needed = doubtful - needs.lacking(doubtful)  # asked again, after the moves
    taken_back = [digest for digest in sorted(needed) if take_back(blobs, digest)]
    removed = {kept.digest for kept in expired} - needed
    forgotten = [kept for kept in seen.references if kept.at < needs.since]
    for kept in (*expired, *forgotten, *(kept for kept in seen.leftovers if kept.at < limit)):
        blobs.delete(kept.key)
    return Collected(sorted(trashed - needed), taken_back, sorted(removed))


def erase(blobs: Blobs, store: Store, digests: Iterable[str], *, clock: Callable[[], float] = time.time) -> list[str]:
    """Remove code at once and for good, but not what somebody needs, as :func:`collect` sees it; what is gone.

    Who looks for needs after the move, and removes only what was in the trash before that look, takes nothing away that
    an upload or another collector has begun to rely on.
    """
    needs = _Needs(blobs, store, clock() - GRACE_SECONDS)
    moved = needs.lacking(set(digests))
    for digest in moved:
        to_trash(blobs, digest)
    places = {digest: trashed_places(blobs, digest) for digest in moved}
    gone = needs.lacking(moved)
    for digest in moved - gone:
        take_back(blobs, digest)
    for digest in gone:
        for key in places[digest]:
            blobs.delete(key)
        forget_withdrawn(blobs, digest)
    return sorted(gone)


class _Kept(NamedTuple):
    key: str
    digest: str
    at: float


@dataclass(frozen=True, slots=True)
class _Listing:
    """What is there, by kind. Leftovers are half written blobs and the like."""

    code: list[_Kept] = field(default_factory=list)
    trash: list[_Kept] = field(default_factory=list)
    references: list[_Kept] = field(default_factory=list)
    leftovers: list[_Kept] = field(default_factory=list)

    @classmethod
    def of(cls, blobs: Blobs) -> _Listing:
        seen = cls()
        kinds = {CODE: seen.code, TRASH: seen.trash, REFERENCES: seen.references}
        for key, at in list(blobs.keys()):
            kinds.get(key.partition("/")[0], seen.leftovers).append(_Kept(key, digest_in(key), at))
        return seen


@dataclass(frozen=True, slots=True)
class _Needs:
    """Who needs code. A reference counts if it is younger than ``since``."""

    blobs: Blobs
    store: Store
    since: float

    def lacking(self, digests: set[str]) -> set[str]:
        """Those that nobody needs. References are asked for first: they go when the record is there."""
        for needed in (self._referred, self._named, self._named_once):
            if digests:  # each question is dearer than the one before
                digests = digests - set(needed())
        return digests

    def _referred(self) -> Iterator[str]:
        return (digest_in(key) for key, at in list(self.blobs.keys(REFERENCES)) if at >= self.since)

    def _named(self) -> Iterator[str]:
        return named_digests(self.store)

    def _named_once(self) -> Iterator[str]:
        records = matching_records(self.store, ALL)
        return _digests(version for record in records for version in self.store.history(record.name))


def named_digests(store: Store) -> Iterator[str]:
    """The code that the tools name as they are now."""
    return _digests(matching_records(store, parse({"binding.source_code_link": {"$ne": ""}})))


def _digests(records: Iterable[Record]) -> Iterator[str]:
    return filter(None, (digest_named(record.document) for record in records))

"""The half of the catalogue that only reads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from toolcrib.catalogue.code import naming
from toolcrib.catalogue.entries import Entry, Hit, Page
from toolcrib.catalogue.finding import PAGE, Visible, Where, everybody, matching_entries, parsed, search_entries
from toolcrib.catalogue.stacking import compatible_filter
from toolcrib.core import stacking
from toolcrib.core.errors import DeniedError, InvalidQueryError, ToolNotFoundError, VersionNotFoundError
from toolcrib.core.query import ALL
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Record, Store


class CatalogueReader:
    """The tools in a store, to look at. Every answer has its credentials masked.

    ``check_read`` raises DeniedError for a tool that whoever asks may not see: asked for by name it is refused, in
    lists and searches it is left out.
    """

    def __init__(self, store: Store, check_read: Callable[[Record], None] | None = None) -> None:
        self.store = store
        self._check_read = check_read
        self._visible: Visible = everybody if check_read is None else self._may_see

    @property
    def remote(self) -> bool:
        """Whether a read leaves the process, so that async code should ask in a thread."""
        return self.store.remote

    def get(self, name: str) -> ToolSpec:
        """The tool called ``name``, or ToolNotFoundError."""
        return self.entry(name).spec

    def entry(self, name: str) -> Entry:
        """The tool with its etag, its version number and its document, or ToolNotFoundError."""
        return Entry.of(self._record(name))

    def query(
        self,
        filter: Where = ALL,
        *,
        limit: int | None = 1000,
        cursor: str | None = None,
    ) -> Page:
        """The tools that match, ordered by name; ``cursor`` is the ``next_cursor`` of the page before."""
        where = parsed(filter)
        if limit is not None and limit < 1:
            raise InvalidQueryError(f"a page of {limit} tools is none; ask for at least 1")
        if limit is None:
            return Page(list(matching_entries(self.store, where, self._visible, after=cursor)))
        matching = matching_entries(self.store, where, self._visible, after=cursor, page=limit + 1)
        entries = list(islice(matching, limit + 1))
        return Page(entries[:limit], entries[limit - 1].name if len(entries) > limit else None)

    def count(self, filter: Where = ALL) -> int:
        if self._check_read is None:
            return self.store.count(parsed(filter))
        return sum(1 for _ in self.entries(filter))

    def search(self, text: str, limit: int = 10, filter: Where | None = None) -> list[Hit]:
        """The tools that fit the words best, best first; with ``filter``, only among those that match it."""
        where = ALL if filter is None else parsed(filter)
        return search_entries(self.store, text, limit, where, self._visible)

    def history(self, name: str) -> list[Entry]:
        """Every version, newest first, deletions included; ToolNotFoundError if the name was never used."""
        return [Entry.of(record) for record in self._versions(name)]

    def version(self, name: str, number: int) -> Entry:
        """One version of the history; ToolNotFoundError if the name was never used, VersionNotFoundError below it."""
        return Entry.of(self._version(name, number))

    def __contains__(self, name: object) -> bool:
        record = self.store.get(name) if isinstance(name, str) else None
        return record is not None and self._visible(record)

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[ToolSpec]:
        return (entry.spec for entry in self.entries())

    def entries(self, filter: Where = ALL, *, after: str | None = None, page: int = PAGE) -> Iterator[Entry]:
        """Everything that matches, ordered by name, behind ``after``, read page by page as it is asked for."""
        return matching_entries(self.store, parsed(filter), self._visible, after=after, page=page)

    def has_bundle(self, digest: str) -> bool:
        """Whether one of the tools has the code of this digest."""
        return any(True for _ in self.entries(naming(digest)))

    def check_compat(self, names: Iterable[str], *, strict: bool = False) -> stacking.StackReport:
        """Whether the tools stack, every pair judged; ToolNotFoundError names one that is missing."""
        return stacking.check([self.get(name) for name in names], strict=strict)

    def specs_of(self, names: Iterable[str]) -> dict[str, ToolSpec]:
        """Those of the named tools that are kept."""
        return {entry.name: entry.spec for entry in self.entries({"name": {"$in": list(names)}})}

    def compatible_with(self, name: str, target_type: str | None = None, *, strict: bool = False) -> list[ToolSpec]:
        """The tools that stack with ``name``, ordered by name, of ``target_type`` if that is given."""
        return [entry.spec for entry in self.compatible_entries(name, target_type, strict=strict)]

    def compatible_entries(self, name: str, target_type: str | None = None, *, strict: bool = False) -> Iterator[Entry]:
        """As :meth:`compatible_with`, page by page and without making the specs."""
        return self.entries(compatible_filter(self.get(name), target_type, strict=strict))

    def _record(self, name: str) -> Record:
        record = self.store.get(name)
        if record is None:
            raise ToolNotFoundError(name)
        self._check(record)
        return record

    def _versions(self, name: str) -> list[Record]:
        records = self.store.history(name)
        if not records:
            raise ToolNotFoundError(name)
        self._check(next(record for record in records if not record.deleted))
        return records

    def _version(self, name: str, number: int) -> Record:
        known = {record.version: record for record in self._versions(name) if not record.deleted}
        if number not in known:
            raise VersionNotFoundError(name, number, list(known))
        self._check(known[number])
        return known[number]

    def _check(self, record: Record) -> None:
        if self._check_read is not None:
            self._check_read(record)

    def _may_see(self, record: Record) -> bool:
        try:
            self._check(record)
        except DeniedError:
            return False
        return True

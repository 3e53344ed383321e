"""The half of the catalogue that only reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from toolcrib.catalogue.entries import Entry, Hit, Page
from toolcrib.catalogue.finding import Where, matching_entries, parsed, search_entries
from toolcrib.catalogue.stacking import partners_of
from toolcrib.core import stacking
from toolcrib.core.errors import InvalidQueryError, MissingConfigError, ToolNotFoundError
from toolcrib.core.query import ALL
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Index, Record, Store


class CatalogueReader:
    """The tools in a store, to look at. Every answer has its credentials masked."""

    def __init__(self, store: Store, index: Index | None = None) -> None:
        self.store = store
        self.index = index

    @property
    def remote(self) -> bool:
        """Whether a read leaves the process, so that async code should ask in a thread."""
        return self.store.remote or (self.index is not None and self.index.remote)

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
            return Page([Entry.of(record) for record in self.store.query(where, after=cursor)])
        records = self.store.query(where, limit=limit + 1, after=cursor)
        page = [Entry.of(record) for record in records[:limit]]
        return Page(page, page[-1].name if page and len(records) > limit else None)

    def count(self, filter: Where = ALL) -> int:
        return self.store.count(parsed(filter))

    def search(self, text: str, limit: int = 10, filter: Where | None = None) -> list[Hit]:
        """The tools that fit the words best, best first; with ``filter``, only among those that match it."""
        if self.index is None:
            raise MissingConfigError("this catalogue was opened without an index, so it cannot be searched")
        return search_entries(self.index, self.store, text, limit, ALL if filter is None else parsed(filter))

    def history(self, name: str) -> list[Entry]:
        """Every version, newest first, deletions included; ToolNotFoundError where the name was never used."""
        records = self.store.history(name)
        if not records:
            raise ToolNotFoundError(name)
        return [Entry.of(record) for record in records]

    def version(self, name: str, number: int) -> Entry:
        """One version of the history, or ToolNotFoundError."""
        return Entry.of(self._version(name, number))

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.store.get(name) is not None

    def __len__(self) -> int:
        return self.count()

    def __iter__(self) -> Iterator[ToolSpec]:
        return (entry.spec for entry in self.entries())

    def entries(self, filter: Where = ALL) -> Iterator[Entry]:
        """Everything that matches, ordered by name, read page by page."""
        return matching_entries(self.store, parsed(filter))

    def check_compat(self, names: Iterable[str], *, strict: bool = False) -> stacking.Report:
        """Whether the tools stack, every pair judged; ToolNotFoundError names one that is missing."""
        return stacking.check([self.get(name) for name in names], strict=strict)

    def compatible_with(self, name: str, target_type: str | None = None, *, strict: bool = False) -> list[ToolSpec]:
        """The tools that stack with ``name``, ordered by name, of ``target_type`` where that is given."""
        return [entry.spec for entry in self.partners(name, target_type, strict=strict)]

    def partners(self, name: str, target_type: str | None = None, *, strict: bool = False) -> Iterator[Entry]:
        """As :meth:`compatible_with`, page by page and without making the specs."""
        return self.entries(partners_of(self.get(name), target_type, strict=strict))

    def _record(self, name: str) -> Record:
        record = self.store.get(name)
        if record is None:
            raise ToolNotFoundError(name)
        return record

    def _version(self, name: str, number: int) -> Record:
        found = next((record for record in self.store.history(name) if record.version == number), None)
        if found is None or found.deleted:
            raise ToolNotFoundError(f"{name}@{number}")
        return found

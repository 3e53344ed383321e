"""What the catalogue hands out: tools as they are kept, in pages and as search results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, overload

from toolcrib.catalogue.credentials import masked
from toolcrib.core.spec import ToolSpec, definition_digest_of
from toolcrib.ports import Record


class Told(NamedTuple):
    """What a write has to say, as its :class:`Entry` hands it on."""

    broke: tuple[str, ...] = ()
    emptied: tuple[str, ...] = ()
    unserved: tuple[str, ...] = ()


NOTHING_TOLD = Told()


@dataclass(frozen=True)
class Entry:
    """One version of one tool. ``document`` is its spec as JSON values, the credentials masked.

    ``spec`` is made when it is first asked for: who only passes the document on does not pay for it.
    """

    name: str
    version: int
    etag: str
    at: float
    document: dict[str, Any] = field(repr=False)
    deleted: bool = False
    broke: tuple[str, ...] = ()
    """After a forced write: what it broke for callers."""
    emptied: tuple[str, ...] = ()
    """After a write: the credentials that the tool had before and has no more."""
    owner: str = ""
    """Who may change it beside administrators; empty if it is the operator's."""
    definition_version: int = 0
    """The version that the definition dates from: later ones changed how the tool runs. 0 for a deletion."""
    unserved: tuple[str, ...] = ()
    """After a write: the policy rules that the tool names and that nobody serves."""

    @cached_property
    def definition_digest(self) -> str:
        """SHA-256 of the definition, which is all but how and by which rules the tool runs; empty for a deletion."""
        return definition_digest_of(self.document)

    @cached_property
    def spec(self) -> ToolSpec:
        return ToolSpec.parse(self.document)

    @classmethod
    def of(cls, record: Record, told: Told = NOTHING_TOLD) -> Entry:
        document = masked(record.document) if record.document else {}
        definition = 0 if record.deleted else record.definition or record.version
        kept = record.name, record.version, record.etag, record.at, document, record.deleted
        return cls(*kept, told.broke, told.emptied, record.owner, definition, told.unserved)


class Page(Sequence[ToolSpec]):
    """Some of the tools that match, as a sequence of specs. ``next_cursor`` leads on, or is None at the end."""

    __slots__ = ("entries", "next_cursor")

    def __init__(self, entries: Sequence[Entry], next_cursor: str | None = None) -> None:
        self.entries = tuple(entries)
        self.next_cursor = next_cursor

    @overload
    def __getitem__(self, index: int) -> ToolSpec: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[ToolSpec]: ...

    def __getitem__(self, index: int | slice) -> ToolSpec | Sequence[ToolSpec]:
        if isinstance(index, slice):
            return [entry.spec for entry in self.entries[index]]
        return self.entries[index].spec

    def __len__(self) -> int:
        return len(self.entries)

    def __repr__(self) -> str:
        more = ", and more" if self.next_cursor is not None else ""
        return f"<Page of {len(self.entries)} tools{more}>"


@dataclass(frozen=True)
class Hit:
    """A search result: how well it fits, from 0 to 1, and which words were found where."""

    entry: Entry
    score: float
    reason: str

    @property
    def spec(self) -> ToolSpec:
        return self.entry.spec

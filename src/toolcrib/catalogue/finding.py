"""Reading many: page by page through a filter, and best first in a search."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from toolcrib.catalogue.entries import Entry, Hit
from toolcrib.core.query import ALL, And, Filter, parse
from toolcrib.core.query.budget import looked_at
from toolcrib.core.ranking import ENOUGH, Lookup, Ranked, Search, index_words
from toolcrib.ports import Record, Store

Where = Filter | Mapping[str, Any]
"""A filter, or the plain data that says one."""

Visible = Callable[[Record], bool]
"""Whether whoever asks may see a record."""

PAGE = 1000
_FILTERED = 200


def parsed(where: Where) -> Filter:
    return where if isinstance(where, Filter) else parse(where)


def everybody(_record: Record) -> bool:
    """Everything may be seen."""
    return True


def matching_entries(
    store: Store, where: Filter, visible: Visible = everybody, *, after: str | None = None, page: int = PAGE
) -> Iterator[Entry]:
    return map(Entry.of, filter(visible, matching_records(store, where, after=after, page=page)))


def matching_records(store: Store, where: Filter, *, after: str | None = None, page: int = PAGE) -> Iterator[Record]:
    """All that the filter lets through, by name, read page by page."""
    while True:
        records = store.query(where, limit=page, after=after)
        yield from records
        if len(records) < page:
            return
        after = records[-1].name


def search_entries(store: Store, text: str, limit: int, where: Filter, visible: Visible = everybody) -> list[Hit]:
    """The best matches that the filter lets through.

    They are exactly the best while fewer than ``ENOUGH`` tools hold each word. If more do, those that hold it most
    strongly are looked at, and more of them while the filter leaves too few.
    """
    search = Search.of(text)
    if limit <= 0 or not search.terms:
        return []
    page = limit if where == ALL and visible is everybody else max(limit, _FILTERED)
    most = max(limit, ENOUGH)
    while True:
        ranked, complete = _rank(store, search, text, most)
        fitting = ((record, score) for record, score in _records(store, ranked, where, page) if visible(record))
        hits = [_hit(search, record, score) for record, score in islice(fitting, limit)]
        if complete or len(hits) == limit:
            return hits
        most *= 4


def _hit(search: Search, record: Record, score: float) -> Hit:
    looked_at()  # once more: all its text is read to say why it was found
    return Hit(Entry.of(record), score, search.reason(record.document))


def _rank(store: Store, search: Search, text: str, most: int) -> tuple[list[Ranked], bool]:
    """The candidates best first, and whether they are all that hold any of the words."""
    holding = [_holding(store, search.lookup(term), most) for term in search.terms]
    counts = [len(found) for found in holding]
    complete = max(counts) < most
    if min(counts) >= most:  # otherwise the tools that hold every word are among those that hold the rarest
        holding.append(dict(store.text_candidates([search.lookup(term) for term in search.terms], limit=most)))
    if not complete and (named := store.get(text.strip())):
        holding.append({named.name: index_words(named.document)})
    held: dict[str, list[float]] = {}
    for name, words in ChainMap(*holding).items():
        looked_at()
        held[name] = search.holds(words)
    return search.rank(held, counts), complete


def _holding(store: Store, lookup: Lookup, most: int) -> dict[str, str]:
    """The tools that a lookup finds, with their words: all of them, or the strongest if there are ``most`` or more."""
    found = dict(store.text_candidates([lookup], limit=most))
    if len(found) < most:
        return found
    strongest: dict[str, str] = {}
    for word in lookup.words:
        strongest.update(store.text_candidates([Lookup((word,), lookup.prefix)], limit=most))
        if len(strongest) >= most:
            break
    return strongest


def _records(store: Store, ranked: list[Ranked], where: Filter, page: int) -> Iterator[tuple[Record, float]]:
    """Those that the filter lets through, still best first, read page by page."""
    for start in range(0, len(ranked), page):
        some = ranked[start : start + page]
        records = {record.name: record for record in _among(store, [name for name, _ in some], where)}
        yield from ((records[name], score) for name, score in some if name in records)


def _among(store: Store, names: list[str], where: Filter) -> Iterable[Record]:
    if store.remote:
        return store.query(And((parse({"name": {"$in": names}}), where)))
    return (record for record in filter(None, map(store.get, names)) if where.matches(record.document))

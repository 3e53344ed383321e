"""Reading many: page by page through a filter, and best first through the index."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.catalogue.entries import Entry, Hit
from toolcrib.core.query import ALL, And, Filter, parse
from toolcrib.ports import Index, Store

Where = Filter | Mapping[str, Any]
"""A filter, or the plain data that says one."""

_PAGE = 1000
_FILTERED_MATCHES = 200


def parsed(where: Where) -> Filter:
    return where if isinstance(where, Filter) else parse(where)


def matching_entries(store: Store, where: Filter) -> Iterator[Entry]:
    after = None
    while True:
        records = store.query(where, limit=_PAGE, after=after)
        yield from map(Entry.of, records)
        if len(records) < _PAGE:
            return
        after = records[-1].name


def search_entries(index: Index, store: Store, text: str, limit: int, where: Filter) -> list[Hit]:
    """The best matches that the store still has and the filter lets through."""
    if limit <= 0:
        return []
    wanted = limit if where == ALL else max(limit, _FILTERED_MATCHES)
    while True:
        matches = index.search(text, limit=wanted)
        kept = {entry.name: entry for entry in _among(store, [match.name for match in matches], where)}
        hits = [Hit(kept[match.name], match.score, match.reason) for match in matches if match.name in kept]
        if len(hits) >= limit or len(matches) < wanted:
            return hits[:limit]
        wanted *= 4


def _among(store: Store, names: list[str], where: Filter) -> Iterator[Entry]:
    if not store.remote:
        records = filter(None, map(store.get, names))
        yield from (Entry.of(record) for record in records if where.matches(record.document))
        return
    for start in range(0, len(names), _PAGE):
        by_name = parse({"name": {"$in": names[start : start + _PAGE]}})
        yield from map(Entry.of, store.query(And((by_name, where))))

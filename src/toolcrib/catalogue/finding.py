"""Reading many: page by page through a filter, and best first through the index."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from toolcrib.catalogue.entries import Entry, Hit
from toolcrib.core.query import ALL, And, Filter, parse
from toolcrib.ports import Index, Record, Store

Where = Filter | Mapping[str, Any]
"""A filter, or the plain data that says one."""

Visible = Callable[[Record], bool]
"""Whether whoever asks may see a record."""

_PAGE = 1000
_FILTERED_MATCHES = 200


def parsed(where: Where) -> Filter:
    return where if isinstance(where, Filter) else parse(where)


def everybody(_record: Record) -> bool:
    """Everything may be seen."""
    return True


def matching_entries(
    store: Store, where: Filter, visible: Visible = everybody, *, after: str | None = None, page: int = _PAGE
) -> Iterator[Entry]:
    while True:
        records = store.query(where, limit=page, after=after)
        yield from map(Entry.of, filter(visible, records))
        if len(records) < page:
            return
        after = records[-1].name


def search_entries(
    index: Index, store: Store, text: str, limit: int, where: Filter, visible: Visible = everybody
) -> list[Hit]:
    """The best matches that the store still has and the filter lets through."""
    if limit <= 0:
        return []
    wanted = limit if where == ALL and visible is everybody else max(limit, _FILTERED_MATCHES)
    while True:
        matches = index.search(text, limit=wanted)
        found = filter(visible, _among(store, [match.name for match in matches], where))
        kept = {record.name: Entry.of(record) for record in found}
        hits = [Hit(kept[match.name], match.score, match.reason) for match in matches if match.name in kept]
        if len(hits) >= limit or len(matches) < wanted:
            return hits[:limit]
        wanted *= 4


def _among(store: Store, names: list[str], where: Filter) -> Iterator[Record]:
    if not store.remote:
        yield from (record for record in filter(None, map(store.get, names)) if where.matches(record.document))
        return
    for start in range(0, len(names), _PAGE):
        by_name = parse({"name": {"$in": names[start : start + _PAGE]}})
        yield from store.query(And((by_name, where)))

"""The words of a store that keeps no index of them itself: in memory, brought up to date before every question.

If the store can say that nothing was written (``generation``), that costs nothing; otherwise the etags are compared.
So two programs on one file find each other's tools.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from heapq import nsmallest
from typing import TYPE_CHECKING

from toolcrib.core.query import ALL
from toolcrib.core.query.budget import unlimited
from toolcrib.core.ranking import Candidate, Lookup, index_words
from toolcrib.ports import Record

if TYPE_CHECKING:
    from toolcrib.adapters.stores.contents import ContentsReader


class WordIndex:
    """Follows ``store``. Safe to use from several threads."""

    def __init__(self, store: ContentsReader) -> None:
        self._store = store
        self._words: dict[str, str] = {}
        self._names: dict[str, set[str]] = {}
        """Index word -> the tools that have it."""
        self._etags: dict[str, str] = {}
        self._generation: object = None
        self._lock = threading.Lock()

    def candidates(self, wanted: Sequence[Lookup], limit: int) -> list[Candidate]:
        """As :meth:`toolcrib.ports.Store.text_candidates`."""
        with self._lock:
            with unlimited():
                self._catch_up()
            names = set.intersection(*map(self._having, wanted)) if wanted else set()
            return [Candidate(name, self._words[name]) for name in nsmallest(limit, names)]

    def _having(self, lookup: Lookup) -> set[str]:
        words = [word for word in self._names if word.startswith(lookup.words)] if lookup.prefix else lookup.words
        return set().union(*(self._names.get(word, ()) for word in words))

    def _catch_up(self) -> None:
        generation = self._store.generation()
        if generation is not None and generation == self._generation:
            return
        records = self._store.query(ALL)
        etags = {record.name: record.etag for record in records}
        for name in [name for name, etag in self._etags.items() if etags.get(name) != etag]:
            self._drop(name)
        for record in records:
            if record.name not in self._words:
                self._add(record)
        self._etags, self._generation = etags, generation

    def _add(self, record: Record) -> None:
        self._words[record.name] = index_words(record.document)
        for word in self._words[record.name].split():
            self._names.setdefault(word, set()).add(record.name)

    def _drop(self, name: str) -> None:
        for word in self._words.pop(name).split():
            names = self._names[word]
            names.remove(name)
            if not names:
                del self._names[word]

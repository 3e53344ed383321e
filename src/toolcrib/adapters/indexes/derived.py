"""A memory index that follows a store: before every search it catches up with what anybody wrote.

Where the store can say that nothing was written (``generation``), catching up costs nothing; otherwise the etags are
compared. So two programs on one file find each other's tools.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.adapters.indexes.memory import MemoryIndex
from toolcrib.core.query import ALL
from toolcrib.ports import Match, Store


class DerivedIndex:
    """Follows ``store``; ``add`` and ``remove`` are not needed, because the store knows."""

    def __init__(self, store: Store) -> None:
        self.remote = store.remote
        self._store = store
        self._index = MemoryIndex()
        self._etags: dict[str, str] = {}
        self._generation: object = None
        self._lock = threading.Lock()

    def add(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Nothing to do: the next search catches up."""

    def remove(self, names: Iterable[str]) -> None:
        """Nothing to do: the next search catches up."""

    def search(self, text: str, *, limit: int = 10) -> list[Match]:
        self._catch_up()
        return self._index.search(text, limit=limit)

    def _catch_up(self) -> None:
        with self._lock:
            generation = self._store.generation()
            if generation is not None and generation == self._generation:
                return
            records = self._store.query(ALL)
            self._index.add(record.document for record in records if self._etags.get(record.name) != record.etag)
            etags = {record.name: record.etag for record in records}
            self._index.remove(self._etags.keys() - etags.keys())
            self._etags, self._generation = etags, generation

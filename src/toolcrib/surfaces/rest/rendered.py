"""Answers to ``GET /tools/{id}``, rendered once and never stale.

A rendered answer is kept with the record's etag. It is served again only after the store has said that the etag is
still the one, so several processes on one database never show what is no longer there. A store that can say more
cheaply that *nothing* has changed since (``generation``) saves even that look-up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from toolcrib.catalogue import Catalogue, Entry

_OVERHEAD_BYTES = 600


@runtime_checkable
class Generations(Protocol):
    def generation(self) -> object:
        """Equal values: nothing was written between the two calls, by anybody."""
        ...


@dataclass(slots=True)
class Rendered:
    """The messages of a whole answer."""

    etag: bytes
    start: dict[str, Any]
    body: dict[str, Any]
    generation: object
    size: int


class RenderedEntries:
    """Keeps at most ``most_bytes`` of rendered answers; the oldest go first."""

    def __init__(self, catalogue: Catalogue, render: Callable[[Entry], bytes], most_bytes: int) -> None:
        self._catalogue = catalogue
        self._render = render
        self._most = most_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: dict[str, Rendered] = {}
        store = catalogue.store
        self._generation = store.generation if isinstance(store, Generations) else None

    def get(self, name: str) -> Rendered:
        """The answer for the tool as it is now, or ToolNotFoundError."""
        kept = self._kept.get(name)
        generation = self._generation() if self._generation is not None else None
        if kept is not None and generation is not None and kept.generation == generation:
            return kept
        entry = self._catalogue.entry(name)
        etag = b'"%b"' % entry.etag.encode()
        if kept is not None and kept.etag == etag:
            kept.generation = generation
            return kept
        return self._keep(name, self._rendered(entry, etag, generation))

    def _rendered(self, entry: Entry, etag: bytes, generation: object) -> Rendered:
        body = self._render(entry)
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"etag", etag),
            (b"cache-control", b"no-cache"),
            (b"x-content-type-options", b"nosniff"),
        ]
        start = {"type": "http.response.start", "status": 200, "headers": headers}
        return Rendered(etag, start, {"type": "http.response.body", "body": body}, generation, len(body))

    def _keep(self, name: str, rendered: Rendered) -> Rendered:
        with self._lock:
            old = self._kept.pop(name, None)
            if old is not None:
                self._bytes -= old.size + _OVERHEAD_BYTES
            self._kept[name] = rendered
            self._bytes += rendered.size + _OVERHEAD_BYTES
            while self._bytes > self._most and self._kept:
                oldest = next(iter(self._kept))
                self._bytes -= self._kept.pop(oldest).size + _OVERHEAD_BYTES
        return rendered

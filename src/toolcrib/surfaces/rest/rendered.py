"""Answers to ``GET /tools/{id}``, rendered once and never stale.

A rendered answer is kept with the record's etag. It is served again only after the store has said that the etag is
still the one, so several processes on one database never show what is no longer there. A store that can say more
cheaply that *nothing* has changed since (``generation``) saves even that look-up.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from toolcrib.catalogue import Catalogue, Entry

_OVERHEAD_BYTES = 400


Rendered = tuple[bytes, bytes, bytes, object]
"""Body, its length, ETag, and the generation at which it was known to be right.

A plain tuple of plain values: the garbage collector stops looking at those, and there may be a hundred thousand.
"""


class RenderedEntries:
    """Keeps at most ``most_bytes`` of rendered answers; the oldest go first."""

    def __init__(self, catalogue: Catalogue, render: Callable[[Entry], bytes], most_bytes: int) -> None:
        self._catalogue = catalogue
        self._render = render
        self._most = most_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: dict[str, Rendered] = {}
        self._generation = catalogue.store.generation

    def get(self, name: str) -> Rendered:
        """The answer for the tool as it is now, or ToolNotFoundError."""
        kept = self._kept.get(name)
        generation = self._generation()
        if kept is not None and generation is not None and kept[3] == generation:
            return kept
        entry = self._catalogue.entry(name)
        etag = b'"%b"' % entry.etag.encode()
        body = kept[0] if kept is not None and kept[2] == etag else self._render(entry)
        rendered = (body, str(len(body)).encode(), etag, generation)
        self._keep(name, rendered)
        return rendered

    def _keep(self, name: str, rendered: Rendered) -> None:
        with self._lock:
            old = self._kept.pop(name, None)
            if old is not None:
                self._bytes -= len(old[0]) + _OVERHEAD_BYTES
            self._kept[name] = rendered
            self._bytes += len(rendered[0]) + _OVERHEAD_BYTES
            while self._bytes > self._most and self._kept:
                oldest = next(iter(self._kept))
                self._bytes -= len(self._kept.pop(oldest)[0]) + _OVERHEAD_BYTES


def headers_of(rendered: Rendered) -> list[tuple[bytes, bytes]]:
    return [
        (b"content-type", b"application/json"),
        (b"content-length", rendered[1]),
        (b"etag", rendered[2]),
        (b"cache-control", b"no-cache"),
        (b"x-content-type-options", b"nosniff"),
    ]

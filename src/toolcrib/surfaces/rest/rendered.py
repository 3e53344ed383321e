"""Answers to ``GET /tools/{id}``, rendered once and never stale.

A rendered answer is kept with the record's etag. It is served again only after the store has said that the etag is
still the one, so several processes on one database never show what is no longer there. A store that can say more
cheaply that *nothing* has changed since (``generation``) saves even that look-up, unless a policy decides on reads:
then the record is read and the policy asked each time, and only the rendering is saved.
"""

from __future__ import annotations

import asyncio
import threading

from starlette.responses import Response

from toolcrib.calling.blocking import READS, in_thread
from toolcrib.catalogue import Catalogue
from toolcrib.catalogue.reading import CatalogueReader
from toolcrib.surfaces.http.entries import definition_headers, shown
from toolcrib.surfaces.http.problems import json_bytes

_OVERHEAD_BYTES = 400
_LONG_BYTES = 64 * 1024
"""To read and render as much takes longer than to go to a thread for it."""
MOST_BYTES = 256 * 1024 * 1024

Rendered = tuple[bytes, bytes, bytes, object, tuple[tuple[bytes, bytes], ...]]
"""Body, its length, ETag, the generation at which it was known to be right, and the headers of the definition.

A plain tuple of plain values: the garbage collector stops looking at those, and there may be a hundred thousand.
"""


class RenderedEntries:
    """Keeps at most ``most_bytes`` of rendered answers; the oldest go first."""

    def __init__(self, catalogue: Catalogue, most_bytes: int = MOST_BYTES, *, public_url: str = "") -> None:
        self._catalogue = catalogue
        self._public_url = public_url
        self._most = most_bytes
        self._bytes = 0
        self._lock = threading.Lock()
        self._kept: dict[str, Rendered] = {}
        self._turn: object | None = None

    @property
    def kept_bytes(self) -> int:
        return self._bytes

    def get(self, seen: CatalogueReader, name: str) -> Rendered:
        """The answer for the tool as it is now to who sees the catalogue so; ToolNotFoundError, DeniedError."""
        generation = self._generation()
        return self._known(seen, name, generation) or self._made(seen, name, generation)

    async def answer(self, seen: CatalogueReader, name: str) -> Rendered:
        """As :meth:`get`. What leaves the process is done in a thread, and what is known to be long."""
        if seen.remote:
            return await in_thread(READS, self.get, seen, name)
        generation = self._generation()
        known = self._known(seen, name, generation)
        if known is None and name in self._kept and len(self._kept[name][0]) > _LONG_BYTES:
            return await in_thread(READS, self._made, seen, name, generation)
        return known or self._made(seen, name, generation)

    def _known(self, seen: CatalogueReader, name: str, generation: object | None) -> Rendered | None:
        """What is kept, if nothing has changed since and there is nobody to be asked."""
        kept = self._kept.get(name)
        fresh = kept is not None and generation is not None and kept[3] == generation and seen is self._catalogue
        return kept if fresh else None

    def _made(self, seen: CatalogueReader, name: str, generation: object | None) -> Rendered:
        kept = self._kept.get(name)
        entry = seen.entry(name)
        etag = b'"%b"' % entry.etag.encode()
        if kept is not None and kept[2] == etag:
            body, definition = kept[0], kept[4]
        else:
            body = json_bytes(shown(entry.document, self._public_url))
            definition = tuple((k.encode(), v.encode()) for k, v in definition_headers(entry).items())
        rendered = (body, str(len(body)).encode(), etag, generation, definition)
        self._keep(name, rendered)
        return rendered

    def _generation(self) -> object | None:
        """The store's generation, asked once in a turn of the event loop.

        Whoever is served in this turn had asked before it began, so what the store says during it is new enough.
        """
        if self._catalogue.remote:
            return self._catalogue.store.generation()
        if self._turn is None:
            self._turn = self._catalogue.store.generation()
            asyncio.get_running_loop().call_soon(self._end_turn)
        return self._turn

    def _end_turn(self) -> None:
        self._turn = None

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


class RenderedAnswer(Response):
    """A rendered answer as it is, with nothing encoded or copied again."""

    def __init__(self, rendered: Rendered) -> None:
        self.status_code = 200
        self.background = None
        self.body, length, etag, _, definition = rendered
        self.raw_headers = [
            (b"content-type", b"application/json"),
            (b"content-length", length),
            (b"etag", etag),
            (b"cache-control", b"no-cache"),
            *definition,
        ]

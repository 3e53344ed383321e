"""What flows between bricks: a Request is fetched into a Page, a Page is read into Records, a Record is Stored."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urldefrag, urljoin

_META_CHARSET = re.compile(rb"""<meta[^>]{0,200}charset=["']?\s*([A-Za-z0-9_:.\-]+)""", re.IGNORECASE)
_HEADER_CHARSET = re.compile(r"charset=[\"']?([A-Za-z0-9_:.\-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Item:
    """The base of everything that flows; a brick may bring item types of its own."""

    @property
    def key(self) -> str:
        """Names the item across runs: the same work has the same key."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class Request(Item):
    """What to fetch. ``depth`` counts the links followed from a start address, ``proxy`` is filled in by a brick."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    depth: int = 0
    proxy: str = ""
    note: str = ""
    """What a brick wants to find again when the page of this request comes by; part of the key."""

    @property
    def key(self) -> str:
        return _digest(self.method, urldefrag(self.url).url, self.body.hex(), self.note)

    def follow(self, address: str, base: str = "", **changes: Any) -> Request:
        """The request for a link found on this request's page; a relative address is read against ``base``."""
        url = urldefrag(urljoin(base or self.url, address)).url
        return Request(url, headers=self.headers, depth=self.depth + 1, **changes)

    def through(self, proxy: str) -> Request:
        return replace(self, proxy=proxy)


@dataclass(frozen=True, slots=True)
class Page(Item):
    """What came back, whatever the status. ``url`` is where it came from in the end, after redirects."""

    request: Request
    url: str
    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    """Header names are in lower case."""
    fetched_by: str = ""

    @property
    def key(self) -> str:
        return self.request.key

    @property
    def text(self) -> str:
        """The body decoded by its byte order mark, its header or its own declaration, else as UTF-8."""
        if self.body.startswith(b"\xef\xbb\xbf"):
            return self.body[3:].decode("utf-8", "replace")
        declared = _HEADER_CHARSET.search(self.headers.get("content-type", ""))
        found = _META_CHARSET.search(self.body[:2048])
        encoding = declared.group(1) if declared else found.group(1).decode("ascii") if found else "utf-8"
        try:
            return self.body.decode(encoding, "replace")
        except LookupError:
            return self.body.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Record(Item):
    """One row read from a page: the ``position``-th of the request ``source``."""

    data: Mapping[str, Any]
    source: str = ""
    url: str = ""
    position: int = 0

    @property
    def key(self) -> str:
        return _digest(self.source or self.url, str(self.position))


@dataclass(frozen=True, slots=True)
class Stored(Item):
    """A record that is on disk. ``new`` is false if it was there before."""

    record_key: str
    where: str
    new: bool = True

    @property
    def key(self) -> str:
        return self.record_key


def _digest(*parts: str) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:32]

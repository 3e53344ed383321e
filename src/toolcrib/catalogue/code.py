"""The code of bundles among the blobs: where it is, and that somebody is about to need it.

    sha256/ab/<digest>         the code
    references/<digest>.<id>   somebody is about to write a record that names it
    trash/ab/<digest>.<id>     code that nothing named; it is found there as well
    withdrawn/<digest>         the last tool with that code was deleted

Nobody takes code away but :mod:`toolcrib.catalogue.collecting`, and who is about to name it takes a reference first.
"""

from __future__ import annotations

import io
import logging
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from toolcrib.core.errors import ToolcribError, UnavailableError
from toolcrib.formats.bundle import blob_key, bundle_digest
from toolcrib.ports import Blobs

CODE, REFERENCES, TRASH, _WITHDRAWN = "sha256", "references", "trash", "withdrawn"

_log = logging.getLogger(__name__)


def naming(digest: str) -> Mapping[str, Any]:
    """A filter: the tools that have the code of that digest, under whatever address of the service."""
    return {"binding.source_code_link": {"$regex": rf"/bundles/{digest}/tool\.zip\z"}}


def digest_named(document: Mapping[str, Any] | None) -> str | None:
    """The code that a stored document names; None if it names none."""
    return bundle_digest((document or {}).get("binding", {}).get("source_code_link", ""))


def open_code(blobs: Blobs, digest: str) -> Iterator[bytes] | None:
    """The code in pieces, or None if it is not there, nor in the trash."""
    return next((found for place in _places(blobs, digest) if (found := blobs.open(place))), None)


def code_link(blobs: Blobs, digest: str) -> str | None:
    """An address that serves the code for a while, or None if the service must, or if there is no such code."""
    key = blob_key(digest)
    link = blobs.link(key)
    if link is None or blobs.holds(key):
        return link
    place = next((place for place in _places(blobs, digest) if blobs.holds(place)), None)
    return None if place is None else blobs.link(place)


@contextmanager
def referred(blobs: Blobs, digest: str) -> Iterator[None]:
    """The collector leaves the code alone, or brings it back, until a record names it or the block has failed.

    If nobody knows whether the record was written, the reference stays until it is too old to count.
    """
    reference = f"{REFERENCES}/{digest}.{uuid.uuid4().hex}"
    blobs.put(reference, io.BytesIO(b"."))
    try:
        yield
    except UnavailableError:
        raise
    except BaseException:
        _give_up(blobs, reference)
        raise
    _give_up(blobs, reference)


def withdraw(blobs: Blobs, digest: str) -> None:
    """Say that no tool had the code any more a moment ago. It is a hint: somebody may have published it since."""
    blobs.put(f"{_WITHDRAWN}/{digest}", io.BytesIO(b"."))


def may_be_withdrawn(blobs: Blobs, digest: str) -> bool:
    """Whether it is worth asking if there is a tool with the code: no tool may have it, though it is still kept."""
    return blobs.holds(f"{_WITHDRAWN}/{digest}") or not blobs.holds(blob_key(digest))


def to_trash(blobs: Blobs, digest: str) -> None:
    """Out of the way, under a name that nobody else chooses: the others' steps cannot take it from there."""
    blobs.move(blob_key(digest), f"{_trash_of(digest)}/{digest}.{uuid.uuid4().hex}")


def trashed_places(blobs: Blobs, digest: str) -> list[str]:
    """Where the code is in the trash, as often as somebody put it there."""
    return list(_trashed(blobs, digest))


def forget_withdrawn(blobs: Blobs, digest: str) -> None:
    """The code is gone, so nobody needs the hint."""
    blobs.delete(f"{_WITHDRAWN}/{digest}")


def take_back(blobs: Blobs, digest: str) -> bool:
    """Whether the code had to be put back where it belongs. It stays in the trash as well, until its time is up."""
    key = blob_key(digest)
    return not blobs.holds(key) and any(blobs.copy(place, key) for place in _trashed(blobs, digest))


def _places(blobs: Blobs, digest: str) -> Iterator[str]:
    """Where to look. It may be taken back between two looks, so the first place is also the last."""
    yield blob_key(digest)
    yield from _trashed(blobs, digest)
    yield blob_key(digest)


def _trashed(blobs: Blobs, digest: str) -> Iterator[str]:
    places = [key for key, _ in blobs.keys(_trash_of(digest))]
    return (key for key in places if digest_in(key) == digest)


def _trash_of(digest: str) -> str:
    return f"{TRASH}/{digest[:2]}"


def digest_in(key: str) -> str:
    """The digest that a key of one of the three kinds is about."""
    return key.rpartition("/")[2].partition(".")[0]


def _give_up(blobs: Blobs, reference: str) -> None:
    try:
        blobs.delete(reference)
    except ToolcribError as error:  # what was asked for is done; the reference grows old by itself
        _log.warning("the reference %r could not be given up: %s", reference, error)

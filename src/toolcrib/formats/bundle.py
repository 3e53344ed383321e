"""A tool bundle: a ZIP archive with ``spec.json``, ``tool.zip`` and ``tool.md`` at its root."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO, NoReturn

from toolcrib.core.errors import InvalidBundleError
from toolcrib.formats.archives import Archive, ArchiveLimits

SPEC, CODE, MANUAL = "spec.json", "tool.zip", "tool.md"
_LINK = re.compile(r"/bundles/([0-9a-f]{64})/tool\.zip\Z")


@dataclass(frozen=True, slots=True)
class BundleLimits:
    archive: ArchiveLimits = field(default_factory=ArchiveLimits)
    """Of the bundle, and again of the ``tool.zip`` in it. Archives inside ``tool.zip`` are never opened."""
    max_spec_bytes: int = 1024 * 1024
    max_manual_bytes: int = 2 * 1024 * 1024
    max_json_depth: int = 64


@dataclass(frozen=True, slots=True)
class Bundle:
    """``entry`` is what ``spec.json`` says, ``code`` the open ``tool.zip``, ``digest`` its SHA-256."""

    entry: dict[str, Any]
    manual: str
    digest: str
    size: int
    code: IO[bytes]


def bundle_link(base_url: str, digest: str) -> str:
    """The address under which the service hands out the code; the same code has the same address."""
    return f"{base_url.rstrip('/')}/bundles/{digest}/{CODE}"


def bundle_digest(link: str) -> str | None:
    """The digest in an address that :func:`bundle_link` made, None for any other."""
    found = _LINK.search(link)
    return found.group(1) if found else None


def blob_key(digest: str) -> str:
    """Where the blobs keep the code of that digest."""
    return f"sha256/{digest[:2]}/{digest}"


def read_bundle(file: BinaryIO, code: IO[bytes], limits: BundleLimits | None = None) -> Bundle:
    """The bundle in ``file``; its ``tool.zip`` goes into ``code``, an empty file open for writing and reading.

    Raises InvalidBundleError, whose sentence says what is wrong and where.
    """
    limits = limits or BundleLimits()
    archive = Archive(file, "the bundle", limits.archive)
    for name in (SPEC, CODE, MANUAL):
        if name not in archive.files:
            raise InvalidBundleError(f"the bundle has no {name!r} at its root{_elsewhere(archive, name)}")
    entry = parse_json_object(_text(archive, SPEC, limits.max_spec_bytes), SPEC, limits.max_json_depth)
    manual = _text(archive, MANUAL, limits.max_manual_bytes)
    digest = hashlib.sha256()
    for piece in archive.pieces(CODE):
        digest.update(piece)
        code.write(piece)
    size = code.tell()
    code.seek(0)
    Archive(code, repr(CODE), limits.archive).verify()  # type: ignore[arg-type]
    code.seek(0)
    return Bundle(entry, manual, digest.hexdigest(), size, code)


def parse_json_object(text: str, what: str, max_depth: int = 64) -> dict[str, Any]:
    """A JSON object that every store can keep: no duplicate keys, no NaN, 64-bit integers, whole characters."""
    rules = _JsonRules(what)
    try:
        value = json.loads(
            text,
            object_pairs_hook=rules.pairs,
            parse_constant=rules.constant,
            parse_int=rules.integer,
            parse_float=rules.number,
        )
    except InvalidBundleError:
        raise
    except RecursionError:
        raise InvalidBundleError(f"{what!r} is nested more than {max_depth} deep") from None
    except ValueError as error:
        raise InvalidBundleError(f"{what!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidBundleError(f"{what!r} must hold a JSON object, not a {type(value).__name__}")
    _check_values(value, what, max_depth)
    return value


class _JsonRules:
    def __init__(self, what: str) -> None:
        self._what = what

    def pairs(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InvalidBundleError(f"{self._what!r} has the key {twice!r} twice in one object")
        return found

    def constant(self, name: str) -> NoReturn:
        raise InvalidBundleError(f"{self._what!r} holds {name}, which is not JSON")

    def integer(self, digits: str) -> int:
        if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
            raise InvalidBundleError(f"{self._what!r} holds an integer of more than 64 bits")
        return int(digits)

    def number(self, digits: str) -> float:
        value = float(digits)
        if not math.isfinite(value):
            raise InvalidBundleError(f"{self._what!r} holds a number that is too large")
        return value


def _check_values(value: Any, what: str, max_depth: int) -> None:
    waiting = [(value, 1)]
    while waiting:
        current, depth = waiting.pop()
        if depth > max_depth:
            raise InvalidBundleError(f"{what!r} is nested more than {max_depth} deep")
        if isinstance(current, str) and not _is_text(current):
            raise InvalidBundleError(f"{what!r} holds half a surrogate pair, which is no character")
        if isinstance(current, dict):
            waiting += [(inner, depth) for inner in current]
            waiting += [(inner, depth + 1) for inner in current.values()]
        elif isinstance(current, list):
            waiting += [(inner, depth + 1) for inner in current]


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _text(archive: Archive, name: str, max_bytes: int) -> str:
    try:
        return archive.read(name, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidBundleError(f"{name!r} in the bundle is not UTF-8 text: {error.reason} at {error.start}") from None


def _elsewhere(archive: Archive, name: str) -> str:
    found = next((path for path in archive.files if path.endswith(f"/{name}")), None)
    return f"; it is at {found!r}, so zip what is in the folder, not the folder" if found else ""

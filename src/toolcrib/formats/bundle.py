"""A tool bundle: a ZIP archive with ``spec.json``, ``tool.zip`` and ``tool.md`` at its root."""

from __future__ import annotations

import hashlib
import io
import re
from dataclasses import dataclass, field
from typing import IO, Any, BinaryIO

from toolcrib.core.errors import InvalidBundleError
from toolcrib.core.json import MAX_RECORD_DEPTH, check_json, read_json
from toolcrib.formats.archives import Archive, ArchiveLimits

SPEC, CODE, MANUAL = "spec.json", "tool.zip", "tool.md"
_LINK = re.compile(r"/bundles/([0-9a-f]{64})/tool\.zip\Z")


@dataclass(frozen=True, slots=True)
class BundleLimits:
    archive: ArchiveLimits = field(default_factory=ArchiveLimits)
    """Of the bundle itself."""
    max_spec_bytes: int = 256 * 1024
    max_manual_bytes: int = 2 * 1024 * 1024
    code: ArchiveLimits = field(default_factory=ArchiveLimits)
    """Of the ``tool.zip`` in it. Archives inside ``tool.zip`` are never opened."""


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


def under_address(link: str, base_url: str) -> str:
    """``link`` under another address of the service, if :func:`bundle_link` made it; any other as it is."""
    digest = bundle_digest(link)
    return link if digest is None else bundle_link(base_url, digest)


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
    entry = parse_json_object(_text(archive, SPEC, limits.max_spec_bytes), SPEC)
    manual = _text(archive, MANUAL, limits.max_manual_bytes)
    digest = hashlib.sha256()
    for piece in archive.pieces(CODE):
        digest.update(piece)
        code.write(piece)
    size = code.tell()
    code.seek(0)
    packed = Archive(code, repr(CODE), limits.code)  # type: ignore[arg-type]
    packed.check_ratio(file.seek(0, io.SEEK_END))  # an archive of zeros is small, and smaller in another one
    packed.verify()
    code.seek(0)
    return Bundle(entry, manual, digest.hexdigest(), size, code)


def parse_json_object(text: str, what: str) -> dict[str, Any]:
    """A JSON object that every store can keep, no key twice in one object; InvalidBundleError says what is wrong."""
    try:
        value = check_json(read_json(text, unique_keys=True), MAX_RECORD_DEPTH)
    except ValueError as error:
        raise InvalidBundleError(f"{what!r} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise InvalidBundleError(f"{what!r} must hold a JSON object, not a {type(value).__name__}")
    return value


def _text(archive: Archive, name: str, max_bytes: int) -> str:
    try:
        return archive.read(name, max_bytes).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidBundleError(f"{name!r} in the bundle is not UTF-8 text: {error.reason} at {error.start}") from None


def _elsewhere(archive: Archive, name: str) -> str:
    found = next((path for path in archive.files if path.endswith(f"/{name}")), None)
    return f"; it is at {found!r}, so zip what is in the folder, not the folder" if found else ""

"""Backup and restore: every tool with its history, every bundle, the audit and the tokens, in one ZIP file.

The file does not depend on the store: what was saved from SQLite can be restored into MongoDB. Credentials stay
sealed in it, so the keys that sealed them must be kept as well, and elsewhere.
"""

from __future__ import annotations

import io
import json
import time
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from toolcrib import __version__
from toolcrib.bootstrap import System, open_system, replacing
from toolcrib.catalogue.code import digest_named, open_code
from toolcrib.catalogue.finding import matching_records
from toolcrib.core.chains import PAST, Head, Link, linked
from toolcrib.core.errors import ConflictError, InvalidBundleError, SettingsError, disk_error
from toolcrib.core.json import read_json
from toolcrib.core.query import ALL
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tokens import TokenRecord
from toolcrib.formats.bundle import blob_key
from toolcrib.ports import SEAL_CLAIM, AuditEvent, AuditLog, Blobs, Change, Store, Tokens
from toolcrib.settings import Settings

FORMAT = 1
_MANIFEST, _TOOLS, _AUDIT, _TOKENS, _BLOBS = "manifest.json", "tools.jsonl", "audit.jsonl", "tokens.jsonl", "blobs/"
_HEADS = "audit_heads"


@dataclass(frozen=True, slots=True)
class Saved:
    """What a backup holds, or what was restored from it."""

    tools: int
    versions: int
    bundles: int
    events: int
    tokens: int


def backup(settings: Settings, path: Path, *, replace: bool = False) -> Saved:
    """Write a backup to ``path``; it is there complete or not at all. The service may go on meanwhile.

    A file that is there already is an older backup, perhaps the only good one: it stays, and ConflictError says so,
    unless it is to be replaced.
    """
    if path.exists() and not replace:
        raise ConflictError(f"the file {str(path)!r} is there already; name another, or replace it with --replace")
    try:
        with (
            open_system(settings) as system,
            replacing(path) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            return _write(archive, system)
    except OSError as error:
        raise disk_error(f"the backup {str(path)!r} cannot be written", error) from None


def _write(archive: zipfile.ZipFile, system: System) -> Saved:
    tools = versions = 0
    digests: set[str] = set()
    with archive.open(_TOOLS, "w", force_zip64=True) as file:
        for name, history in _histories(system.store):
            _line(file, {"name": name, "versions": history})
            tools, versions = tools + 1, versions + len(history)
            digests.update(filter(None, (digest_named(version["document"]) for version in history)))
    bundles = sum(_write_code(archive, system.blobs, digest) for digest in sorted(digests))
    heads, events = system.audit.heads(), 0  # the heads first: what is recorded meanwhile comes after them
    with archive.open(_AUDIT, "w", force_zip64=True) as file:
        for link in system.audit.links():
            place = {"chain": link.chain, "number": link.number, "hash": link.hash, "saw": link.saw}
            _line(file, AuditEvent(*link.event)._asdict() | place)
            events += 1
    tokens = system.tokens.all()
    with archive.open(_TOKENS, "w") as file:
        for record in tokens:
            _line(file, record.to_dict())
    saved = Saved(tools, versions, bundles, events, len(tokens))
    manifest = {"format": FORMAT, "toolcrib": __version__, "at": time.time(), **asdict(saved)}
    manifest[_HEADS] = list(map(str, heads.values()))
    manifest[SEAL_CLAIM] = system.store.claimed(SEAL_CLAIM)
    archive.writestr(_MANIFEST, json.dumps(manifest, indent=2))
    return saved


def _write_code(archive: zipfile.ZipFile, blobs: Blobs, digest: str) -> bool:
    """Whether the code is there: it may have been removed since its tool was deleted."""
    pieces = open_code(blobs, digest)
    if pieces is not None:
        with archive.open(f"{_BLOBS}{blob_key(digest)}", "w", force_zip64=True) as file:
            file.writelines(pieces)
    return pieces is not None


def _histories(store: Store) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Every tool with its versions, oldest first."""
    for record in matching_records(store, ALL):
        yield (
            record.name,
            [
                {
                    "version": old.version,
                    "at": old.at,
                    "document": None if old.deleted else old.document,
                    "owner": old.owner,
                }
                for old in reversed(store.history(record.name))
            ],
        )


def restore(settings: Settings, path: Path) -> Saved:
    """Put a backup back into an empty store. Versions keep their numbers and their times, and get new etags."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise InvalidBundleError(f"the backup {str(path)!r} cannot be read: {error.strerror or error}") from None
    try:
        with file, zipfile.ZipFile(file) as archive:
            return _read(archive, settings, _manifest(archive, path))
    except SettingsError:
        raise
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, EOFError) as error:
        raise InvalidBundleError(f"{str(path)!r} is not a backup of Toolcrib: {error}") from None
    except OSError as error:
        raise disk_error(f"the backup {str(path)!r} cannot be read", error) from None


def _manifest(archive: zipfile.ZipFile, path: Path) -> dict[str, Any]:
    manifest = read_json(archive.read(_MANIFEST))
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise InvalidBundleError(f"{str(path)!r} is not a backup that this version can read")
    broken = archive.testzip()
    if broken is not None:
        raise InvalidBundleError(f"{str(path)!r} is damaged: its member {broken!r} does not have its checksum")
    return manifest


def _read(archive: zipfile.ZipFile, settings: Settings, manifest: dict[str, Any]) -> Saved:
    times = _Times()
    with System(settings, clock=times) as system:
        if system.store.query(ALL, limit=1):
            raise ConflictError("the store holds tools already; restore into an empty one")
        if named := str(manifest.get(SEAL_CLAIM, "")):
            system.store.claim(SEAL_CLAIM, named, instead_of=system.store.claimed(SEAL_CLAIM))
        keys = [name for name in archive.namelist() if name.startswith(_BLOBS)]
        for name in keys:
            with archive.open(name) as file:
                system.blobs.put(name.removeprefix(_BLOBS), file)  # type: ignore[arg-type]
        tools = versions = 0
        for kept in _lines(archive, _TOOLS):
            versions += _replay(system.store, times, kept["name"], kept["versions"])
            tools += 1
        events = _restore_audit(archive, system.audit, [Head.parse(text) for text in manifest.get(_HEADS, ())])
        return Saved(tools, versions, len(keys), events, _restore_tokens(archive, system.tokens))


class _Times:
    """A clock that shows when the version that is being restored was written."""

    def __init__(self) -> None:
        self.now = time.time()

    def __call__(self) -> float:
        return self.now


def _replay(store: Store, times: _Times, name: str, history: list[dict[str, Any]]) -> int:
    """Write the versions again in their order, so that each gets its number back."""
    for version in history:
        times.now = float(version["at"])
        document = version["document"]
        if document is not None:
            ToolSpec.parse(document)
        store.commit([Change(name, document, owner=str(version.get("owner", "")))])
    return len(history)


def _restore_audit(archive: zipfile.ZipFile, audit: AuditLog, heads: list[Head]) -> int:
    """Every event in its place. Those of a backup without places are linked as they are found."""
    lines = list(_lines(archive, _AUDIT))
    events = [AuditEvent(*(line[name] for name in AuditEvent._fields)) for line in lines]
    if heads:
        places = [(line["chain"], line["number"], line["hash"], line["saw"]) for line in lines]
        links = [Link(*place, event) for place, event in zip(places, events, strict=True)]
    else:
        links = linked(events, Head(PAST, 0, ""))
        heads = [link.head for link in links[-1:]]
    audit.adopt(links, {head.chain: head for head in heads})
    return len(links)


def _restore_tokens(archive: zipfile.ZipFile, tokens: Tokens) -> int:
    known = {record.digest for record in tokens.all()}
    records = [TokenRecord.parse(line) for line in _lines(archive, _TOKENS)]
    for record in records:
        if record.digest not in known:
            tokens.add(record)
    return len(records)


def _line(file: IO[bytes], value: dict[str, Any]) -> None:
    file.write(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")


def _lines(archive: zipfile.ZipFile, name: str) -> Iterator[dict[str, Any]]:
    with archive.open(name) as file:
        for line in io.TextIOWrapper(file, "utf-8"):
            value = read_json(line)
            if not isinstance(value, dict):
                raise InvalidBundleError(f"{name!r} in the backup holds a line that is not an object")
            yield value

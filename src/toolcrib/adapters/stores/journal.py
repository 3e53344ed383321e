"""The journal beside a catalogue file: its history and outbox, one JSON object a line.

A batch is written here first and to the catalogue file second, each time with the digest of the catalogue before and
after. If a crash comes between the two, the catalogue still has the digest from before, and the batch never was;
the other order could change a tool and lose the event that tells of it.

A purge is a line as well. When its batch has happened, the journal is written anew without the versions before it: a
crash in between leaves them to the next who writes.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from toolcrib.adapters.files import append_file, replace_file, signature, sync
from toolcrib.adapters.stores.contents import Contents, Plan, Version
from toolcrib.core.errors import StoreError
from toolcrib.ports import OutboxEvent

_FIELDS = ("name", "version", "etag", "at", "deleted", "owner", "definition", "document")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def journal_path(catalogue: Path) -> Path:
    return catalogue.with_name(f"{catalogue.stem}.history.jsonl")


class Journal:
    """Reads and appends; its owner holds the catalogue's lock."""

    def __init__(self, catalogue: Path) -> None:
        self.path = journal_path(catalogue)
        self._whole = 0
        """How much of the file is complete lines of batches that happened."""
        self._purged: set[str] = set()
        """Names whose versions are still to be taken out of the file."""

    def replay(self, contents: Contents, catalogue_digest: str) -> None:
        """Bring ``contents`` to what the journal says, given the catalogue file as it is."""
        lines = self._lines()
        self._whole = sum(length for _, length in lines)
        if lines and _never_happened(lines[-1][0], catalogue_digest):
            self._whole -= lines.pop()[1]
        self._purged = {name for line, _ in lines for name in _purged_by(line)}
        for line, _ in lines:
            _apply(contents, line)

    def _lines(self) -> list[tuple[dict[str, Any], int]]:
        data = self.path.read_bytes() if self.path.exists() else b""
        lines: list[tuple[dict[str, Any], int]] = []
        for number, text in enumerate(data.splitlines(keepends=True), 1):
            if not text.endswith(b"\n"):  # a write that a crash cut short, never acknowledged
                break
            try:
                line = json.loads(text)
            except ValueError as error:
                raise StoreError(f"line {number} of {str(self.path)!r} is not JSON: {error}") from None
            lines.append((line, len(text)))
        return lines

    def begin(self, plan: Plan, adopted: Iterable[Version], before: str, after: str) -> None:
        """Write a batch; it counts once the catalogue file has the digest ``after``.

        ``adopted`` are versions that somebody wrote into the catalogue file by hand and that the batch replaces.
        """
        self._purged |= {version.name for version in plan.versions if version.purge}
        self._append(
            {
                "before": before,
                "after": after,
                "versions": [_written(version) for version in (*adopted, *plan.versions)],
                "outbox": [asdict(entry) for entry in plan.entries],
            }
        )

    def forget_purged(self) -> None:
        """Write the journal anew without the versions that a purge took away, if there are any."""
        if not self._purged:
            return
        lines = [line for line, _ in self._lines()]
        last = {name: number for number, line in enumerate(lines) for name in _purged_by(line)}
        for number, line in enumerate(lines):
            kept = [old for old in line.get("versions", ()) if number > last.get(old["name"], -1)]
            if "versions" in line:
                line["versions"] = kept
        data = b"".join(map(_encoded, lines))
        replace_file(self.path, data)
        self._whole, self._purged = len(data), set()

    def acknowledge(self, sequence: int) -> None:
        self._append({"acknowledged": sequence})

    def postpone(self, entry: OutboxEvent) -> None:
        self._append({"postponed": asdict(entry)})

    def claim(self, name: str, value: str) -> None:
        self._append({"claimed": {name: value}})

    def _append(self, line: dict[str, Any]) -> None:
        status = signature(self.path)
        if status is not None and status[1] != self._whole:
            os.truncate(self.path, self._whole)
            sync(self.path.parent)
        data = _encoded(line)
        append_file(self.path, data)
        self._whole += len(data)


def _encoded(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _purged_by(line: dict[str, Any]) -> list[str]:
    return [version["name"] for version in line.get("versions", ()) if version.get("purge")]


def _never_happened(line: dict[str, Any], catalogue_digest: str) -> bool:
    return line.get("before") == catalogue_digest != line.get("after")


def _written(version: Version) -> dict[str, Any]:
    written = {field: getattr(version, field) for field in _FIELDS}
    return {**written, "purge": True} if version.purge else written


def _apply(contents: Contents, line: dict[str, Any]) -> None:
    for written in line.get("versions", ()):
        text = json.dumps(written["document"], ensure_ascii=False, separators=(",", ":"))
        contents.add_version(Version(text=text, **written))
    for entry in line.get("outbox", ()):
        contents.add_entry(OutboxEvent(**entry))
    if "acknowledged" in line:
        contents.acknowledge(line["acknowledged"])
    if "postponed" in line:
        contents.add_entry(OutboxEvent(**line["postponed"]))
    contents.claims |= line.get("claimed", {})

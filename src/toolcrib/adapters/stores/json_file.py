"""``json:///path`` keeps the catalogue in a JSON list that a person can read and edit.

The file is the truth: what somebody writes into it by hand is taken over as a new version of the tool. History and
outbox stand in a journal beside it (:mod:`toolcrib.adapters.stores.journal`).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

from toolcrib.adapters.files import locked, narrow, replace_file, signature, try_writing
from toolcrib.adapters.stores.changes import definition_after, kept_document
from toolcrib.adapters.stores.codecs import Codec, SpecCodec
from toolcrib.adapters.stores.contents import Contents, ContentsReader, Plan, Version
from toolcrib.adapters.stores.journal import Journal, digest
from toolcrib.core.errors import StoreEntryError, StoreError, ToolcribError, disk_error
from toolcrib.core.json import read_json
from toolcrib.ports import Change, Record


@dataclass(slots=True)
class _Loaded:
    """The file as it was read last."""

    contents: Contents = field(default_factory=Contents)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    """The list's entries by name, in the order of the file."""
    by_hand: dict[str, Version] = field(default_factory=dict)
    """Versions that are in the file but not in the journal."""
    digest: str = ""
    seen: tuple[object, object] = (None, None)


class JsonFileStore(ContentsReader):
    """A store in one readable file, for several threads and several processes."""

    def __init__(
        self, path: str | os.PathLike[str], *, codec: Codec | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self.path = Path(path).expanduser()
        self._codec = codec or SpecCodec()
        self._clock = clock
        self._lock = RLock()
        self._journal = Journal(self.path)
        narrow(self.path, self._journal.path, self.path.with_name(f"{self.path.name}.lock"))
        self._loaded: _Loaded | None = None

    def commit(self, changes: Sequence[Change]) -> list[Record]:
        as_kept = [self._as_kept(change) for change in changes]
        with self._writing() as loaded:
            plan = loaded.contents.plan(as_kept, self._clock())
            if plan.versions:
                self._write(loaded, plan)
        return [version.record() for version in plan.versions]

    def acknowledge(self, sequence: int) -> None:
        with self._writing() as loaded:
            if loaded.contents.acknowledge(sequence):
                self._journal.acknowledge(sequence)

    def postpone(self, sequence: int, *, not_before: float, error: str) -> None:
        with self._writing() as loaded:
            entry = loaded.contents.postpone(sequence, not_before, error)
            if entry is not None:
                self._journal.postpone(entry)

    def claim(self, name: str, value: str, *, instead_of: str = "") -> str:
        with self._writing() as loaded:
            if loaded.contents.claim(name, value, instead_of):
                self._journal.claim(name, value)
            return loaded.contents.claims.get(name, "")

    def ping(self) -> None:
        """Raises StoreError if the file cannot be read or its folder not be written."""
        with self._writing():
            try_writing(self.path.parent)

    def close(self) -> None:
        """Nothing is held open between calls."""

    # Writing

    def _as_kept(self, change: Change) -> Change:
        """The change with its document as it will be read back: a codec may keep less than it was given."""
        if change.document is None:
            return change
        kept_document(change)
        return replace(change, document=self._codec.decode(self._codec.encode(change.document)))

    def _write(self, loaded: _Loaded, plan: Plan) -> None:
        entries = dict(loaded.entries)
        for version in plan.versions:
            if version.deleted:
                entries.pop(version.name, None)
            else:
                entries[version.name] = self._codec.encode(json.loads(version.text))
        data = json.dumps(list(entries.values()), ensure_ascii=False, indent=2).encode() + b"\n"
        after = digest(data)
        names = {version.name for version in plan.versions}
        adopted = [version for name, version in loaded.by_hand.items() if name in names]
        self._journal.begin(plan, adopted, loaded.digest, after)
        replace_file(self.path, data)
        self._journal.forget_purged()
        loaded.contents.put(plan)
        loaded.entries, loaded.digest = entries, after
        for version in adopted:
            del loaded.by_hand[version.name]

    @contextmanager
    def _writing(self) -> Iterator[_Loaded]:
        """The state of the files under the lock. Whatever fails, the files are read again afterwards."""
        with self._lock, self._explained(), locked(self.path):
            loaded = self._current()
            self._loaded = None
            self._journal.forget_purged()
            yield loaded
            loaded.seen = self._seen()
            self._loaded = loaded

    # Reading

    @contextmanager
    def _reading(self) -> Iterator[Contents]:
        with self._lock, self._explained():
            if self._loaded is None or self._loaded.seen != self._seen():
                with self._lock_to_read():
                    self._loaded = self._current()
            yield self._loaded.contents

    @contextmanager
    def _lock_to_read(self) -> Iterator[None]:
        """The lock, unless the folder is read-only or not there: then nobody writes either."""
        folder = self.path.parent
        if not folder.is_dir() or not os.access(folder, os.W_OK):
            yield
            return
        with locked(self.path):
            yield

    def _seen(self) -> tuple[object, object]:
        return signature(self.path), signature(self._journal.path)

    def _current(self) -> _Loaded:
        """What the files say now; read only if they changed."""
        seen = self._seen()
        if self._loaded is not None and self._loaded.seen == seen:
            return self._loaded
        data = b"" if seen[0] is None else self._read_file()
        loaded = _Loaded(digest=digest(data), seen=seen)
        texts = self._parsed(data, loaded)
        self._journal.replay(loaded.contents, loaded.digest)
        self._take_over(loaded, texts)
        return loaded

    def _read_file(self) -> bytes:
        """A file that is there holds a list at least: a list of nothing is not what is left when something cut it."""
        data = self.path.read_bytes()
        if not data:
            raise StoreError(
                f"the catalogue {str(self.path)!r} is there but holds nothing, so something has emptied it; put it "
                "back from a backup, or remove it to begin with an empty catalogue"
            )
        return data

    def _parsed(self, data: bytes, loaded: _Loaded) -> dict[str, str]:
        """Every entry's document as text, by name. An entry that is wrong is reported, and the file left as it is."""
        try:
            entries = read_json(data.decode("utf-8-sig")) if data else []
        except ValueError as error:
            raise StoreError(f"the catalogue {str(self.path)!r} is not JSON: {error}; fix or remove it") from None
        if not isinstance(entries, list):
            raise StoreError(f"the catalogue {str(self.path)!r} is not a JSON list; fix or remove it")
        texts: dict[str, str] = {}
        for index, entry in enumerate(entries):
            name, text = self._decoded(index, entry)
            if name in texts:
                raise StoreEntryError(f"entry {index} of {str(self.path)!r} repeats the name {name!r}")
            texts[name] = text
            loaded.entries[name] = entry
        return texts

    def _decoded(self, index: int, entry: Any) -> tuple[str, str]:
        where = f"entry {index} of {str(self.path)!r}"
        if not isinstance(entry, dict):
            raise StoreEntryError(f"{where} is not an object")
        try:
            document = self._codec.decode(entry)
            return document["name"], kept_document(Change(document["name"], document))[0]
        except ToolcribError as error:
            raise StoreEntryError(f"{where} ({entry.get('name')!r}) is wrong: {error}") from None

    def _take_over(self, loaded: _Loaded, texts: dict[str, str]) -> None:
        """Let the file overrule the journal, tool by tool."""
        contents = loaded.contents
        at = self.path.stat().st_mtime if texts else 0.0
        for version in [known for known in contents.current() if known.name not in texts]:
            gone = Version(version.name, version.version + 1, _hand_etag("", version), at, "{}", {}, deleted=True)
            contents.add_version(gone)
            loaded.by_hand[version.name] = gone
        for name, text in texts.items():
            past = contents.last(name)
            if past is None or past.deleted or (past.text != text and self._as_read(past) != text):
                number = 1 if past is None else past.version + 1
                owner = "" if past is None else past.owner
                document: dict[str, Any] = json.loads(text)
                definition = definition_after(document, number, None if past is None else past.seen())
                etag = _hand_etag(text, past)
                version = Version(name, number, etag, at, text, document, owner=owner, definition=definition)
                contents.add_version(version)
                loaded.by_hand[name] = version

    def _as_read(self, version: Version) -> str:
        """A version's text with every field that this release knows: one with fewer may have written it."""
        try:
            return kept_document(self._as_kept(Change(version.name, json.loads(version.text))))[0]
        except ToolcribError:  # it could not be written any more, so the file says something else
            return version.text

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise disk_error(f"the catalogue {str(self.path)!r} failed", error) from error


def _hand_etag(text: str, past: Version | None) -> str:
    """The same for every process that reads the same files."""
    return digest(f"{past.etag if past else ''}\n{text}".encode())[:24]

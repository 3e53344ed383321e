"""Bundles on the local disk, each unpacked once under its digest, as many as there is room for.

    <digest>/              unpacked code; who runs it holds a shared lock on the folder
    .unpacking-<digest>/   code on its way in; who unpacks it holds the lock
    .removing-<id>/        code on its way out, which nobody can find any more

Several threads and several processes may share the folder. The locks are the system's (flock), on the folders
themselves: they end with whoever holds them, and leave no files behind.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import threading
import uuid
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from toolcrib.adapters.locks import FolderLock
from toolcrib.catalogue.code import open_code
from toolcrib.core.errors import InvalidBundleError, OverloadedError, disk_error
from toolcrib.formats.archives import Archive, ArchiveLimits
from toolcrib.ports import Blobs

_STAGING, _REMOVING, _CONTENT = ".unpacking-", ".removing-", "content"
_BLOCK_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Unpacked:
    """``kind`` is ``python`` or ``program``; ``path`` the folder of the code, or the program itself."""

    kind: str
    path: Path
    requirements: str = ""


@dataclass(frozen=True, slots=True)
class Lease:
    """Unpacked code that stays where it is until ``release``, which may be called twice."""

    unpacked: Unpacked
    _lock: FolderLock

    def release(self) -> None:
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


class BundleCache:
    """At most ``most_bytes`` of unpacked bundles; those that were used longest ago go first, never one in use."""

    def __init__(
        self, blobs: Blobs, folder: Path, *, most_bytes: int = 2_000_000_000, limits: ArchiveLimits | None = None
    ) -> None:
        self._blobs = blobs
        self._folder = folder
        self._most = most_bytes
        self._limits = limits or ArchiveLimits()
        self._lock = threading.Lock()
        self._sizes: dict[tuple[str, int], int] = {}
        self._claims: dict[Path, int] = {}

    def lease(self, digest: str) -> Lease:
        """The code, unpacked now if it is not there yet.

        Raises InvalidBundleError if the code is gone or cannot be run, StorageFullError if the disk is full,
        OverloadedError if the cache is full of code that is in use.
        """
        target = self._folder / digest
        try:
            while True:
                lock = FolderLock.shared(target)
                if lock is not None:
                    return self._leased(target, lock)
                self._unpack(digest, target)
        except OSError as error:
            raise disk_error(f"the bundle {digest} cannot be unpacked", error) from error

    def forget(self, digest: str) -> bool:
        """Whether the copy is gone; one in use stays."""
        return self._remove(self._folder / digest)

    def sweep(self, named: Collection[str]) -> int:
        """Remove the copies of code that is not ``named``, and what crashes left behind; how many copies that were."""
        with self._lock:
            self._sizes.clear()
        for path in self._inside(lambda name: name.startswith((_STAGING, _REMOVING))):
            if path.name.startswith(_REMOVING):
                shutil.rmtree(path, ignore_errors=True)
            else:
                self._remove(path)
        return sum(map(self._remove, self._inside(lambda name: name[0] != "." and name not in named)))

    # Unpacking

    def _leased(self, target: Path, lock: FolderLock) -> Lease:
        try:
            os.utime(target)  # used just now
            return Lease(_runnable(target), lock)
        except BaseException:
            lock.release()
            raise

    def _unpack(self, digest: str, target: Path) -> None:
        """Make the target, unless somebody else does so meanwhile."""
        staging = self._folder / f"{_STAGING}{digest}"
        with FolderLock.making(staging) as held:  # waits for who unpacks the same code just now
            if not held:
                return
            try:
                if not target.is_dir():
                    self._unpack_into(staging, digest)
                    (staging / _CONTENT).rename(target)
            finally:
                with self._lock:
                    self._claims.pop(staging, None)
                shutil.rmtree(staging, ignore_errors=True)

    def _unpack_into(self, staging: Path, digest: str) -> None:
        _empty(staging)
        with tempfile.TemporaryFile(dir=staging) as file:
            self._fetch(digest, file)
            archive = Archive(file, f"the bundle {digest:.12}", self._limits)
            self._make_room(staging, _needed(archive))
            _extract(archive, staging / _CONTENT)

    def _fetch(self, digest: str, file: IO[bytes]) -> None:
        pieces = open_code(self._blobs, digest)
        if pieces is None:
            raise InvalidBundleError(f"the code of the bundle {digest} is gone from the blobs; upload it again")
        checksum = hashlib.sha256()
        for piece in pieces:
            checksum.update(piece)
            file.write(piece)
        if checksum.hexdigest() != digest:
            raise InvalidBundleError(f"the stored bundle {digest} is not what was uploaded")
        file.seek(0)

    # Room

    def _make_room(self, staging: Path, needed: int) -> None:
        """Claim the bytes, and remove what was used longest ago until they fit; OverloadedError if they cannot."""
        if needed > self._most:
            raise InvalidBundleError(
                f"the bundle takes {needed:,} bytes unpacked, and all bundles together may take {self._most:,} "
                "(unpacked_cache_bytes)"
            )
        with self._lock:
            kept = sorted(self._used(), reverse=True)
            free = self._most - needed - sum(self._claims.values()) - sum(size for _, size, _ in kept)
            while free < 0 and kept:
                _, size, path = kept.pop()
                free += size if self._remove(path) else 0
            if free < 0:
                raise OverloadedError("the bundles that run now fill the cache (unpacked_cache_bytes); try again later")
            self._claims[staging] = needed

    def _used(self) -> Iterator[tuple[float, int, Path]]:
        """When each was used last, how large it is, and where it is. What comes in here just now is claimed already."""
        for path in self._inside(lambda name: not name.startswith(_REMOVING)):
            with suppress(FileNotFoundError):
                status = path.stat()
                key = path.name, status.st_ino
                if path.name.startswith(_STAGING):  # of another process, or of one that crashed
                    if path not in self._claims:
                        yield status.st_mtime, _size(path), path
                    continue
                if key not in self._sizes:
                    self._sizes[key] = _size(path)
                yield status.st_mtime, self._sizes[key], path

    def _inside(self, wanted: Callable[[str], bool]) -> list[Path]:
        try:
            return [path for path in self._folder.iterdir() if wanted(path.name)]
        except FileNotFoundError:
            return []

    def _remove(self, path: Path) -> bool:
        """Whether it is gone: nobody else held it. First out of sight, then from the disk."""
        lock = FolderLock.alone(path)
        if lock is None:
            return False
        removing = self._folder / f"{_REMOVING}{uuid.uuid4().hex}"
        try:
            path.rename(removing)
        finally:
            lock.release()
        shutil.rmtree(removing, ignore_errors=True)
        return True


def _needed(archive: Archive) -> int:
    """Bytes on the disk: each member takes whole blocks there, a folder one of its own."""
    sizes = (archive.size(name) for name in archive.files)
    return sum(_on_disk(size) for size in sizes) + _BLOCK_BYTES * len(archive.folders)


def _size(folder: Path) -> int:
    """The same of what is there."""
    total = 0
    for parent, folders, files in os.walk(folder):
        total += _BLOCK_BYTES * len(folders)
        for name in files:
            with suppress(FileNotFoundError):
                total += _on_disk(Path(parent, name).lstat().st_size)
    return total


def _on_disk(size: int) -> int:
    return max(1, -(-size // _BLOCK_BYTES)) * _BLOCK_BYTES


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def _extract(archive: Archive, folder: Path) -> None:
    """Unpacked so that whoever runs it can read it, and run it if it is a program."""
    folder.mkdir()
    for name in archive.files:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with path.open("xb") as file:
                archive.copy(name, file)
        except FileExistsError:
            raise InvalidBundleError(f"{name!r} is in the bundle twice, as this disk sees it") from None
        path.chmod(0o755 if archive.mode(name) & 0o111 else 0o644)
    for parent, _, _ in os.walk(folder):
        Path(parent).chmod(0o755)
    unpacked = _runnable(folder)
    if unpacked.kind == "program":
        unpacked.path.chmod(0o755)  # archives made elsewhere carry no permissions


def _runnable(folder: Path) -> Unpacked:
    code = folder / "code"
    if (code / "function.py").is_file():
        listed = code / "requirements.txt"
        text = listed.read_text(encoding="utf-8", errors="replace") if listed.is_file() else ""
        return Unpacked("python", code, text)
    files = [path for path in code.rglob("*") if path.is_file()] if code.is_dir() else []
    if len(files) != 1:
        raise InvalidBundleError(
            "the bundle cannot be run: its 'tool.zip' needs 'code/function.py', or one program alone in 'code/'"
        )
    return Unpacked("program", files[0])

"""Files that several programs write: locked between processes, replaced whole or not at all, their owner's alone."""

from __future__ import annotations

import logging
import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from urllib.parse import unquote, urlsplit

from toolcrib.core.errors import SettingsError

_POLL_SECONDS = 0.01
_PROBE_BYTES = 64 * 1024
_FILE, _FOLDER = 0o600, 0o700
_OTHERS = 0o077
_log = logging.getLogger("toolcrib")


def folder_path(url: str) -> Path:
    """The path of ``file:///path``, which is a full one; ``file:///~/x`` is in the home folder."""
    path = after_host(url)
    if not path:
        raise SettingsError(f"{url!r} names no folder; write {urlsplit(url).scheme}:///and/the/full/path")
    return Path(path[1:]).expanduser() if path.startswith("/~") else Path("/", path.lstrip("/"))


def after_host(url: str) -> str:
    """What an address of something on this machine has behind its two slashes; empty if it is no such address."""
    parts = urlsplit(url)
    path = unquote(parts.path)
    elsewhere = parts.netloc not in {"", "localhost"} or parts.query or parts.fragment
    return "" if elsewhere or not path.startswith("/") else path


def make_folder(path: Path) -> None:
    """Make the folder and those above it that are missing, each its owner's alone."""
    if path.is_dir():
        return
    make_folder(path.parent)
    path.mkdir(mode=_FOLDER, exist_ok=True)


def make_private(path: Path) -> None:
    """Make the file if it is missing, and its folder, so that it is its owner's alone from its first byte."""
    make_folder(path.parent)
    path.touch(mode=_FILE)


def narrow(*paths: Path, but: Path | None = None) -> None:
    """Take from others what an older release gave them, and log it once.

    A folder that others could enter is looked through, except for what lies in the folders of ``but``. What belongs to
    another user is not ours to close, nor is what a link leads to.
    """
    narrowed = [closed for path in paths for closed in _narrowed(path, but)]
    if narrowed:
        _log.info(
            "closed to other users what they could open: %d files and folders, such as %r",
            len(narrowed), str(narrowed[0]),
        )  # fmt: skip


def _narrowed(path: Path, but: Path | None, *, within_open: bool = True) -> Iterator[Path]:
    """One that cannot be looked at is passed over: it is gone, or whoever needs it says why."""
    try:
        found = path.lstat()
        is_folder, is_open = stat.S_ISDIR(found.st_mode), bool(found.st_mode & _OTHERS)
        if stat.S_ISLNK(found.st_mode) or (is_folder and not is_open and not within_open):
            return
        entries = sorted(path.iterdir()) if is_folder and path != but else ()
    except OSError:
        return
    for entry in entries:
        yield from _narrowed(entry, but, within_open=is_open)
    if is_open and found.st_uid == os.geteuid():
        with suppress(OSError):
            path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
            yield path


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold the lock of ``path`` against threads and processes alike: a file of its own beside it, which stays."""
    from filelock import FileLock  # the root loads this module for everybody, and few lock

    make_folder(path.parent)
    with FileLock(path.with_name(f"{path.name}.lock"), mode=_FILE).acquire(poll_interval=_POLL_SECONDS):
        yield


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file for what ``path`` is to hold; a reader, and a crash, sees the old content or the new.

    It is on disk at the end, unless something was raised meanwhile. A symbolic link stays one, and permissions stay as
    they were; a file that is new is its owner's alone.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(6)}.tmp")
    known = target.stat().st_mode & 0o7777 if target.exists() else None
    try:
        with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, known or _FILE), "wb") as file:
            if known is not None:
                temporary.chmod(known)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync(target.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Make ``data`` the content of ``path``, as :func:`replacing` does."""
    with replacing(path) as file:
        file.write(data)


def append_file(path: Path, data: bytes) -> None:
    """Add ``data`` to the end of ``path``; it is on disk when this returns."""
    is_new = not path.exists()
    if is_new:
        make_private(path)
    with path.open("ab") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if is_new:
        sync(path.parent)


def try_writing(folder: Path) -> None:
    """Write something to the disk of ``folder``, of which nothing stays. Raises OSError if it cannot be done."""
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        file.write(b"\0" * _PROBE_BYTES)
        os.fsync(file.fileno())


def sync(path: Path) -> None:
    """Make what was written to a file, or the renames in a folder, last. Windows has nothing of the kind."""
    if sys.platform == "win32":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def signature(path: Path) -> tuple[int, int, int] | None:
    """Changes whenever the file does; None if there is none."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino

"""Folders of runs on the disk: only where a run cannot have a file system of its own."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import uuid
from pathlib import Path

_PREFIX = "toolcrib-run-"


class Scratch:
    """A folder for one run, with an empty one in it to ``work`` in.

    Whoever sweeps leaves it alone until ``remove``, or until this process is gone.
    """

    def __init__(self, folder: Path) -> None:
        self._path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=folder))
        self._handle = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(self._handle, fcntl.LOCK_SH)
        self._path.chmod(0o711)
        self.work = self._path / "work"
        self.work.mkdir(mode=0o700)

    def with_code(self, code: Path) -> Path:
        """Where a run finds the code. As root a copy: it runs as somebody who may not enter our folders."""
        return Path(shutil.copytree(code, self._path / "code")) if os.geteuid() == 0 else code

    def remove(self) -> None:
        os.close(self._handle)
        remove_tree(self._path)


def sweep(folder: Path) -> int:
    """Remove what runs left in the folder that nobody can end any more; how many there were."""
    swept = 0
    for path in folder.glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if os.geteuid() not in (0, path.lstat().st_uid):
                continue
            handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                remove_tree(path)
                swept += 1
            finally:
                os.close(handle)
    return swept


def remove_tree(path: Path) -> None:
    """Remove a folder, however deep it is: without recursion, without long paths, without following links."""
    with contextlib.suppress(FileNotFoundError):
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            while names := os.listdir(top):  # noqa: PTH208 - by descriptor
                for name in names:
                    _remove(name, top)
        finally:
            os.close(top)
        path.rmdir()


def _remove(name: str, top: int) -> None:
    """Remove a file; of a folder, bring what is in it up to the top, where the next round finds it."""
    try:
        os.unlink(name, dir_fd=top)
        return
    except (IsADirectoryError, PermissionError):  # Linux says the one of a folder, others the other
        _open_up(name, top)
    folder = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=top)
    try:
        for inner in os.listdir(folder):  # noqa: PTH208 - by descriptor
            _open_up(inner, folder)
            os.rename(inner, uuid.uuid4().hex, src_dir_fd=folder, dst_dir_fd=top)
    finally:
        os.close(folder)
    os.rmdir(name, dir_fd=top)


def _open_up(name: str, folder: int) -> None:
    """A folder is emptied and moved only by who may write in it; what is no folder is left as it is."""
    if stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        os.chmod(name, 0o700, dir_fd=folder)

"""Locks on folders, between threads and processes, which leave nothing behind and end with whoever holds them.

A folder may be renamed or removed by who holds it alone. So whoever gets a lock looks whether the path still leads to
the folder that it has locked.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.adapters.files import make_folder


class FolderLock:
    """A lock that is held until ``release``, which may be called twice."""

    __slots__ = ("_descriptor",)

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    @classmethod
    def shared(cls, folder: Path) -> FolderLock | None:
        """With others who share it; None if there is no such folder."""
        return cls._taken(folder, fcntl.LOCK_SH)

    @classmethod
    def alone(cls, folder: Path) -> FolderLock | None:
        """None if somebody holds it, or if there is no such folder."""
        return cls._taken(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)

    @classmethod
    @contextmanager
    def making(cls, folder: Path) -> Iterator[bool]:
        """Make the folder and hold it alone, after whoever else holds it; False if they have removed it meanwhile."""
        make_folder(folder)
        lock = cls._taken(folder, fcntl.LOCK_EX)
        try:
            yield lock is not None
        finally:
            if lock is not None:
                lock.release()

    def release(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    __del__ = release  # a lease that nobody waited for any more

    @classmethod
    def _taken(cls, folder: Path, how: int) -> FolderLock | None:
        try:
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        lock = cls(descriptor)
        try:
            fcntl.flock(descriptor, how)
            if os.path.samestat(os.fstat(descriptor), folder.lstat()):
                return lock
        except (BlockingIOError, FileNotFoundError):
            pass
        except BaseException:
            lock.release()
            raise
        lock.release()
        return None

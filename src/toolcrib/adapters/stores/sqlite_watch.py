"""Has anybody committed since? Answered from memory.

In WAL mode every process that has the file open maps the WAL index, and every commit of any of them changes its
header; comparing those 48 bytes is how SQLite's own readers notice. Where the mapping can be found, the header is read
in place; elsewhere SQLite is asked (``PRAGMA data_version``), which takes the service a quarter more processor time a
request.
"""

from __future__ import annotations

import ctypes
import sqlite3
from pathlib import Path
from threading import Lock

_HEADER_BYTES = 48


class CommitWatch:
    """``connection`` is the watch's own and never writes. The mapping lasts as long as it is open."""

    def __init__(self, connection: sqlite3.Connection, path: str) -> None:
        self._connection = connection
        self._lock = Lock()
        self._asked()  # a first read maps the index
        address = _mapped_index(path)
        self._header = None if address is None else (ctypes.c_char * _HEADER_BYTES).from_address(address)

    def generation(self) -> object:
        """Equal values: nothing was committed between the two calls. Raises sqlite3.Error."""
        with self._lock:
            header = self._header
            return self._asked() if header is None else header.raw

    def close(self) -> None:
        with self._lock:
            self._header = None
            self._connection.close()

    def _asked(self) -> object:
        return self._connection.execute("PRAGMA data_version").fetchone()[0]


def _mapped_index(path: str) -> int | None:
    """Where this process has the beginning of the file's WAL index in memory, if that can be told."""
    try:
        index = Path(f"{path}-shm").resolve(strict=True)
        lines = Path("/proc/self/maps").read_text().splitlines()
    except OSError:
        return None
    for line in lines:
        region, permissions, offset, _device, _inode, *name = line.split(maxsplit=5)
        if name and name[0] == str(index) and int(offset, 16) == 0 and permissions.startswith("r"):
            return int(region.partition("-")[0], 16)
    return None

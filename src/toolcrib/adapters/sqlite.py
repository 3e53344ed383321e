"""A SQLite file: how it is opened, when it is tried again, what is said when it fails.

The store has many connections to its file; the audit and the tokens have a file of one table each.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolcrib.adapters.files import make_private, narrow
from toolcrib.core.errors import StorageFullError, StoreError, disk_error
from toolcrib.core.query.budget import BUDGET

BUSY_SECONDS = 30.0
"""How long a connection waits for a writer of another process."""
_STEPS = 1000
"""After so many instructions of a statement SQLite asks whether it may go on: some sixty rows."""


def connect(path: Path | str) -> sqlite3.Connection:
    """A connection for any thread, outside a transaction, that waits for the disk when it commits.

    The file is its owner's alone; SQLite gives its own rights to the log and the index that it keeps beside it.
    """
    path = Path(path)
    make_private(path)
    connection = sqlite3.connect(
        path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    try:
        _use_wal(connection)
        narrow(path, *(path.with_name(f"{path.name}-{part}") for part in ("wal", "shm")))
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA cache_size = -16000")
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """All of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def budgeted(connection: sqlite3.Connection) -> Iterator[None]:
    """Statements of ``connection`` within the budget of the query under way: past it SQLite ends them."""
    budget = BUDGET.get()
    if budget is None:
        yield
        return
    connection.set_progress_handler(lambda: budget.is_over, _STEPS)
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode == sqlite3.SQLITE_INTERRUPT:
            raise budget.time_is_over() from None
        raise
    finally:
        connection.set_progress_handler(None, 0)


@contextmanager
def explained(what: str, path: Path | str) -> Iterator[None]:
    """Errors of SQLite and of the disk as StoreError."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise failure(what, path, error) from error


def failure(what: str, path: Path | str, error: Exception) -> StoreError:
    said = f"the {what} {str(path)!r} failed"
    if isinstance(error, OSError):
        return disk_error(said, error)
    kind = StorageFullError if _is_full(error) else StoreError
    return kind(f"{said}: {error}")


def write_nothing(connection: sqlite3.Connection) -> None:
    """Write to the file and wait for the disk, but change nothing: the header gets the application's number again."""
    (number,) = connection.execute("PRAGMA application_id").fetchone()
    connection.execute(f"PRAGMA application_id = {int(number)}")


def _is_full(error: Exception) -> bool:
    """SQLite says so itself, unless it is its shared memory that could not grow."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF == sqlite3.SQLITE_FULL or code == sqlite3.SQLITE_IOERR_SHMSIZE


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch the file to a write-ahead log. SQLite does not wait for others who are just doing the same, so we do."""
    deadline = time.monotonic() + BUSY_SECONDS
    while connection.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > deadline:
                raise
            time.sleep(0.01)

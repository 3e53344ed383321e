"""A SQLite store notices every commit, whoever made it, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.adapters.stores import sqlite_watch
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.errors import StoreError
from toolcrib.core.query import ALL
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Change

DOCUMENT = ToolSpec(name="a", description="x").to_dict()
WRITE = """
import sys
from tests.surfaces.rest.test_watch import DOCUMENT, Change, SqliteStore
store = SqliteStore(sys.argv[1])
store.commit([Change("a", {**DOCUMENT, "description": sys.argv[2]})])
store.close()
"""


@pytest.fixture(params=["in memory", "by asking"])
def store(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SqliteStore:
    if request.param == "by asking":
        monkeypatch.setattr(sqlite_watch, "_mapped_index", lambda path: None)
    return SqliteStore(tmp_path / "tools.db")


def test_every_commit_is_noticed(store: SqliteStore, tmp_path: Path) -> None:
    other = SqliteStore(tmp_path / "tools.db")
    seen = [store.generation()]
    for number in range(200):
        writer = (store, other)[number % 2]
        writer.commit([Change("a", {**DOCUMENT, "description": str(number)})])
        assert store.generation() != seen[-1], number
        seen.append(store.generation())
        store.query(ALL)
        other.get("a")
        store.ping()
        assert store.generation() == seen[-1], "reading is not writing"
    assert len(set(seen)) == len(seen)
    for number in range(3):
        subprocess.run([sys.executable, "-c", WRITE, str(tmp_path / "tools.db"), f"p{number}"], check=True)
        assert store.generation() != seen[-1]
        seen.append(store.generation())
        record = store.get("a")
        assert record is not None
        assert record.document["description"] == f"p{number}"
    other.close()
    assert store.generation() == seen[-1] or store.generation() not in seen
    store.close()
    with pytest.raises(StoreError):
        store.generation()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere SQLite is asked")
def test_the_index_is_found_in_memory(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "with space" / "tools.db")
    assert isinstance(store.generation(), bytes)
    store.close()

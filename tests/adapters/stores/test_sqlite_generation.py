"""A SQLite store notices every commit, whoever made it, and nothing else."""

import subprocess
import sys
from pathlib import Path

import pytest

from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.errors import StoreError
from toolcrib.core.query import ALL
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Change

DOCUMENT = ToolSpec(name="a", description="x").to_dict()
WRITE = """
import sys
from tests.adapters.stores.test_sqlite_generation import DOCUMENT, Change, SqliteStore
store = SqliteStore(sys.argv[1])
store.commit([Change("a", {**DOCUMENT, "description": sys.argv[2]})])
store.close()
"""


@pytest.mark.timeout(400)  # a slow disk may take a second for each write
def test_every_commit_is_noticed(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "tools.db")
    other = SqliteStore(tmp_path / "tools.db")
    seen = [store.generation()]
    for number in range(200):
        writer = (store, other)[number % 2]
        writer.commit([Change("a", {**DOCUMENT, "description": str(number)})])
        assert store.generation() != seen[-1], number
        seen.append(store.generation())
        store.query(ALL)
        other.get("a")
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

"""What is acknowledged is there: after kill -9, and with a dozen writers at once."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.waiting import wait_until

from toolcrib.adapters.stores.json_file import JsonFileStore
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.query import ALL, parse
from toolcrib.ports import Store

OPENERS: dict[str, Callable[[Path], Store]] = {"json": JsonFileStore, "sqlite": SqliteStore}
ROOT = Path(__file__).parents[3]


def writer(kind: str, path: Path, programs: int, count: int) -> "subprocess.Popen[str]":
    command = [sys.executable, "-m", "tests.adapters.stores.writer", kind, str(path), str(programs), str(count)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)


@pytest.mark.timeout(400)  # a slow disk may take a second for each write
@pytest.mark.parametrize("kind", OPENERS)
def test_kill_9_loses_nothing_that_was_acknowledged(kind: str, tmp_path: Path):
    path = tmp_path / "tools"
    acknowledged: list[str] = []
    for turn, patience in enumerate((1, 7, 25)):
        with writer(kind, path, 1, 100_000) as program:
            assert program.stdout is not None
            acknowledged += [program.stdout.readline().strip() for _ in range(patience)]
            program.kill()
            acknowledged += [line.strip() for line in program.stdout if line.endswith("\n")]
        store = OPENERS[kind](path)
        names = [record.name for record in store.query(ALL)]
        assert set(acknowledged) <= set(names)
        assert len(names) <= len(acknowledged) + turn + 1, "at most one write a turn was done and not yet said"
        events = [entry.name for entry in store.outbox(limit=100_000)]
        assert sorted(events) == sorted(names), "an event for every tool, a tool for every event"
        for name in names:
            assert [record.version for record in store.history(name)] == [1]
        store.close()
    assert len(acknowledged) >= 33
    print(f"{kind}: {len(acknowledged)} acknowledged, none missing")


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", OPENERS)
def test_twelve_programs_at_once_lose_nothing(kind: str, tmp_path: Path):
    path = tmp_path / "tools"
    reader = OPENERS[kind](path)
    seen: list[int] = []
    with writer(kind, path, 12, 10) as programs:

        def ended() -> bool:
            seen.append(reader.count(ALL))  # never half a file
            return programs.poll() is not None

        wait_until(ended, 350)
        assert seen == sorted(seen), "never fewer than before"
        assert programs.stdout is not None
        acknowledged = programs.stdout.read().split()
    assert programs.returncode == 0
    assert len(acknowledged) == 120
    assert [record.name for record in reader.query(ALL)] == sorted(acknowledged)
    prefix = acknowledged[0].rpartition("-")[0]
    assert reader.count(parse({"tags": prefix})) == 10
    assert len(reader.outbox(limit=1000)) == 120
    reader.close()


@pytest.mark.timeout(400)
@pytest.mark.parametrize("kind", OPENERS)
def test_many_may_open_a_new_store_at_once(kind: str, tmp_path: Path):
    with writer(kind, tmp_path / "tools", 12, 1) as programs:
        assert programs.wait() == 0
    store = OPENERS[kind](tmp_path / "tools")
    assert store.count(ALL) == 12
    store.close()

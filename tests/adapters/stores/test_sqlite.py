"""The SQLite file: its tables, its indexes, its bad days."""

import ast
import json
import os
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from tests.adapters.stores.specs import tool
from tests.support.waiting import PATIENCE

import toolcrib
from toolcrib.adapters.sqlite import connect
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.adapters.stores.sqlite_query import select
from toolcrib.adapters.stores.sqlite_schema import MIGRATIONS
from toolcrib.core.errors import StoreError
from toolcrib.core.query import ALL, parse
from toolcrib.core.ranking import Search, index_words
from toolcrib.ports import Change

SEED_COLUMNS = {
    "tool_data": {
        "tool_id", "tool_metadata", "tool_search_description", "tool_tags", "tool_type", "tool_man_page_doc",
        "tool_api_spec", "tool_custom_actions_dsl_map", "default_tool_usage_credentials",
    },
    "tool_execution": {
        "tool_id", "tool_execution_mode", "tool_policy_rule_uri", "tool_source_code_link", "tool_service_url",
        "tool_system_function_rpc_id", "tool_validation_policy_rule_uri", "tool_validation_mode",
    },
}  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tools.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    yield store
    store.close()


def rows(path: Path, sql: str, *values: Any) -> list[tuple[Any, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql, values).fetchall()
    finally:
        connection.close()


def test_two_tables_with_the_columns_of_a_tool_entry(store: SqliteStore, path: Path):
    store.commit([
        Change("a", tool(
            "a", tool_type="extractor", tags=["x", "y"], manual="# a", metadata={"v": 1}, api_spec={"input": {}},
            actions={"go": 1}, execution_mode="sync", policy_rule_uri="policy://p", validation_mode="strict",
            binding={"service_url": "http://s", "source_code_link": "http://l", "system_function_rpc_id": "f"},
        ))
    ])  # fmt: skip
    for table, columns in SEED_COLUMNS.items():
        there = {row[1] for row in rows(path, f"PRAGMA table_xinfo({table})")}
        assert columns <= there
    assert rows(
        path, "SELECT tool_type, tool_tags, tool_man_page_doc, tool_metadata, tool_api_spec FROM tool_data"
    ) == [("extractor", '["x","y"]', "# a", '{"v": 1}', '{"input":{}}')]
    execution = (
        "tool_execution_mode, tool_policy_rule_uri, tool_service_url, tool_source_code_link, tool_validation_mode"
    )
    assert rows(path, f"SELECT {execution} FROM tool_execution") == [
        ("sync", "policy://p", "http://s", "http://l", "strict")
    ]
    store.commit([Change("a", None)])
    for table in ("tool_data", "tool_execution", "tool_label", "tool_text"):
        assert rows(path, f"SELECT count(*) FROM {table}") == [(0,)]


def test_it_is_durable_by_setting(store: SqliteStore, path: Path):
    with closing(connect(path)) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert rows(path, "PRAGMA journal_mode") == [("wal",)]
    assert rows(path, "PRAGMA user_version") == [(len(MIGRATIONS),)]


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    """Two thousand tools: tag ``rare`` on 4, type ``t3`` on 200, mode ``sync`` on half."""
    store = SqliteStore(tmp_path_factory.mktemp("filled") / "tools.db")
    store.commit([
        Change(f"tool-{number:04d}", tool(
            f"tool-{number:04d}", tool_type=f"t{number % 10}", execution_mode="sync" if number % 2 else "async",
            policy_rule_uri=f"policy://{number % 100}", tags=["all", "rare" if number % 500 == 3 else "common"],
        ))
        for number in range(2000)
    ])  # fmt: skip
    yield store
    store.close()


@pytest.mark.parametrize(
    ("where", "uses"),
    [
        ({"tags": "rare"}, "SEARCH p USING PRIMARY KEY (field=? AND value=?)"),
        ({"tool_type": "t3"}, "SEARCH d USING INDEX tool_data_type (tool_type=?)"),
        ({"category": "x"}, "SEARCH d USING INDEX tool_data_category (category=?)"),
        ({"execution_mode": "sync"}, "SEARCH p USING COVERING INDEX tool_execution_by_mode (tool_execution_mode=?)"),
        ({"policy_rule_uri": "policy://7"}, "SEARCH p USING COVERING INDEX tool_execution_by_policy"),
        (
            {"tags": "rare", "tool_type": "t3", "execution_mode": "sync"},
            "SEARCH p USING PRIMARY KEY (field=? AND value=?)",
        ),
        ({"tool_type": "t3", "tags": "all"}, "SEARCH d USING INDEX tool_data_type"),
        ({"tags": {"$in": ["rare", "x"]}}, "SEARCH d USING INDEX sqlite_autoindex_tool_data_1 (tool_id=?)"),
        ({"$or": [{"tags": "rare"}, {"policy_rule_uri": "x"}]}, "SEARCH d USING INDEX sqlite_autoindex_tool_data_1"),
        ({"$or": [{"name": "tool-0003"}, {"tags": "rare"}]}, "SEARCH d USING INDEX sqlite_autoindex_tool_data_1"),
        ({"name": "tool-0003"}, "SEARCH d USING INDEX sqlite_autoindex_tool_data_1 (tool_id=?)"),
    ],
    ids=str,
)
def test_indexes_are_used_and_nothing_is_sorted(filled: SqliteStore, where: dict[str, Any], uses: str):
    with closing(connect(filled.path)) as connection:
        selection = select(connection, parse(where))
        sql = f"EXPLAIN QUERY PLAN SELECT d.document {selection.sql} ORDER BY {selection.key}"
        plan = [row[3] for row in connection.execute(sql, selection.parameters)]
    assert selection.exact
    assert any(step.startswith(uses) for step in plan), plan
    assert not any(step.startswith(("SCAN", "USE TEMP B-TREE FOR ORDER")) for step in plan), plan


def test_the_shortest_index_leads(filled: SqliteStore):
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with closing(connect(filled.path)) as connection:
        connection.set_progress_handler(count, 10)
        selection = select(connection, parse({"tags": {"$all": ["all", "rare"]}, "execution_mode": "sync"}))
        found = connection.execute(f"SELECT d.document {selection.sql}", selection.parameters).fetchall()
    assert len(found) == 4
    assert steps < 4000, "it looked at more than the candidates"


def test_a_file_of_the_first_release_gets_its_words(path: Path):
    """Its text table had three fields, cut into words by SQLite."""
    connection = sqlite3.connect(path, isolation_level=None)
    for step in MIGRATIONS[0]:
        connection.execute(step)
    connection.execute("PRAGMA user_version = 1")
    for number, name in enumerate(("read_file", "send_mail"), start=1):
        document = json.dumps(tool(name, usage_notes="Mind the umlauts"))
        connection.execute("INSERT INTO tool_text (tool_id, name) VALUES (?, ?)", (name, name))
        columns = "tool_id, version, etag, written_at, search_id, document"
        values = (name, 1, "etag", 0.0, number, document)
        connection.execute(f"INSERT INTO tool_data ({columns}) VALUES (?, ?, ?, ?, ?, ?)", values)
    connection.close()
    with SqliteStoreOpen(path) as store:
        lookup = Search.of("umlaut").lookup("umlaut")
        assert {found.name for found in store.text_candidates([lookup], limit=9)} == {"read_file", "send_mail"}
        store.commit([Change("read_file", None)])
        [left] = store.text_candidates([lookup], limit=9)
        assert left == ("send_mail", index_words(tool("send_mail", usage_notes="Mind the umlauts")))


def sqlite3_program(path: Path, sql: str) -> list[dict[str, Any]]:
    done = subprocess.run(["sqlite3", "-readonly", "-json", path, sql], capture_output=True, text=True, check=True)
    found: list[dict[str, Any]] = json.loads(done.stdout or "[]")
    return found


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the program sqlite3 is not installed")
def test_the_two_tables_are_read_with_the_program_sqlite3(store: SqliteStore, path: Path):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    store.commit([
        Change("a", tool("a", parameters=schema, returns={"type": "string"}, credentials={"api_key": "sealed:xyz"})),
        Change("b", tool("b", execution_mode="batch")),
    ])  # fmt: skip
    for table, columns in SEED_COLUMNS.items():
        found = sqlite3_program(path, f"SELECT {', '.join(sorted(columns))} FROM {table} ORDER BY tool_id")
        assert [row["tool_id"] for row in found] == ["a", "b"]
        assert "sealed:xyz" not in str(found)
    [first, second] = sqlite3_program(path, "SELECT * FROM tool_data ORDER BY tool_id")
    assert json.loads(first["default_tool_usage_credentials"]) == {"api_key": "********"}
    assert json.loads(second["default_tool_usage_credentials"]) == {}
    assert json.loads(first["tool_api_spec"]) == {"input": schema, "output": {"type": "string"}}
    assert json.loads(second["tool_api_spec"]) == {}
    assert sqlite3_program(path, "SELECT tool_id FROM tool_execution WHERE tool_execution_mode = 'batch'") == [
        {"tool_id": "b"}
    ]


def test_a_file_from_before_gets_the_tables_as_they_are_shown(path: Path):
    """What it holds of credentials is shown by name, and a definition dates from the version that is there."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.create_function("index_words", 1, str)
        for steps in MIGRATIONS[:4]:
            for step in steps:
                connection.execute(step)
        connection.execute("PRAGMA user_version = 4")
        document = json.dumps(tool("a", credentials={"api_key": "sealed:xyz"}), separators=(",", ":"))
        columns = "tool_id, version, etag, written_at, search_id, document"
        connection.execute(f"INSERT INTO tool_data ({columns}) VALUES ('a', 7, 'e', 0.0, 1, ?)", (document,))
    with SqliteStoreOpen(path) as store:
        assert rows(path, "SELECT default_tool_usage_credentials FROM tool_data") == [('{"api_key": "********"}',)]
        store.commit([Change("a", tool("a", execution_mode="batch"))])
        assert [(record.version, record.definition) for record in store.history("a")] == [(8, 7), (7, 0)]


def test_it_refuses_what_is_not_its_own(path: Path):
    path.write_bytes(b"this is no database at all, only text of some length" * 50)
    with pytest.raises(StoreError, match=str(path)):
        SqliteStore(path)
    assert path.read_bytes().startswith(b"this is no database")
    path.unlink()
    rows(path, "CREATE TABLE mine (x)")
    with pytest.raises(StoreError, match="something else"):
        SqliteStore(path)
    rows(path, "DROP TABLE mine")
    rows(path, "PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="newer"):
        SqliteStore(path)


def test_a_damaged_file_is_said_in_one_sentence(path: Path):
    with SqliteStoreOpen(path) as store:
        store.commit([Change(f"t{number}", tool(f"t{number}", manual="m" * 3000)) for number in range(200)])
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(8192)
        file.write(random.Random(1).randbytes(size - 8192))
    with pytest.raises(StoreError) as caught, SqliteStoreOpen(path) as store:
        store.query(ALL)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


class SqliteStoreOpen:
    def __init__(self, path: Path) -> None:
        self.store = SqliteStore(path)

    def __enter__(self) -> SqliteStore:
        return self.store

    def __exit__(self, *_: object) -> None:
        self.store.close()


def test_a_place_where_no_file_can_be_is_said(tmp_path: Path):
    (tmp_path / "file").write_text("")
    for path in (tmp_path, tmp_path / "file" / "tools.db"):
        with pytest.raises(StoreError, match=str(path)):
            SqliteStore(path)


def test_a_full_disk_refuses_and_keeps_what_was(path: Path):
    """The limit on the size of a file stands in for a disk that is full."""
    code = f"""
import resource, signal
from tests.adapters.stores.specs import tool
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.errors import StoreError
from toolcrib.ports import Change
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqliteStore({str(path)!r})
store.commit([Change("a", tool("a"))])
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
for number in range(1000):
    try:
        store.commit([Change(f"t{{number}}", tool(f"t{{number}}", manual="m" * 20_000))])
    except StoreError as error:
        assert {str(path)!r} in str(error), error
        break
else:
    raise SystemExit("the disk was never full")
assert store.get("a") is not None
print(number)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=Path(__file__).parents[3], check=False
    )
    assert done.returncode == 0, done.stderr
    written = int(done.stdout)
    with SqliteStoreOpen(path) as store:
        assert store.count(ALL) == written + 1
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[0] == resource.RLIM_INFINITY


@pytest.mark.skipif(os.geteuid() == 0 and not Path("/usr/bin/setpriv").exists(), reason="root may write anywhere")
def test_a_read_only_folder_is_said(tmp_path: Path):
    folder = tmp_path / "locked"
    folder.mkdir()
    code = f"""
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.core.errors import StoreError
try:
    SqliteStore({str(folder / "tools.db")!r})
except StoreError as error:
    print(error)
"""
    folder.chmod(0o500)
    # As root the permission does not count, so the program gives up root's power to ignore it.
    prefix = (
        ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-all"] if os.geteuid() == 0 else []
    )
    done = subprocess.run([*prefix, sys.executable, "-c", code], capture_output=True, text=True, check=False)
    folder.chmod(0o700)
    assert "tools.db' failed: " in done.stdout, done.stderr


def test_readers_do_not_wait_for_a_writer(store: SqliteStore, path: Path):
    store.commit([Change("a", tool("a"))])
    holding, release = Event(), Event()

    def hold() -> None:
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE tool_data SET version = 99")
        holding.set()
        release.wait()
        connection.execute("ROLLBACK")
        connection.close()

    holder = Thread(target=hold)
    holder.start()
    try:
        assert holding.wait(PATIENCE)
        record = store.get("a")
        assert record is not None
        assert record.version == 1
        assert store.count(ALL) == 1
    finally:
        release.set()
        holder.join()


def test_the_log_is_folded_back(store: SqliteStore, path: Path):
    wal = path.with_name("tools.db-wal")
    for _ in range(20):
        store.commit([Change("a", tool("a", manual="x" * 2_000_000))])
    assert wal.stat().st_size < 34_000_000
    store.close()
    assert not wal.exists() or wal.stat().st_size == 0
    with pytest.raises(StoreError, match="closed"):
        store.get("a")
    store.close()


def test_a_regular_expression_whose_automaton_would_explode_is_answered(store: SqliteStore):
    text = "".join(random.Random(1).choices("ab", k=100_000))
    store.commit([Change("a", tool("a", manual=text))])
    assert store.query(parse({"manual": {"$regex": "(a|b)*a(a|b){150}[cd]"}})) == []
    assert store.count(parse({"manual": {"$regex": "a(a|b){15}b"}})) == 1


def test_no_statement_numbers_its_parameters():
    """``?1`` with a sequence of values warns from Python 3.12 on."""
    source = Path(toolcrib.__file__).parent
    texts = (
        (path.relative_to(source), node.value)
        for path in source.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
    statement = re.compile(r"\b(select|insert|update|delete|where|values)\b", re.IGNORECASE)
    assert [(str(path), text) for path, text in texts if statement.search(text) and re.search(r"\?\d", text)] == []

"""The MongoDB store on its bad days: no server, no replica set, lost answers, a killed primary."""

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest
from pymongo import MongoClient
from pymongo.client_session import ClientSession
from pymongo.errors import AutoReconnect, OperationFailure
from tests.adapters.stores.specs import tool
from tests.support.mongo import MongoCluster, start_mongod
from tests.support.processes import free_port, wait_for
from tests.support.waiting import wait_until

from toolcrib.adapters.stores.mongo import MongoStore
from toolcrib.bootstrap import open_catalogue
from toolcrib.core.errors import ConflictError, StoreError
from toolcrib.core.query import ALL, parse
from toolcrib.core.ranking import Search
from toolcrib.ports import Change
from toolcrib.settings import Settings
from toolcrib.surfaces.serve import check_start


@pytest.mark.parametrize("url", ["mongodb://", "mongodb://127.0.0.1:99999", "mongodb://a/?nonsense=%"])
def test_a_wrong_address_is_said(url: str):
    with pytest.raises(StoreError, match="MongoDB"):
        MongoStore(url).ping()


def refusal(action: Callable[[], object]) -> str:
    with pytest.raises(StoreError) as caught:
        action()
    return str(caught.value)


def test_nobody_there_is_said():
    store = MongoStore(f"mongodb://127.0.0.1:{free_port()}/?serverSelectionTimeoutMS=300")
    wait_until(lambda: "refused" in refusal(store.ping))  # the driver knocks in a thread of its own
    for action in (store.ping, lambda: store.get("a"), lambda: store.commit([Change("a", tool("a"))])):
        said = refusal(action)
        assert "refused" in said
        assert "\n" not in said
        assert len(said) < 300
    store.close()


@pytest.mark.parametrize("arguments", [(), ("--replSet", "rs0")], ids=["plain", "uninitiated"])
def test_a_server_outside_a_replica_set_is_told_at_the_start(
    arguments: tuple[str, ...], mongod: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """As soon as the server has said so: the patience with a first contact would never end here."""
    monkeypatch.setattr("toolcrib.adapters.mongo.time", SimpleNamespace(monotonic=lambda: 0.0, sleep=time.sleep))
    port = free_port()
    program = start_mongod(mongod, tmp_path / "mongod", port, *arguments)
    here = f"127.0.0.1:{port}"
    urls = [
        f"mongodb://{here}",
        f"mongodb://a:secret@{here}/?replicaSet=rs0",
        f"mongodb://{here}/?directConnection=true",
    ]
    starts: list[Callable[[Settings], object]] = [lambda settings: open_catalogue(settings=settings), check_start]
    try:
        for url, start in product(urls, starts):
            settings = Settings(store=url, data_dir=str(tmp_path / "data"), port=free_port(), environ={})
            with pytest.raises(StoreError, match=f"{here}' is not a member of a replica set.*--replSet") as caught:
                start(settings)
            assert "secret" not in str(caught.value)
    finally:
        program.kill()


def test_queries_use_the_indexes(mongo_database_url: str):
    store = MongoStore(mongo_database_url)
    store.commit([Change(f"t{number}", tool(f"t{number}", tags=[f"x{number % 9}"])) for number in range(50)])
    client: MongoClient[dict[str, Any]] = MongoClient(mongo_database_url)
    tools = client.get_default_database()["tools"]
    for field in ("tags", "tool_type", "category", "capabilities", "execution_mode", "policy_rule_uri"):
        plan = tools.find({f"document.{field}": {"$eq": "x3"}}).sort("_id", 1).explain()
        text = str(plan["queryPlanner"]["winningPlan"])
        assert f"document.{field}_1__id_1" in text
        assert "COLLSCAN" not in text
        assert "'SORT'" not in text
    client.close()
    store.close()


def test_tools_of_the_first_release_get_their_words(mongo_database_url: str):
    """They had a text index over three fields, and no words."""
    with MongoClient[dict[str, Any]](mongo_database_url) as client:
        tools = client.get_default_database()["tools"]
        row = {"version": 1, "etag": "e", "at": 0.0, "document": tool("a", usage_notes="umlauts"), "words_of_name": "a"}
        tools.insert_one({"_id": "a", **row})
        tools.create_index([("words_of_name", "text")], name="tool_text")
        lookup = Search.of("umlaut").lookup("umlaut")
        for _ in range(2):
            store = MongoStore(mongo_database_url)
            assert [found.name for found in store.text_candidates([lookup], limit=9)] == ["a"]
            store.close()
        assert "tool_text" not in tools.index_information()
        assert "words_of_name" not in (tools.find_one() or {})


def test_a_start_waits_for_nobodys_transaction(mongo_database_url: str):
    """A service that was killed leaves one open, for the server's minute."""
    store = MongoStore(mongo_database_url)
    store.commit([Change("a", tool("a"))])
    store.close()
    with MongoClient[dict[str, Any]](mongo_database_url) as client, client.start_session() as session:
        session.start_transaction()
        client.get_default_database()["tools"].update_one({"_id": "a"}, {"$set": {"at": 1.0}}, session=session)
        store = MongoStore(mongo_database_url)
        assert store.get("a") is not None
        session.commit_transaction()  # fails if the server has ended it, so that the start could go on
    store.close()


def test_candidates_are_found_by_the_index(mongo_database_url: str):
    """An unfinished word too: only the words that begin with it are looked at."""
    store = MongoStore(mongo_database_url)
    store.commit([Change(f"t{number}", tool(f"t{number}", tags=[f"x{number}"])) for number in range(200)])
    with MongoClient[dict[str, Any]](mongo_database_url) as client:
        database = client.get_default_database()
        database.command("profile", 2)
        for text in ("x77", "x77 more"):
            store.text_candidates([Search.of(text).lookup("x77")], limit=9)
        database.command("profile", 0)
        asked = list(database["system.profile"].find({"command.find": "tools", "command.projection": {"words": 1}}))
    assert len(asked) == 2
    assert all(question["keysExamined"] < 30 for question in asked)
    store.close()


def test_a_commit_whose_answer_was_lost_counts_once(mongo_database_url: str, monkeypatch: pytest.MonkeyPatch):
    store = MongoStore(mongo_database_url)
    store.commit([Change("b", tool("b"))])
    commit = ClientSession.commit_transaction
    lost: list[int] = []

    def commit_and_lose_the_answer(session: ClientSession) -> None:
        commit(session)
        if not lost:
            lost.append(1)
            raise AutoReconnect("the connection broke")

    monkeypatch.setattr(ClientSession, "commit_transaction", commit_and_lose_the_answer)
    changes = [Change("a", tool("a"), expected=None, event={"n": 1}), Change("b", None, event={"n": 2})]
    made, gone = store.commit(changes)
    assert lost
    assert (made.name, made.version, gone.name, gone.version, gone.deleted) == ("a", 1, "b", 2, True)
    assert store.history("a") == [made]
    assert store.history("b")[0] == gone
    assert [entry.payload["n"] for entry in store.outbox()] == [1, 2]
    store.close()


def test_the_first_write_has_the_patience_of_any_other(mongo_database_url: str, monkeypatch: pytest.MonkeyPatch):
    """Only a server that is not there is given up soon; one that was reached may have much to do."""
    now = [0.0]
    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: None)
    monkeypatch.setattr("toolcrib.adapters.mongo.time", clock)
    commit, conflicts = ClientSession.commit_transaction, iter(range(8))

    def commit_after_conflicts(session: ClientSession) -> None:
        if next(conflicts, None) is not None:
            now[0] += 1
            raise OperationFailure("WriteConflict", 112)
        commit(session)

    monkeypatch.setattr(ClientSession, "commit_transaction", commit_after_conflicts)
    store = MongoStore(mongo_database_url, patience=20)
    assert store.commit([Change("a", tool("a"))])[0].version == 1
    assert next(conflicts, None) is None
    store.close()


def test_services_on_one_database(mongo_database_url: str):
    """Four services raise one counter; each reads, adds one, writes, and begins again where it lost."""
    services = [MongoStore(mongo_database_url) for _ in range(4)]
    services[0].commit([Change("a", tool("a", metadata={"n": 0}))])

    def raise_counter(store: MongoStore) -> int:
        conflicts = 0
        for _ in range(8):
            while True:
                record = store.get("a")
                assert record is not None
                document = {**record.document, "metadata": {"n": record.document["metadata"]["n"] + 1}}
                try:
                    store.commit([Change("a", document, expected=record.etag, event={"n": document["metadata"]["n"]})])
                    break
                except ConflictError:
                    conflicts += 1
        return conflicts

    with ThreadPoolExecutor(4) as pool:
        conflicts = sum(pool.map(raise_counter, services))
    record = services[0].get("a")
    assert record is not None
    assert (record.document["metadata"]["n"], record.version) == (32, 33)
    assert [entry.payload["n"] for entry in services[0].outbox()] == list(range(1, 33))
    print(f"32 writes, {conflicts} conflicts, none lost")
    for store in services:
        store.close()


@pytest.mark.timeout(400)
def test_a_killed_primary_costs_a_pause_and_nothing_else(mongo_cluster: MongoCluster):
    url = mongo_cluster.url.replace("/?", f"/killed_{uuid4().hex[:12]}?")
    store = MongoStore(url, patience=60)
    store.commit([Change("first", tool("first"))])
    acknowledged: list[str] = []
    stop = Event()

    def write(prefix: str) -> None:
        number = 0
        while not stop.is_set():
            name = f"{prefix}-{number:05d}"
            store.commit([Change(name, tool(name, tags=[prefix]), expected=None, event={"name": name})])
            acknowledged.append(name)
            number += 1

    with ThreadPoolExecutor(3) as pool:
        writers = [pool.submit(write, prefix) for prefix in ("p", "q", "r")]
        wait_for(lambda: len(acknowledged) > 20, timeout=100)
        mongo_cluster.kill_primary()
        before = len(acknowledged)
        wait_for(lambda: len(acknowledged) > before + 20, timeout=100)
        stop.set()
        for writer in writers:
            writer.result()
    assert store.get("first") is not None
    names = {record.name for record in store.query(parse({"name": {"$ne": "first"}}))}
    assert names == set(acknowledged)
    events = [entry.name for entry in store.outbox(limit=100_000)]
    assert sorted(events) == sorted(acknowledged), "once each"
    assert store.count(ALL) == len(acknowledged) + 1
    store.close()
    print(f"{len(acknowledged)} acknowledged, none missing")

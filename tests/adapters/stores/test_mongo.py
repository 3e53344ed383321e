"""The MongoDB store on its bad days: no server, no replica set, lost answers, a killed primary."""

import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
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


DATA = {
    "tool_id", "tool_metadata", "tool_search_description", "tool_tags", "tool_type", "tool_man_page_doc",
    "tool_api_spec", "tool_custom_actions_dsl_map", "default_tool_usage_credentials",
}  # fmt: skip
EXECUTION = {
    "tool_id", "tool_execution_mode", "tool_source_code_link", "tool_service_url", "tool_policy_rule_uri",
    "tool_system_function_rpc_id", "tool_validation_policy_rule_uri", "tool_validation_mode",
}  # fmt: skip


def test_the_two_tables_are_there_for_mongosh(mongo_database_url: str):
    schema = {"type": "object", "properties": {"text": {"type": "string"}}}
    store = MongoStore(mongo_database_url)
    fields: dict[str, Any] = {
        "tags": ["nlp"], "tool_type": "extractor", "manual": "# a", "metadata": {"stars": 3},
        "actions": {"go": {"call": "execute"}}, "parameters": schema, "credentials": {"api_key": "sealed:xyz"},
        "execution_mode": "batch", "policy_rule_uri": "policies://p", "validation_mode": "strict",
        "validation_policy_rule_uri": "policies://v",
        "binding": {"service_url": "http://s", "system_function_rpc_id": "f", "source_code_link": "http://l"},
    }  # fmt: skip
    store.commit([Change("a", tool("a", **fields)), Change("b", tool("b"))])
    with MongoClient[dict[str, Any]](mongo_database_url) as client:
        database = client.get_default_database()
        assert database["tool_data"].find_one({"tool_id": "a", "tool_tags": "nlp"}) == {
            "tool_id": "a", "tool_metadata": {"stars": 3}, "tool_search_description": "the tool a",
            "tool_tags": ["nlp"], "tool_type": "extractor", "tool_man_page_doc": "# a",
            "tool_api_spec": {"input": schema, "output": {}},
            "tool_custom_actions_dsl_map": {"go": {"call": "execute"}},
            "default_tool_usage_credentials": {"api_key": "********"},
        }  # fmt: skip
        assert database["tool_execution"].find_one({"tool_execution_mode": "batch"}) == {
            "tool_id": "a", "tool_execution_mode": "batch", "tool_policy_rule_uri": "policies://p",
            "tool_source_code_link": "http://l", "tool_service_url": "http://s", "tool_system_function_rpc_id": "f",
            "tool_validation_policy_rule_uri": "policies://v", "tool_validation_mode": "strict",
        }  # fmt: skip
        joined = {"from": "tool_execution", "localField": "tool_id", "foreignField": "tool_id", "as": "runs"}
        for row in database["tool_data"].aggregate([{"$lookup": joined}, {"$sort": {"tool_id": 1}}]):
            assert row.pop("runs")[0].keys() == EXECUTION
            assert row.keys() == DATA
        assert "sealed:xyz" not in str([list(database[name].find()) for name in ("tool_data", "tool_execution")])
        plain = database["tool_data"].find_one({"tool_id": "b"})
        assert plain is not None
        assert (plain["tool_api_spec"], plain["default_tool_usage_credentials"]) == ({}, {})
        store.commit([Change("a", None)])
        assert [row["tool_id"] for row in database["tool_execution"].find()] == ["b"]
    store.close()


def test_a_database_from_before_gets_the_tables_and_what_is_anothers_stays(mongo_database_url: str):
    with MongoClient[dict[str, Any]](mongo_database_url) as client:
        database = client.get_default_database()
        row = {"version": 3, "etag": "e", "at": 0.0, "document": tool("a"), "words": []}
        database["tools"].insert_one({"_id": "a", **row})
        database.create_collection("tool_data", viewOn="tools", pipeline=[{"$project": {"old": "$_id"}}])
        database["tool_execution"].insert_one({"mine": 1})
        for _ in range(2):
            store = MongoStore(mongo_database_url)
            assert [record.definition for record in store.query(ALL)] == [0]
            store.close()
        assert [found.keys() for found in database["tool_data"].find()] == [DATA]
        assert [found["mine"] for found in database["tool_execution"].find()] == [1]


def test_who_may_only_read_can_read(mongod: Path, tmp_path: Path):
    """The server makes nobody an index or a view who may not write."""
    key, port = tmp_path / "key", free_port()
    key.write_text("c2VjcmV0" * 4)
    key.chmod(0o400)
    program = start_mongod(mongod, tmp_path / "mongod", port, "--replSet", "rs0", "--keyFile", str(key))
    here = f"127.0.0.1:{port}"
    try:
        with MongoClient[dict[str, Any]](here, directConnection=True) as client:
            client.admin.command("replSetInitiate", {"_id": "rs0", "members": [{"_id": 0, "host": here}]})
            wait_for(lambda: client.admin.command("hello")["isWritablePrimary"], program)
            client.admin.command("createUser", "root", pwd="secret", roles=["root"])
        with MongoClient[dict[str, Any]](f"mongodb://root:secret@{here}/?directConnection=true") as client:
            client["admin"].command("createUser", "reader", pwd="r", roles=[{"role": "read", "db": "crib"}])
        url = f"mongodb://{{}}@{here}/crib?authSource=admin&serverSelectionTimeoutMS=60000"
        store = MongoStore(url.format("root:secret"))
        store.commit([Change("a", tool("a"))])
        store.close()
        reader = MongoStore(url.format("reader:r"))
        assert [record.name for record in reader.query(ALL)] == ["a"]
        assert "not authorized" in refusal(lambda: reader.commit([Change("b", tool("b"))]))
        reader.close()
    finally:
        program.kill()


def test_a_server_that_takes_its_time_is_waited_for(mongo_url: str, monkeypatch: pytest.MonkeyPatch):
    """Its port accepts, and its first answer comes after the patience with a wrong address is over."""
    upstream = MongoClient[dict[str, Any]](mongo_url)
    upstream.admin.command("ping")
    host, port = next(iter(upstream.nodes))
    upstream.close()
    name, now = f"test_{uuid4().hex[:12]}", [0.0]
    with slow_door(host, port or 0) as (door, opened):

        def sleep(_: float) -> None:
            now[0] += 2
            if now[0] > 4:
                opened.set()
                time.sleep(0.05)

        monkeypatch.setattr("toolcrib.adapters.mongo.time", SimpleNamespace(monotonic=lambda: now[0], sleep=sleep))
        store = MongoStore(f"mongodb://127.0.0.1:{door}/{name}?directConnection=true", patience=1e9)
        assert store.get("a") is None
        assert now[0] > 4
        store.close()
    with MongoClient[dict[str, Any]](mongo_url) as client:
        client.drop_database(name)


@contextmanager
def slow_door(host: str, port: int) -> Iterator[tuple[int, Event]]:
    """A port that accepts at once and passes on to another only when the event is set."""
    opened, pumps = Event(), ThreadPoolExecutor(50)

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        for one in (source, sink):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve(near: socket.socket) -> None:
        with near:
            opened.wait()
            with suppress(OSError), socket.create_connection((host, port)) as far:
                back = pumps.submit(pump, far, near)
                pump(near, far)
                back.result()

    def accept() -> None:
        with suppress(OSError):
            while True:
                pumps.submit(serve, door.accept()[0])

    with socket.create_server(("127.0.0.1", 0)) as door:
        pumps.submit(accept)
        try:
            yield door.getsockname()[1], opened
        finally:
            opened.set()
            door.shutdown(socket.SHUT_RDWR)
            pumps.shutdown()


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

"""Rows 8, 9 and 18: slow queries, a policy service that hangs and runs without end hold up their own caller alone."""

import asyncio
import contextlib
import itertools
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from pymongo import MongoClient
from tests.adapters.stores.specs import tool as document_of
from tests.attacks.conftest import SlowNames
from tests.support.receiver import Answer, Received, Receiver, receiving
from tests.support.stores import STORES
from tests.support.waiting import PATIENCE, until, wait_until

from toolcrib import Binding, Tool, ToolSpec, tool
from toolcrib.bootstrap import System, open_store
from toolcrib.bootstrap.binding import Binder
from toolcrib.calling.blocking import READS, SCANS, WRITES, in_thread
from toolcrib.calling.call import Calls
from toolcrib.calling.places import CALLER
from toolcrib.calling.sharing import shared_runs
from toolcrib.catalogue.finding import search_entries
from toolcrib.core.errors import QueryBudgetError
from toolcrib.core.query import ALL, Filter, parse
from toolcrib.core.query.budget import BUDGET, LIMITS, QueryBudget, QueryLimits, looked_at
from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.ports import Change, Record, Store
from toolcrib.settings import load_settings
from toolcrib.surfaces.http.application import Application
from toolcrib.surfaces.service import application_of

ON = ["sqlite", "mongo"]
"""The stores that an organisation runs a service on."""


@dataclass
class Served:
    """The service in this process, credentials required."""

    system: System
    app: Application
    clients: contextlib.AsyncExitStack

    async def as_role(self, role: str, name: str) -> httpx.AsyncClient:
        token, record = new_token(name, Role.parse(role), now=time.time())
        self.system.tokens.add(record)
        client = httpx.AsyncClient(
            transport=httpx.ASGITransport(self.app, client=("127.0.0.1", 50_000)),
            base_url="http://127.0.0.1:8000",
            headers={"authorization": f"Bearer {token}"},
        )
        await self.clients.enter_async_context(client)
        assert (await client.get("/tools/none-of-these")).status_code == 404  # the gate knows the token from now on
        return client


@contextlib.asynccontextmanager
async def served(
    store: str,
    folder: Path,
    *,
    functions: dict[str, Any] | None = None,
    kept: dict[str, Any] | None = None,
    **changes: Any,
) -> AsyncIterator[Served]:
    settings = load_settings({"HOME": str(folder), "TOOLCRIB_DATA_DIR": str(folder / "data")}, folder)
    opened = System(settings.with_changes("test", store=store, auth="required", **changes), functions or {})
    vars(opened).update(kept or {})
    async with contextlib.AsyncExitStack() as clients:
        yield Served(opened, application_of(opened), clients)
    opened.close()


@pytest.fixture(params=ON)
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))


class HangingStore:
    """A real store whose queries for the tag ``slow`` do not come back until they may."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.may_go_on = threading.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def close(self) -> None:
        self._store.close()

    def query(self, where: Filter, *, limit: int | None = None, after: str | None = None) -> list[Record]:
        if "slow" in repr(where):
            assert self.may_go_on.wait(PATIENCE)
        return self._store.query(where, limit=limit, after=after)


async def test_slow_queries_of_one_reader_hold_up_nobody_else(address: str, tmp_path: Path):
    hanging = HangingStore(open_store(address))
    with contextlib.closing(hanging):
        await _attacked_by_slow_queries(hanging, address, tmp_path)


async def _attacked_by_slow_queries(hanging: HangingStore, address: str, tmp_path: Path) -> None:
    async with served(address, tmp_path, kept={"store": hanging}) as service:
        attacker, reader = await service.as_role("reader", "mallory"), await service.as_role("reader", "ada")
        service.system.catalogue.publish(ToolSpec(name="a", description="A tool.", tags=("web",)))
        asked = [asyncio.create_task(attacker.get("/tools/query/by-tag?tag=slow")) for _ in range(300)]
        try:
            await until(lambda: READS.places.busy == 8 and READS.places.waiting == 200)
            for path in (
                "/tools",
                "/tools/a",
                "/tools/query/by-tag?tag=web",
                "/tools/search?q=tool",
                "/tools/a/history",
            ):
                assert (await reader.get(path)).status_code == 200
            graph = await reader.post("/graphql", json={"query": "{ tools { tool_id } }"})
            assert graph.json() == {"data": {"tools": [{"tool_id": "a"}]}}
            assert (await reader.get("/readyz")).status_code == 200
        finally:
            hanging.may_go_on.set()
            answers = await asyncio.gather(*asked)
    refused = [answer for answer in answers if answer.status_code != 200]
    assert len(refused) == 300 - 8 - 200
    assert {(answer.status_code, answer.json()["code"]) for answer in refused} == {(503, "overloaded")}
    assert all("your requests wait" in answer.json()["detail"] and answer.headers["retry-after"] for answer in refused)
    await until(lambda: READS.places.busy == 0)


async def test_large_reads_of_many_callers_hold_up_no_short_one(address: str, tmp_path: Path):
    """More callers than there are threads for short reads, each with one query that may look at every tool."""
    hanging = HangingStore(open_store(address))
    with contextlib.closing(hanging):
        async with served(address, tmp_path, kept={"store": hanging}) as service:
            service.system.catalogue.publish(ToolSpec(name="a", description="A tool.", tags=("web",)))
            reader = await service.as_role("reader", "ada")
            crowd = [await service.as_role("reader", f"caller-{number}") for number in range(READS.places.most + 1)]
            slow = {"tool_tags": {"$regex": "slow"}}
            asked = [asyncio.create_task(one.post("/tools/query/generic", json=slow)) for one in crowd]
            try:
                await until(lambda: SCANS.places.busy + SCANS.places.waiting == len(crowd))
                for path in ("/tools", "/tools/a", "/tools/query/by-tag?tag=web", "/tools/a/history"):
                    assert (await reader.get(path)).status_code == 200
            finally:
                hanging.may_go_on.set()
                answers = await asyncio.gather(*asked)
    assert {answer.status_code for answer in answers} == {200}


@pytest.fixture
def policy_service() -> Iterator[tuple[Receiver, threading.Event]]:
    receiver, may_answer = Receiver(), threading.Event()

    def hang(_: Received) -> Answer:
        may_answer.wait(PATIENCE)
        return 200, {}, b'{"allow": true}'

    receiver.answer = hang
    yield receiver, may_answer
    may_answer.set()
    receiver.stop()


async def test_a_policy_service_that_hangs_holds_up_no_read(
    address: str, tmp_path: Path, policy_service: tuple[Receiver, threading.Event]
):
    receiver, may_answer = policy_service
    changes: dict[str, Any] = {
        "policy": "webhook",
        "policy_webhook_url": receiver.url,
        "policy_webhook_timeout": PATIENCE,
    }
    async with served(address, tmp_path, **changes) as service:
        publisher, reader = await service.as_role("publisher", "mallory"), await service.as_role("reader", "ada")
        written = [
            asyncio.create_task(publisher.post("/tools", json={"tool_id": f"t{number}", "tool_type": "x"}))
            for number in range(120)
        ]
        try:
            await until(lambda: len(receiver.received) == 8 and WRITES.places.waiting == 112)
            for client in (reader, publisher):
                assert (await client.get("/tools")).json() == []
                assert (await client.get("/tools/t0")).status_code == 404
            assert READS.places.busy == 0
        finally:
            may_answer.set()
            answers = await asyncio.gather(*written)
        assert {answer.status_code for answer in answers} == {201}


@pytest.mark.parametrize("door", ["rest", "mcp"])
async def test_runs_of_one_caller_leave_places_for_the_others(tmp_path: Path, door: str):
    begun, may_end = list[str](), asyncio.Event()

    async def wait() -> str:
        begun.append("wait")
        await may_end.wait()
        return "waited"

    async def quick() -> str:
        return "quick"

    async with served("memory:", tmp_path, functions={"wait": wait, "quick": quick}, max_runs=4) as service:
        for name in ("wait", "quick"):
            spec = ToolSpec(name=name, description="A function.", binding=Binding(system_function_rpc_id=name))
            service.system.catalogue.publish(spec)
        attacker, agent = await service.as_role("runner", "mallory"), await service.as_role("runner", "ada")
        async with service.app.router.lifespan_context(service.app):
            run = {"rest": _run_by_rest, "mcp": _run_by_mcp}[door]
            waiting = [asyncio.create_task(run(attacker, "wait")) for _ in range(2 + 4)]
            try:
                await until(lambda: len(begun) == 2)
                answer = await run(agent, "quick")
                assert "quick" in answer.text, answer.text
                assert len(begun) == 2
                over = await run(attacker, "quick")
                assert "your requests wait for runs" in over.text, over.text
            finally:
                may_end.set()
                answers = await asyncio.gather(*waiting)
            assert all("waited" in answer.text for answer in answers)


async def _run_by_rest(client: httpx.AsyncClient, name: str) -> httpx.Response:
    return await client.post(f"/tools/{name}/run", json={})


async def _run_by_mcp(client: httpx.AsyncClient, name: str) -> httpx.Response:
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": {}}}
    headers = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
    return await client.post("/mcp", json=call, headers=headers)


async def test_an_abandoned_thread_keeps_its_place_until_it_ends():
    begun, may_end = list[threading.Thread](), threading.Event()

    @tool(timeout_seconds=0.01)
    def stuck() -> None:
        """Goes on past its deadline."""
        begun.append(threading.current_thread())
        may_end.wait(PATIENCE)

    @tool
    async def quick() -> int:
        """Is done at once."""
        return 1

    calls = Calls({"stuck": stuck, "quick": quick}.__getitem__, layers=(shared_runs(2),))
    CALLER.set("mallory")
    assert (await calls.execute("stuck", {})).error_code == "timeout"
    behind = asyncio.create_task(calls.execute("quick", {}))
    CALLER.set("ada")
    assert (await calls.execute("quick", {})).data == 1
    assert not behind.done()
    may_end.set()
    assert (await behind).data == 1


async def test_work_ends_when_its_caller_goes_away():
    LIMITS.set(QueryLimits(seconds=0))
    CALLER.set("mallory")

    def look_for_ever() -> None:
        while True:
            BUDGET.get() and BUDGET.get().check()  # type: ignore[union-attr]

    task = asyncio.create_task(in_thread(READS, look_for_ever))
    await until(lambda: READS.places.busy == 1)
    task.cancel()
    await until(lambda: READS.places.busy == 0)
    assert task.cancelled()


# Budgets, in every store


@pytest.fixture
def filled(store_url: str) -> Iterator[Store]:
    store = open_store(store_url)
    documents = [document_of(f"t{number:03}", manual="it takes a text " * 20) for number in range(400)]
    store.commit([Change(document["name"], document) for document in documents])
    yield store
    store.close()


def within(limits: QueryLimits, action: Callable[[], object]) -> object:
    token = BUDGET.set(QueryBudget(limits, time.thread_time))
    try:
        return action()
    finally:
        BUDGET.reset(token)


NOWHERE = parse({"manual": {"$regex": "(text|takes)[^ ]*a"}})
"""Each piece of it is in every tool and all of it in none: no store can tell without looking at them one by one."""


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (QueryLimits(documents=300), "looks at more than the 300 tools"),
        (QueryLimits(pattern_steps=50_000), "regular expressions .* read more text"),
        (QueryLimits(seconds=1e-6), "took more than the 1e-06 s"),
    ],
)
def test_a_query_past_its_budget_ends_and_the_store_goes_on(filled: Store, limits: QueryLimits, reason: str):
    for ask in (lambda: filled.query(NOWHERE), lambda: filled.count(NOWHERE)):
        with pytest.raises(QueryBudgetError, match=reason):
            within(limits, ask)
    for _ in range(3):
        assert filled.query(NOWHERE) == []
        assert len(filled.query(ALL)) == filled.count(ALL) == 400


def test_an_answer_past_its_budget_is_refused(filled: Store):
    small = QueryLimits(characters=100_000)
    with pytest.raises(QueryBudgetError, match="more than the 100000 characters"):
        within(small, lambda: filled.query(ALL))
    assert len(within(small, lambda: filled.query(ALL, limit=5))) == 5  # type: ignore[arg-type]
    with pytest.raises(QueryBudgetError, match="more than the 10 characters"):
        within(QueryLimits(characters=10), lambda: filled.history("t000"))


@pytest.mark.parametrize(
    "where",
    [
        {"metadata.x": {"$in": [*range(1, 1001)]}},
        {"$or": [{"metadata.x": {"$elemMatch": {"$gt": number}}} for number in range(1, 20)]},
        {"$or": [{"metadata.x": {"$gt": number}} for number in range(1, 200)]},
        {"$or": [{"metadata.x": [*[0] * 900, number]} for number in range(1, 20)]},
        {"$or": [{"metadata.y.z": number} for number in range(1, 20)]},
        {"$or": [{"metadata.y": {"$elemMatch": {"z": number}}} for number in range(1, 20)]},
    ],
)
def test_one_long_document_is_no_way_past_the_budget(where: dict[str, Any]):
    """60,000 numbers in one tool, each compared with a thousand, took 38 s: the time was looked at between tools."""
    document = {"metadata": {"x": [0] * 3000, "y": [{"z": 0}] * 3000}}
    assert not parse(where).matches(document)
    ticks = itertools.count()
    token = BUDGET.set(QueryBudget(QueryLimits(seconds=1), lambda: float(next(ticks))))
    try:
        with pytest.raises(QueryBudgetError, match="took more than the 1 s"):
            parse(where).matches(document)
    finally:
        BUDGET.reset(token)


def test_the_reasons_of_a_search_are_within_its_budget(filled: Store):
    """A thousand hits with long texts took 9 s: nobody looked at the time meanwhile."""

    def looks(limit: int) -> int:
        ticks = itertools.count()
        token = BUDGET.set(QueryBudget(QueryLimits(seconds=0), lambda: float(next(ticks))))
        try:
            assert len(search_entries(filled, "takes text", limit, ALL)) == limit
        finally:
            BUDGET.reset(token)
        return next(ticks)

    assert looks(400) - looks(80) >= 320 // 16


def test_a_budget_that_is_enough_changes_nothing(filled: Store):
    where = parse({"manual": {"$regex": "takes.*text"}, "name": {"$gte": "t200"}})
    assert within(QueryLimits(), lambda: filled.query(where, limit=3)) == filled.query(where, limit=3)
    assert within(QueryLimits(), lambda: filled.count(where)) == 200


def test_sqlite_ends_a_statement_that_gives_no_row(tmp_path: Path):
    """The work is all in SQLite, which is asked whether it may go on."""
    store = open_store(f"sqlite:///{tmp_path}/tools.db")
    store.commit([Change(name, document_of(name)) for name in (f"t{number:04}" for number in range(2000))])
    nothing = parse({"description": {"$regex": "nobody wrote this", "$options": "i"}})
    budget = QueryBudget(QueryLimits(seconds=0), time.thread_time)
    budget.stop()
    token = BUDGET.set(budget)
    with pytest.raises(QueryBudgetError):
        store.query(nothing)
    BUDGET.reset(token)
    assert store.query(nothing) == []
    assert len(store.query(ALL)) == 2000
    store.close()


def test_mongodb_ends_what_it_does_for_a_query(mongo_database_url: str):
    store = open_store(mongo_database_url)
    text = "abcdefghij klmnopqrst " * 2500
    for start in range(0, 240, 24):
        names = [f"t{number:03}" for number in range(start, start + 24)]
        store.commit([Change(name, document_of(name, manual=text)) for name in names])
    slow = parse({"$or": [{"manual": {"$regex": f"[a-h ]{{1,9}}[c-t ]{{1,9}}Q{number}"}} for number in range(20)]})
    with pytest.raises(QueryBudgetError, match="took more than"):
        within(QueryLimits(seconds=0.05), lambda: store.query(slow))
    with MongoClient[dict[str, Any]](mongo_database_url) as client:
        database = client.get_default_database()

        def nothing_goes_on() -> bool:
            begun = client.admin.aggregate([{"$currentOp": {}}, {"$match": {"ns": f"{database.name}.tools"}}])
            return not list(begun)

        wait_until(nothing_goes_on)
    assert len(store.query(parse({"name": "t000"}))) == 1
    store.close()


async def test_the_service_says_which_budget_ran_out(address: str, tmp_path: Path):
    async with served(address, tmp_path, query_seconds=1e-6) as service:
        reader = await service.as_role("reader", "ada")
        specs = [ToolSpec(name=f"t{number}", description="A tool of many words.") for number in range(40)]
        service.system.catalogue.publish_many(specs)
        asked = {
            "list": reader.get("/tools"),
            "query": reader.post("/tools/query/generic", json={"tool_man_page_doc": {"$regex": "x.*y"}}),
            "search": reader.get("/tools/search?q=words"),
        }
        for what, asking in asked.items():
            answer = await asking
            assert (answer.status_code, answer.json()["code"]) == (400, "query_budget"), (what, answer.text)
            assert "s of work that one query may" in answer.json()["detail"]
        assert (await reader.get("/tools/t0")).status_code == 200


async def test_a_library_pays_nothing_for_budgets():
    """Nobody set limits, nobody is named: no budget, and no place in a line."""
    looked_at()
    assert await in_thread(READS, lambda: (BUDGET.get(), READS.places.busy)) == (None, 0)


async def test_names_that_take_long_keep_no_other_callers_tools_from_their_services(
    slow_names: SlowNames,
) -> None:
    """Whoever publishes a tool chooses the name of its service, and how long its own name server takes to answer."""

    def service(name: str, url: str) -> Tool:
        return bind(
            ToolSpec(name=name, description="Asks.", binding=Binding(service_url=url), timeout_seconds=PATIENCE)
        )

    settings = load_settings({}).with_changes("test", allowed_addresses=["localhost", "*.slow.example"])
    bind = Binder(settings, lambda: None, {}, ())  # type: ignore[arg-type,return-value]
    CALLER.set("eve")
    endless = [asyncio.create_task(service("slow", f"http://{n}.slow.example/").execute({})) for n in range(32)]
    CALLER.set("ada")
    try:
        await until(lambda: slow_names.fill_the_loop)
        with receiving() as receiver:
            receiver.answer = lambda _: (200, {"Content-Type": "application/json"}, b"1")
            assert await service("quick", receiver.url.replace("127.0.0.1", "localhost")).execute({}) == 1
    finally:
        slow_names.answer()
        for call in endless:
            call.cancel()
        await asyncio.wait(endless)
        bind.close()

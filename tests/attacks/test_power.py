"""Least power: who runs tools cannot change one, who changes tools cannot run one, and refusals are on record."""

import sqlite3
import time
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from pymongo import MongoClient
from tests.support.stores import STORES
from tests.surfaces.conftest import Serve, serve, system_of
from tests.surfaces.http.bundles import bundle

from toolcrib.bootstrap import open_system
from toolcrib.core.errors import ToolcribError
from toolcrib.core.limits import TokenLimits
from toolcrib.core.roles import Principal, Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import Settings, load_settings
from toolcrib.surfaces.backups import backup, restore

__all__ = ["serve"]

Headers = dict[str, str]
Crew = Callable[..., Headers]


@pytest.fixture(params=["sqlite", "mongo"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    store_url = STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))
    return load_settings(
        {
            "HOME": str(tmp_path), "TOOLCRIB_DATA_DIR": str(tmp_path / "data"), "TOOLCRIB_STORE": store_url,
            "TOOLCRIB_AUTH": "required",
        },
        tmp_path,
    )  # fmt: skip


@pytest.fixture
async def service(serve: Serve, settings: Settings) -> httpx.AsyncClient:
    return await serve(settings)


@pytest.fixture
def crew(service: httpx.AsyncClient) -> Crew:
    """The headers of somebody with these roles."""

    def member(name: str, *roles: str) -> Headers:
        token, record = new_token(name, *map(Role, roles or (name,)), now=time.time())
        system_of(service).tokens.add(record)
        return {"authorization": f"Bearer {token}"}

    return member


def entry(name: str, *tags: str, **changes: Any) -> dict[str, Any]:
    return {"tool_id": name, "tool_tags": list(tags), "tool_search_description": "A tool.", **changes}


async def mcp(client: httpx.AsyncClient, method: str, headers: Headers, **params: Any) -> httpx.Response:
    accepted = {"accept": "application/json, text/event-stream", **headers}
    return await client.post(
        "/mcp", json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params}, headers=accepted
    )


async def events(client: httpx.AsyncClient, admin: Headers, **wanted: str) -> list[tuple[str, ...]]:
    """What is on record, oldest first: the rule is what a refusal's detail begins with."""
    found = (await client.get("/audit", params=wanted, headers=admin)).json()
    keys = ("principal", "action", "tool", "outcome")
    return [(*(event[key] for key in keys), event["detail"].partition(":")[0]) for event in reversed(found)]


# Roles


async def test_publishing_is_not_running(service: httpx.AsyncClient, crew: Crew) -> None:
    publisher, runner, both = crew("publisher"), crew("runner"), crew("both", "runner", "publisher")
    assert (await service.post("/tools", json=entry("a"), headers=runner)).status_code == 403
    assert (await service.post("/tools", json=entry("a"), headers=publisher)).status_code == 201
    refused = await service.post("/tools/a/run", json={}, headers=publisher)
    assert refused.status_code == 403
    assert "'publisher' has the role 'publisher' and this needs 'runner'" in refused.json()["detail"]
    assert (await mcp(service, "tools/list", publisher)).status_code == 403
    assert (await mcp(service, "tools/list", runner)).status_code == 200
    for allowed in (runner, both):
        assert (await service.post("/tools/a/run", json={}, headers=allowed)).json()["error_code"] == "invalid_tool"
    assert (await service.delete("/tools/a", headers=runner)).status_code == 403
    assert (await service.post("/tools", json=entry("b"), headers=both)).status_code == 201


# The audit


_TAKEN = "a tool called 'tool-123' exists already; choose another name or replace it"


async def _upload(client: httpx.AsyncClient, headers: Headers) -> httpx.Response:
    return await client.post("/tools/upload", files={"file": bundle()}, headers=headers)


async def test_what_fails_and_what_is_refused_is_on_record(service: httpx.AsyncClient, crew: Crew) -> None:
    worker, admin = crew("worker", "runner", "publisher"), crew("admin")
    await _upload(service, worker)
    await service.post("/tools", json=entry("unbound"), headers=worker)
    before = len(await events(service, admin))
    assert (await _upload(service, worker)).status_code == 409
    assert (await service.post("/tools/nobody/run", json={}, headers=worker)).status_code == 404
    assert (await service.post("/tools/unbound/run", json={}, headers=worker)).status_code == 400
    assert (await mcp(service, "tools/call", worker, name="ghost", arguments={})).status_code == 200
    assert (await events(service, admin))[before:] == [
        ("worker", "update", "tool-123", "attempt", ""),
        (
            "worker",
            "update",
            "tool-123",
            "failed",
            "a tool called 'tool-123' exists already; choose another name or replace it",
        ),
        ("worker", "run", "nobody", "attempt", ""),
        ("worker", "run", "nobody", "failed", "tool_not_found"),
        ("worker", "run", "unbound", "attempt", ""),
        ("worker", "run", "unbound", "failed", "invalid_tool"),
        ("worker", "run", "ghost", "attempt", ""),
        ("worker", "run", "ghost", "failed", "tool_not_found"),
    ]


async def test_a_refusal_by_role_is_on_record(service: httpx.AsyncClient, crew: Crew) -> None:
    reader, admin = crew("reader"), crew("admin")
    attempts: dict[tuple[str, str], Awaitable[httpx.Response]] = {
        ("create", ""): service.post("/tools", json=entry("a"), headers=reader),
        ("update", "a"): service.put("/tools/a", json={"tool_type": "x"}, headers=reader),
        ("update", "b"): service.post("/tools/b/restore", json={"version": 1}, headers=reader),
        ("delete", "a"): service.delete("/tools/a", headers=reader),
        ("run", "a"): service.post("/tools/a/run", json={}, headers=reader),
        ("run", "ghost"): mcp(service, "tools/call", {**reader, "mcp-name": "ghost"}, name="ghost"),
        ("read", ""): service.get("/audit", headers=reader),
    }
    for attempt in attempts.values():
        assert (await attempt).status_code == 403
    assert await events(service, admin) == [
        ("reader", action, tool, outcome, "role" if outcome == "refused" else "")
        for action, tool in attempts
        for outcome in ("attempt", "refused")
    ]


async def test_nobody_fills_the_disk_with_refusals(service: httpx.AsyncClient, crew: Crew) -> None:
    reader, admin = crew("reader"), crew("admin")
    for _ in range(30):
        assert (await service.get("/audit", headers=reader)).status_code == 403
        assert (await service.post("/tools/a/run", json={})).status_code == 401
    assert len(await events(service, admin, outcome="refused")) == 10, "reads of one caller; nobody's are in no audit"


async def test_what_a_caller_wrote_goes_on_record_within_bounds(service: httpx.AsyncClient, crew: Crew) -> None:
    runner, admin = crew("runner"), crew("admin")
    assert (await service.post(f"/tools/{'x' * 5000}/run", json={}, headers=runner)).status_code in {400, 404}
    await mcp(service, "tools/call", runner, name="y" * 5000, arguments={})
    call = r'{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "\ud800", "arguments": {}}}'
    headers = {"accept": "application/json, text/event-stream", "content-type": "application/json", **runner}
    assert (await service.post("/mcp", content=call, headers=headers)).status_code < 500
    recorded = [tool for _, _, tool, *_ in await events(service, admin, principal="runner", outcome="failed")]
    assert recorded and {"x" * 200, "y" * 200} >= set(recorded) - {"?"}, recorded


# Tokens with limits


@pytest.fixture
def limited(service: httpx.AsyncClient) -> Callable[..., Headers]:
    """The headers of somebody who may read, run and publish within limits."""

    def member(**limits: Any) -> Headers:
        roles = (Role.RUNNER, Role.PUBLISHER)
        token, record = new_token("few", *roles, now=time.time(), limits=TokenLimits(**limits))
        system_of(service).tokens.add(record)
        return {"authorization": f"Bearer {token}"}

    return member


Limited = Callable[..., Headers]


async def listed_by_mcp(client: httpx.AsyncClient, headers: Headers) -> list[str]:
    return [tool["name"] for tool in (await mcp(client, "tools/list", headers)).json()["result"]["tools"]]


async def seen(client: httpx.AsyncClient, headers: Headers) -> set[frozenset[str]]:
    """The names of the tools that each way of listing shows; one set if they agree."""
    lists = [
        (await client.get("/tools", headers=headers)).json(),
        (await client.get("/tools/query/by-type?type=t", headers=headers)).json(),
        (await client.post("/tools/query/generic", json={}, headers=headers)).json(),
        [hit["tool"] for hit in (await client.get("/tools/search?q=tool", headers=headers)).json()],
        (await client.post("/graphql", json={"query": "{ tools { tool_id } }"}, headers=headers)).json()["data"][
            "tools"
        ],
        [{"tool_id": name} for name in await listed_by_mcp(client, headers) if name != "read_result"],  # of the door
    ]
    return {frozenset(tool["tool_id"] for tool in tools) for tools in lists}


async def test_a_limited_token_sees_and_runs_its_tools_alone(
    service: httpx.AsyncClient, crew: Crew, limited: Limited
) -> None:
    admin = crew("admin")
    for name, tag in (("a", "nlp"), ("b", "nlp"), ("c", "pay")):
        made = entry(name, tag, tool_type="t", tool_service_url="https://tools.example.org/x")
        assert (await service.post("/tools", json=made, headers=admin)).status_code == 201
    assert (await _upload(service, admin)).status_code == 200
    link = (await service.get("/tools/tool-123", headers=admin)).json()["tool_source_code_link"]
    bundle_path = httpx.URL(link).path
    one, nlp, neither = limited(tools=("a",)), limited(tags=("nlp",)), limited(tools=("c",), tags=("nlp",))
    assert await seen(service, one) == {frozenset({"a"})}
    only_tagged = {path - {"tool-123"} for path in await seen(service, nlp)}
    assert only_tagged == {frozenset({"a", "b"})}
    assert await seen(service, neither) == {frozenset()}, "every limit must hold"
    for path in (
        "/tools/c",
        "/tools/c/history",
        "/tools/c/history/1",
        "/tools/c/compatible",
        "/tools/tool-123/tool.zip",
    ):
        refused = await service.get(path, headers=one)
        assert (refused.status_code, refused.json()["code"]) == (403, "denied"), path
    assert (await service.get(bundle_path, headers=one)).status_code == 404
    assert (await service.get(bundle_path, headers=nlp)).status_code == 200
    refused = await service.post("/tools/c/run", json={}, headers=one)
    assert refused.status_code == 403
    assert (refused.json()["error_code"], refused.json()["metadata"]["rule"]) == ("denied", "token_limit")
    assert "the token of 'few' does not let it run 'c': it is for 'a' only" in refused.json()["error"]
    called = await mcp(service, "tools/call", one, name="c", arguments={})
    assert "it is for 'a' only" in called.text
    recorded = await events(service, admin, principal="few", action="run", outcome="refused")
    assert recorded == [("few", "run", "c", "refused", "token_limit")] * 2
    actions = limited(actions=("read",))
    assert (await service.get("/tools/c", headers=actions)).status_code == 200
    assert (await service.post("/tools/c/run", json={}, headers=actions)).status_code == 403
    assert (await service.delete("/tools/c", headers=actions)).status_code == 403
    assert (await service.get("/tools/c", headers=limited(actions=("run",)))).status_code == 403


async def test_nobody_writes_out_of_a_limited_token(service: httpx.AsyncClient, crew: Crew, limited: Limited) -> None:
    admin, nlp = crew("admin"), limited(tags=("nlp",))
    assert (await service.post("/tools", json=entry("pay", "pay"), headers=admin)).status_code == 201
    assert (await service.post("/tools", json=entry("mine", "nlp"), headers=nlp)).status_code == 201
    attempts = [
        service.post("/tools", json=entry("new", "pay"), headers=nlp),
        service.post("/tools", json=entry("new"), headers=nlp),
        service.put("/tools/mine", json={"tool_tags": ["pay"]}, headers=nlp),
        service.put("/tools/pay", json={"tool_tags": ["nlp"]}, headers=nlp),
        service.post("/tools?replace=true", json=entry("pay", "nlp"), headers=nlp),
        service.post("/tools/pay/restore", json={"version": 1}, headers=nlp),
        service.delete("/tools/pay", headers=nlp),
        service.post("/tools", json=entry("other", "nlp"), headers=limited(tools=("mine",))),
    ]
    for attempt in attempts:
        refused = await attempt
        assert refused.status_code == 403, refused.text
    rules = {rule for *_, rule in await events(service, admin, principal="few", outcome="refused")}
    assert rules == {"token_limit"}
    assert len(await events(service, admin, principal="few", outcome="refused")) == len(attempts)
    assert (await service.get("/tools/pay", headers=admin)).json()["tool_tags"] == ["pay"]
    assert (await service.put("/tools/mine", json={"tool_tags": ["nlp", "pay"]}, headers=nlp)).status_code == 200
    assert (await service.delete("/tools/mine", headers=nlp)).status_code == 200


async def test_a_limited_token_is_told_nothing_of_other_tools(
    service: httpx.AsyncClient, crew: Crew, limited: Limited
) -> None:
    """Neither that a name is taken, nor which version is there, nor what a tool is bound to, nor who names one."""
    admin, one = crew("admin"), limited(tools=("a",))
    bound = entry("pay", tool_system_function_rpc_id="secret.module:pay")
    assert (await service.post("/tools", json=bound, headers=admin)).status_code == 201
    assert (await service.post("/tools", json=entry("gone"), headers=admin)).status_code == 201
    assert (await service.delete("/tools/gone", headers=admin)).status_code == 200
    assert (await _upload(service, admin)).status_code == 200
    assert (await service.post("/tools", json=entry("a"), headers=one)).status_code == 201
    system_of(service).catalogue.update("pay", compatibilities=["a"])
    stale = {**one, "if-match": '"0"'}
    attempts = [
        service.post("/tools", json=entry("pay"), headers=one),
        service.put("/tools/pay", json={"tool_type": "x"}, headers=stale),
        service.delete("/tools/pay", headers=stale),
        service.post("/tools/pay/restore", json={"version": 99}, headers=one),
        service.post("/tools/gone/restore", json={"version": 99}, headers=one),
        service.post("/tools/pay/run", json={}, headers=one),
        _upload(service, one),
    ]
    for attempt in attempts:
        refused = await attempt
        assert refused.status_code == 403 and "it is for 'a' only" in refused.text, refused.text
        assert "secret" not in refused.text and "exists" not in refused.text
    told = await service.post("/tools/pay/run", json={}, headers=crew("runner"))
    assert told.status_code != 403 and "secret.module:pay" in told.text, "who may run it learns why it cannot run"
    in_use = await service.delete("/tools/a", headers=one)
    assert in_use.status_code == 409
    assert "'a' is named by tools that you may not see" in in_use.json()["detail"] and "pay" not in in_use.text


async def test_a_refused_read_is_on_record_through_every_door(
    service: httpx.AsyncClient, crew: Crew, limited: Limited
) -> None:
    admin, one = crew("admin"), limited(tools=("a",))
    for name in ("b", "c"):
        assert (await service.post("/tools", json=entry(name), headers=admin)).status_code == 201
    assert (await service.get("/tools/b", headers=one)).status_code == 403
    query = (
        '{ b: tool(tool_id: "b") { tool_id } c: tool(tool_id: "c") { tool_id } none: tool(tool_id: "d") { tool_id } }'
    )
    told = await service.post("/graphql", json={"query": query}, headers=one)
    assert [error["extensions"]["code"] for error in told.json()["errors"]] == ["denied", "denied"]
    await service.get("/graphql", params={"query": query}, headers=one)
    recorded = await events(service, admin, principal="few", outcome="refused")
    assert recorded == [("few", "read", tool, "refused", "token_limit") for tool in ("b", "b", "c", "b", "c")]


def test_tokens_of_the_first_release_go_on(settings: Settings) -> None:
    """Their file has no column for limits, their documents no field."""
    kept = {"id": "0a", "name": "ci", "role": "publisher", "created_at": 1.0, "expires_at": 0.0}
    if settings.store_url.startswith("mongodb"):
        with MongoClient[dict[str, Any]](settings.store_url) as client:
            client.get_default_database()["tokens"].insert_one({"_id": "d", **kept})
    else:
        settings.data_folder.mkdir()
        with closing(sqlite3.connect(settings.data_folder / "tokens.db")) as file, file:
            file.execute(
                "create table tokens (digest text primary key, id text not null unique, name text not null,"
                " role text not null, created_at real not null, expires_at real not null)"
            )
            file.execute("insert into tokens values ('d', :id, :name, :role, :created_at, :expires_at)", kept)
    limits = TokenLimits(("a", "b"), ("x",), ("read", "run"))
    with open_system(settings) as system:
        found = system.tokens.find("d")
        assert found is not None
        assert (found.name, found.limits, found.principal.limits) == ("ci", TokenLimits(), None)
        _, record = new_token("few", Role.RUNNER, Role.PUBLISHER, now=2.0, limits=limits)
        system.tokens.add(record)
    with open_system(settings) as system:
        assert system.tokens.all() == [found, record]
        assert record.principal.limits == limits


@pytest.mark.parametrize(
    ("roles", "limits"),
    [
        ((), {}),
        ((Role.ADMIN,), {"tools": ("a",)}),
        ((Role.READER,), {"actions": ("fly",)}),
        ((Role.READER,), {"tools": ("?",)}),
    ],
)
def test_a_token_that_makes_no_sense_is_not_made(roles: tuple[Role, ...], limits: dict[str, Any]) -> None:
    with pytest.raises(ToolcribError):
        new_token("x", *roles, now=1.0, limits=TokenLimits(**limits))


# Owners


async def test_only_the_owner_and_an_admin_change_a_tool(service: httpx.AsyncClient, crew: Crew) -> None:
    ada, eve, admin = crew("ada", "publisher"), crew("eve", "publisher", "runner"), crew("admin")
    secret = entry("a", default_tool_usage_credentials={"k": "s"})
    assert (await service.post("/tools", json=secret, headers=ada)).is_success
    assert (await _upload(service, ada)).is_success
    system_of(service).catalogue.publish({"name": "seeded", "description": "By the operator."}, principal="samples")
    changed = entry("a", tool_metadata={"owner": "eve"}, tool_search_description="Stolen.")
    attempts = [
        *(service.put(f"/tools/{name}", json={"tool_type": "x"}, headers=eve) for name in ("a", "tool-123", "seeded")),
        service.put("/tools/a", json={}, headers=eve),
        service.post("/tools?replace=true", json=changed, headers=eve),
        service.post("/tools/upload?replace=true", files={"file": bundle()}, headers=eve),
        service.post("/tools/a/restore", json={"version": 1}, headers=eve),
        *(service.delete(f"/tools/{name}?force=true", headers=eve) for name in ("a", "tool-123", "seeded")),
    ]
    for attempt in attempts:
        refused = await attempt
        assert (refused.status_code, refused.json()["code"]) == (403, "denied"), refused.text
        assert "only the owner of a tool or an administrator changes it" in refused.json()["detail"]
    recorded = await events(service, admin, principal="eve", outcome="refused")
    assert [rule for *_, rule in recorded] == ["owner"] * len(attempts)
    assert (await service.put("/tools/a", json={"tool_type": "x"}, headers=ada)).is_success
    assert (await service.put("/tools/seeded", json={"tool_type": "x"}, headers=ada)).status_code == 403
    assert (await service.put("/tools/seeded", json={"tool_type": "x"}, headers=admin)).is_success
    assert (await service.put("/tools/a", json={"tool_type": "y"}, headers=admin)).is_success
    versions = (await service.get("/tools/a/history", headers=eve)).json()
    assert [version["owner"] for version in versions] == ["ada"] * 3, "an admin's change does not take a tool away"
    assert (await service.get("/tools/a", headers=eve)).json()["default_tool_usage_credentials"] == {"k": "********"}


async def test_a_tool_changes_hands(service: httpx.AsyncClient, crew: Crew) -> None:
    ada, eve = crew("ada", "publisher"), crew("eve", "publisher")
    catalogue = system_of(service).catalogue
    assert (await service.post("/tools", json=entry("a"), headers=ada)).is_success
    assert catalogue.give("a", "eve").owner == "eve"
    assert (await service.delete("/tools/a", headers=ada)).status_code == 403
    assert (await service.delete("/tools/a", headers=eve)).is_success
    assert (await service.post("/tools/a/restore", json={"version": 1}, headers=ada)).is_success, "it was given up"
    assert catalogue.entry("a").owner == "ada"
    catalogue.delete("a")
    catalogue.publish({"name": "a", "description": "By a program of the operator."})
    assert catalogue.entry("a").owner == ""


async def test_who_brings_a_deleted_tool_back_gets_nothing_that_was_not_theirs(
    service: httpx.AsyncClient, crew: Crew
) -> None:
    ada, eve, admin = crew("ada", "publisher"), crew("eve", "publisher"), crew("admin")
    url = {"tool_service_url": "https://tools.example.org/x", "default_tool_usage_credentials": {"k": "s"}}
    catalogue = system_of(service).catalogue

    async def deleted_and_restored(by: Headers) -> tuple[str, dict[str, Any]]:
        assert (await service.delete("/tools/a", headers=admin)).is_success
        assert (await service.post("/tools/a/restore", json={"version": 1}, headers=by)).is_success
        return catalogue.entry("a").owner, catalogue.credentials("a")

    assert (await service.post("/tools", json=entry("a", **url), headers=ada)).is_success
    assert await deleted_and_restored(ada) == ("ada", {"k": "s"})
    assert await deleted_and_restored(admin) == ("ada", {"k": "s"}), "an admin does not take it by bringing it back"
    assert await deleted_and_restored(eve) == ("eve", {})
    assert await deleted_and_restored(admin) == ("eve", {}), "who deletes it does not bring back what eve never had"


@pytest.mark.parametrize("owner", ["x" * 257, "ada\neve", "\ud800"])
async def test_an_owner_is_a_name(service: httpx.AsyncClient, owner: str) -> None:
    catalogue = system_of(service).catalogue
    catalogue.publish({"name": "a", "description": "A."})
    with pytest.raises(ToolcribError, match="is not the name of an owner"):
        catalogue.give("a", owner)


async def test_tools_may_be_shared(serve: Serve, settings: Settings) -> None:
    shared = await serve(settings.with_changes("test", tool_owners="shared"))
    for name in ("ada", "eve"):
        token, record = new_token(name, Role.PUBLISHER, now=time.time())
        system_of(shared).tokens.add(record)
        headers = {"authorization": f"Bearer {token}"}
        assert (await shared.post("/tools?replace=true", json=entry("a"), headers=headers)).is_success
    assert system_of(shared).catalogue.entry("a").owner == "ada"


def test_owners_survive_a_backup(settings: Settings, tmp_path: Path) -> None:
    with open_system(settings) as system:
        system.catalogue.publish({"name": "a", "description": "A."}, principal=Principal("ada", ("publisher",)))
        system.catalogue.give("a", "eve")
    backup(settings, tmp_path / "saved.zip")
    elsewhere = settings.with_changes(
        "test", store=f"json:///{tmp_path}/restored.json", data_dir=str(tmp_path / "other")
    )
    restore(elsewhere, tmp_path / "saved.zip")
    with open_system(elsewhere) as system:
        assert [entry.owner for entry in system.catalogue.history("a")] == ["eve", "ada"]

"""Least power: who runs tools cannot change one, who changes tools cannot run one, and refusals are on record."""

import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.stores import STORES
from tests.surfaces.conftest import Serve, serve, system_of
from tests.surfaces.http.bundles import bundle

from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import Settings, load_settings

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

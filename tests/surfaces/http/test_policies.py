"""A Cedar file decides what is read, through every door; roles come from tokens and from JWTs."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.jwts import AUDIENCE, ISSUER, Keys, signed
from tests.surfaces.conftest import Serve, system_of

from toolcrib import Binding, ToolSpec
from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import Settings

MANAGE = 'permit(principal, action in [Action::"create", Action::"update", Action::"delete", Action::"run"], resource);'
READ = 'permit(principal, action == Action::"read", resource);'
NO_PAYMENTS = """
@id("payments-are-private")
forbid(principal, action == Action::"read", resource)
when { resource has tags && resource.tags.contains("payments") } unless { principal in Role::"treasury" };
"""

READS = (
    "/tools/{}", "/tools/{}/history", "/tools/{}/history/1", "/tools/{}/definition", "/tools/{}/compatible",
    "/tools/{}/tool.zip",
)  # fmt: skip


def entry(name: str, *tags: str) -> dict[str, Any]:
    return {"tool_id": name, "tool_type": f"type-{name}", "tool_tags": list(tags), "tool_search_description": "pays"}


async def governed(serve: Serve, settings: Settings, rules: str, **changes: Any) -> httpx.AsyncClient:
    path = settings.data_folder / "rules.cedar"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(rules)
    return await serve(settings.with_changes("test", policy="cedar", policy_file=str(path), **changes))


async def names(client: httpx.AsyncClient, headers: dict[str, str] | None = None) -> set[frozenset[str]]:
    """What each way of asking for several tools shows."""
    shown = set()
    for path in ("/tools", "/tools/query/by-keyword?keyword=pays", "/tools/query/by-policy-uri?uri="):
        answer = await client.get(path, headers=headers)
        shown.add(frozenset(tool["tool_id"] for tool in answer.json()))
    hits = await client.get("/tools/search?q=pays", headers=headers)
    shown.add(frozenset(hit["tool_id"] for hit in hits.json()))
    generic = await client.post("/tools/query/generic", json={}, headers=headers)
    shown.add(frozenset(tool["tool_id"] for tool in generic.json()))
    graph = await client.post("/graphql", json={"query": "{ tools { tool_id } }"}, headers=headers)
    shown.add(frozenset(tool["tool_id"] for tool in graph.json()["data"]["tools"]))
    return shown


@pytest.mark.parametrize("store", ["memory:", None])
async def test_without_the_read_rule_nothing_is_read(serve: Serve, settings: Settings, store: str | None) -> None:
    client = await governed(serve, settings, MANAGE, store=store)
    for name in ("a", "b"):
        assert (await client.post("/tools", json=entry(name))).status_code == 201
    for path in READS:
        for _ in range(2):  # also what was rendered before
            refused = await client.get(path.format("a"))
            assert (refused.status_code, refused.json()["code"]) == (403, "denied"), path
            assert "no rule permits it" in refused.json()["detail"]
    assert (await client.get("/tools/none")).status_code == 404
    compared = await client.post("/tools/check-compat", json={"tools": ["a", "b"]})
    assert compared.status_code == 403
    assert await names(client) == {frozenset()}
    graph = await client.post("/graphql", json={"query": '{ tool(tool_id: "a") { tool_id } }'})
    assert graph.json()["errors"][0]["extensions"] == {"code": "denied", "status": 403}


async def test_with_the_documented_rule_everything_is_read(serve: Serve, settings: Settings) -> None:
    client = await governed(serve, settings, MANAGE + READ)
    for name in ("a", "b"):
        await client.post("/tools", json=entry(name))
    assert await names(client) == {frozenset(("a", "b"))}
    assert (await client.get("/tools/a")).status_code == 200
    (settings.data_folder / "rules.cedar").write_text(MANAGE)
    assert (await client.get("/tools/a")).status_code == 403, "the rules changed, and the answer was rendered before"


async def test_a_rule_is_named_and_hides_tools_in_lists(serve: Serve, settings: Settings) -> None:
    client = await governed(serve, settings, MANAGE + READ + NO_PAYMENTS)
    await client.post("/tools", json=entry("pay", "payments"))
    await client.post("/tools", json=entry("other"))
    refused = await client.get("/tools/pay")
    assert refused.status_code == 403
    assert "payments-are-private" in refused.json()["detail"]
    assert await names(client) == {frozenset({"other"})}


async def test_roles_come_from_tokens_and_from_jwts(serve: Serve, settings: Settings, tmp_path: Path) -> None:
    keys = Keys()
    (tmp_path / "jwks.json").write_text(keys.jwks("rsa"))
    rules = (
        'permit(principal in Role::"admin", action, resource);'
        'permit(principal in Role::"treasury", action == Action::"read", resource);'
    )
    client = await governed(
        serve, settings, rules, auth="required", jwt_issuer=ISSUER, jwt_audience=AUDIENCE,
        jwt_keys=str(tmp_path / "jwks.json"),
    )  # fmt: skip
    tokens = system_of(client).tokens

    def token(role: Role) -> dict[str, str]:
        text, record = new_token("ada", role, now=time.time())
        tokens.add(record)
        return {"authorization": f"Bearer {text}"}

    def jwt_of(*roles: str) -> dict[str, str]:
        return {"authorization": f"Bearer {signed(keys, role=list(roles))}"}

    for reads in (token(Role.ADMIN), jwt_of("admin"), jwt_of("reader", "treasury")):
        if reads.get("authorization", "").startswith("Bearer tcrib"):
            assert (await client.post("/tools", json=entry("pay"), headers=reads)).status_code == 201
        assert (await client.get("/tools/pay", headers=reads)).status_code == 200
        assert await names(client, reads) == {frozenset({"pay"})}
    for refused in (token(Role.READER), token(Role.PUBLISHER), jwt_of("reader"), jwt_of("publisher", "others")):
        assert (await client.get("/tools/pay", headers=refused)).status_code == 403
        assert await names(client, refused) == {frozenset()}
    writes = jwt_of("publisher", "treasury")
    assert (await client.put("/tools/pay", json={"tool_type": "x"}, headers=writes)).status_code == 403
    writes = jwt_of("publisher", "admin")
    assert (await client.put("/tools/pay", json={"tool_type": "x"}, headers=writes)).status_code == 200


async def rpc(client: httpx.AsyncClient, method: str, **params: Any) -> dict[str, Any]:
    headers = {"accept": "application/json, text/event-stream"}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    answer: dict[str, Any] = (await client.post("/mcp", json=body, headers=headers)).json()
    return answer


async def test_mcp_lists_what_may_be_read(serve: Serve, settings: Settings) -> None:
    client = await governed(serve, settings, MANAGE + READ + NO_PAYMENTS)
    binding = Binding(python="toolcrib.toolsets.scraping:none")
    for name, tags in (("pay", ("payments",)), ("other", ())):
        spec = ToolSpec(name=name, description="x", tags=tags, binding=binding)
        system_of(client).catalogue.publish(spec, principal="ada")
    listed = await rpc(client, "tools/list")
    assert [tool["name"] for tool in listed["result"]["tools"]] == ["other", "read_result"]


@pytest.mark.parametrize("door", ["rest", "mcp"])
async def test_a_run_that_never_began_is_on_record(serve: Serve, settings: Settings, door: str) -> None:
    client = await serve(settings)
    await client.post("/tools", json={"tool_id": "unbound"})
    for name in ("unknown", "unbound"):
        if door == "rest":
            assert (await client.post(f"/tools/{name}/run", json={})).status_code in (400, 404)
        else:
            assert (await rpc(client, "tools/call", name=name, arguments={}))["result"]["isError"]
        events = (await client.get("/audit", params={"action": "run", "tool": name})).json()
        assert [event["outcome"] for event in reversed(events)] == ["attempt", "failed"]
        assert {event["principal"] for event in events} == {"local"}

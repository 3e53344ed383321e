"""What an organisation's registry does beyond the seed's table: addresses, definitions, rules, purges, the manual."""

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.surfaces.conftest import Serve, system_of
from tests.surfaces.http.bundles import SPEC, bundle, code_zip

from toolcrib.core.roles import Role
from toolcrib.core.tokens import new_token
from toolcrib.settings import Settings


async def upload(client: httpx.AsyncClient, content: bytes, **parameters: str) -> httpx.Response:
    answer = await client.post("/tools/upload", files={"file": ("bundle.zip", content)}, params=parameters)
    assert answer.status_code == 200, answer.text
    return answer


async def shown_links(client: httpx.AsyncClient) -> set[str]:
    """The link of the one tool, by every way of reading it."""
    graph = await client.post("/graphql", json={"query": "{ tools { tool_source_code_link } }"})
    return {
        (await client.get("/tools/tool-123")).json()["tool_source_code_link"],
        (await client.get("/tools/tool-123/history/1")).json()["tool_source_code_link"],
        *(tool["tool_source_code_link"] for tool in (await client.get("/tools")).json()),
        *(hit["tool"]["tool_source_code_link"] for hit in (await client.get("/tools/search?q=language")).json()),
        *(tool["tool_source_code_link"] for tool in graph.json()["data"]["tools"]),
    }


@pytest.mark.parametrize(
    ("changes", "base"),
    [({"port": 9100}, "http://127.0.0.1:9100"), ({"public_url": "http://localhost:9000/"}, "http://localhost:9000")],
)
async def test_a_link_is_built_when_it_is_read(
    serve: Serve, settings: Settings, changes: dict[str, Any], base: str
) -> None:
    first = await serve(settings)
    await upload(first, bundle())
    [old] = await shown_links(first)
    assert old.startswith("http://127.0.0.1:8000/bundles/")
    second = await serve(settings.with_changes("test", **changes))
    [link] = await shown_links(second)
    assert link == old.replace("http://127.0.0.1:8000", base)
    code = await second.get(link)
    assert (code.status_code, code.content) == (200, code_zip())

    entry = (await second.get("/tools/tool-123")).json()
    etag = (await second.get("/tools/tool-123")).headers["etag"]
    given_back = await second.put("/tools/tool-123", json=entry)
    assert given_back.headers["etag"] == etag, "an address is no change of the tool"
    await upload(second, bundle(), replace="true")
    elsewhere = await second.put("/tools/tool-123", json={"tool_source_code_link": "https://example.org/tool.zip"})
    assert elsewhere.status_code == 200
    assert (await second.get("/tools/tool-123")).json()["tool_source_code_link"] == "https://example.org/tool.zip"


async def test_who_has_the_link_needs_a_token_unless_bundles_are_public(serve: Serve, settings: Settings) -> None:
    strict = settings.with_changes("test", auth="required")
    private, public = await serve(strict), await serve(strict.with_changes("test", public_bundles=True))
    token, record = new_token("ci", Role.ADMIN, now=0.0)
    system_of(private).tokens.add(record)
    private.headers["authorization"] = f"Bearer {token}"
    await upload(private, bundle())
    link = (await private.get("/tools/tool-123")).json()["tool_source_code_link"]
    del private.headers["authorization"]
    assert (await private.get(link)).status_code == 401
    code = await public.get(link)
    assert (code.status_code, code.content) == (200, code_zip())
    for path in ("/tools/tool-123", "/tools/tool-123/tool.zip", "/tools"):
        assert (await public.get(path)).status_code == 401
    missing = await public.get(f"/bundles/{'0' * 64}/tool.zip")
    assert missing.status_code == 404


async def test_operations_leave_the_definition_alone(client: httpx.AsyncClient) -> None:
    version, digest = "toolcrib-definition-version", "toolcrib-definition-digest"
    made = await client.post("/tools", json={**SPEC, "tool_execution_mode": "sync"})
    before = await client.get("/tools/tool-123")
    assert (made.headers[version], made.headers[digest]) == ("1", before.headers[digest])
    operations = {
        "tool_execution_mode": "batch", "tool_service_url": "https://example.org/run", "tool_validation_mode": "strict",
        "tool_system_function_rpc_id": "f", "tool_policy_rule_uri": "policies://other",
        "tool_validation_policy_rule_uri": "policies://valid", "tool_source_code_link": "https://example.org/a.zip",
    }  # fmt: skip
    done = await client.put("/tools/tool-123", json=operations)
    after = await client.get("/tools/tool-123")
    assert after.headers["etag"] != before.headers["etag"]
    for answer in (done, after):
        assert (answer.headers[version], answer.headers[digest]) == ("1", before.headers[digest])
    await client.put("/tools/tool-123", json={"tool_search_description": "Another one."})
    changed = await client.get("/tools/tool-123")
    assert changed.headers[version] == "3"
    assert changed.headers[digest] != before.headers[digest]
    await client.delete("/tools/tool-123")
    history = (await client.get("/tools/tool-123/history")).json()
    assert [(one["version"], one["definition_version"]) for one in history] == [(4, 0), (3, 3), (2, 1), (1, 1)]
    assert [one["definition_digest"] for one in history] == [
        "", changed.headers[digest], before.headers[digest], before.headers[digest],
    ]  # fmt: skip


async def test_a_purge_is_for_administrators(serve: Serve, settings: Settings) -> None:
    client = await serve(settings.with_changes("test", auth="required"))
    tokens = {}
    for role in (Role.PUBLISHER, Role.ADMIN):
        tokens[role], record = new_token(role.value, role, now=0.0)
        system_of(client).tokens.add(record)
    client.headers["authorization"] = f"Bearer {tokens[Role.PUBLISHER]}"
    await upload(client, bundle())
    link = (await client.get("/tools/tool-123")).json()["tool_source_code_link"]
    refused = await client.delete("/tools/tool-123?purge=true")
    assert (refused.status_code, refused.json()["code"]) == (403, "denied")
    assert (await client.delete("/tools/tool-123")).status_code == 200
    assert (await client.get("/tools/tool-123/history")).status_code == 200
    client.headers["authorization"] = f"Bearer {tokens[Role.ADMIN]}"
    purged = await client.delete("/tools/tool-123", params={"purge": "true"})
    assert (purged.status_code, purged.json()) == (200, {"message": "Tool deleted successfully"})
    for path in ("/tools/tool-123/history", link, "/tools/tool-123"):
        assert (await client.get(path)).status_code == 404
    assert (await client.delete("/tools/tool-123?purge=true")).status_code == 404
    assert (await client.delete("/tools/tool-123?purge=perhaps")).status_code == 400
    assert list(system_of(client).blobs.keys()) == []
    events = (await client.get("/audit?tool=tool-123")).json()
    said = [(event["principal"], event["outcome"]) for event in events if event["action"] == "delete"]
    assert ("publisher", "refused") in said
    assert ("admin", "done") in said
    assert any("purged" in event["detail"] for event in events)


RULES = """
@id("policies://by-id") permit(principal, action, resource);
@id("two") forbid(principal, action, resource) when { resource has policy_rule_uri
  && (resource.policy_rule_uri == "policies://by-name" || resource.policy_rule_uri like "policies://pay/*/v1") };
"""


async def governed(serve: Serve, settings: Settings, mode: str) -> httpx.AsyncClient:
    path = settings.data_folder / "rules.cedar"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(RULES.replace("forbid", "permit"))
    changes: dict[str, Any] = {"policy": "cedar", "policy_file": str(path), "unknown_policy_rules": mode}
    return await serve(settings.with_changes("test", **changes))


@pytest.mark.parametrize("field", ["tool_policy_rule_uri", "tool_validation_policy_rule_uri"])
async def test_a_rule_that_nobody_serves_is_told_or_refused(serve: Serve, settings: Settings, field: str) -> None:
    def entry(name: str, uri: str) -> dict[str, Any]:
        return {"tool_id": name, field: uri}

    warns, refuses, ignores = [await governed(serve, settings, mode) for mode in ("warn", "refuse", "ignore")]
    told = await warns.post("/tools", json=entry("a", "policies://nöbody"))
    assert told.status_code == 201
    assert told.headers["toolcrib-warning"] == (
        "the tool names a policy rule that nobody serves: 'policies://n\\xf6body'"
    )
    done = (await warns.get("/audit?tool=a")).json()[0]
    assert "policy rule that nobody serves" in done["detail"]
    for uri in ("policies://by-id", "policies://by-name", "policies://pay/cards/v1", ""):
        served = await refuses.post("/tools", json=entry(f"ok-{len(uri)}", uri))
        assert served.status_code == 201, served.text
        assert "toolcrib-warning" not in served.headers
    refused = await refuses.post("/tools", json=entry("b", "policies://pay/v2"))
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown_policy_rule")
    assert "'policies://pay/v2'" in refused.json()["detail"]
    assert (await refuses.get("/tools/b")).status_code == 404
    assert (await refuses.put("/tools/ok-0", json={field: "policies://none"})).status_code == 400
    content = bundle({**SPEC, "tool_policy_rule_uri": "policies://by-id", field: "policies://none"})
    assert (await refuses.post("/tools/upload", files={"file": content})).status_code == 400
    kept = await refuses.put("/tools/a", json={"tool_tags": ["x"]})
    assert (kept.status_code, "toolcrib-warning" in kept.headers) == (200, True), "what names it already stays"
    assert "toolcrib-warning" not in (await ignores.post("/tools", json=entry("c", "policies://none"))).headers


async def test_without_a_policy_nobody_serves_a_rule(client: httpx.AsyncClient) -> None:
    told = await upload(client, bundle())
    assert told.json() == {"message": "Tool uploaded successfully", "tool_id": "tool-123"}
    assert "'policies://validate/compliance'" in told.headers["toolcrib-warning"]


@pytest.mark.parametrize("store", ["memory", "json", "sqlite", "mongo"])
async def test_the_manual_is_searched(
    serve: Serve, settings: Settings, request: pytest.FixtureRequest, tmp_path: Path, store: str
) -> None:
    url = {
        "memory": lambda: "memory:",
        "json": lambda: f"json://{tmp_path}/tools.json",
        "sqlite": lambda: f"sqlite://{tmp_path}/tools.db",
        "mongo": lambda: request.getfixturevalue("mongo_database_url"),
    }[store]()
    client = await serve(settings.with_changes("test", store=url))
    await upload(client, bundle({**SPEC, "tool_id": "in-manual"}, manual="# How\n\nIt ionizes texts."))
    await client.post("/tools", json={"tool_id": "in-text", "tool_search_description": "It ionizes texts."})
    await client.post("/tools", json={"tool_id": "ionizes"})

    async def found(words: str) -> list[str]:
        return [hit["tool_id"] for hit in (await client.get("/tools/search", params={"q": words})).json()]

    assert await found("ionizes") == ["ionizes", "in-text", "in-manual"]
    hits = (await client.get("/tools/search?q=ionizes")).json()
    assert hits[-1]["reason"] == "'ionize' in manual"
    by_keyword = (await client.get("/tools/query/by-keyword?keyword=ionizes")).json()
    assert [tool["tool_id"] for tool in by_keyword] == ["in-text"]
    await client.put("/tools/in-manual", json={"tool_man_page_doc": "# How\n\nIt galvanizes."})
    assert await found("ionizes") == ["ionizes", "in-text"]
    assert await found("galvanizes") == ["in-manual"]


async def test_an_entrys_own_deadline_counts_over_rest(client: httpx.AsyncClient) -> None:
    async def wait_for_ever() -> None:
        await asyncio.Event().wait()

    system_of(client).functions["wait"] = wait_for_ever  # type: ignore[index]
    entry = {"tool_id": "t", "tool_metadata": {"timeout_seconds": 0.05}, "tool_system_function_rpc_id": "wait"}
    assert (await client.post("/tools", json=entry)).status_code == 201
    assert (await client.get("/tools/t")).json()["tool_metadata"] == {"timeout_seconds": 0.05}
    result = (await client.post("/tools/t/run", json={"arguments": {}})).json()
    assert (result["success"], result["error_code"]) == (False, "timeout")

"""The registry's REST and GraphQL contract, word for word, on every store."""

import base64
import json
from typing import Any

import httpx
import pytest
from tests.surfaces.conftest import Serve
from tests.surfaces.http.bundles import MANUAL, SPEC, bundle, code_zip

from toolcrib.settings import Settings

ENTRY_FIELDS = {
    "tool_id", "tool_metadata", "tool_search_description", "tool_tags", "tool_type", "tool_man_page_doc",
    "tool_api_spec", "tool_custom_actions_dsl_map", "default_tool_usage_credentials", "tool_execution_mode",
    "tool_policy_rule_uri", "tool_source_code_link", "tool_service_url", "tool_system_function_rpc_id",
    "tool_validation_policy_rule_uri", "tool_validation_mode",
}  # fmt: skip


@pytest.fixture(params=["memory", "json", "sqlite", "mongo"])
async def client(request: pytest.FixtureRequest, serve: Serve, settings: Settings) -> httpx.AsyncClient:
    url = {
        "memory": lambda: "memory:",
        "json": lambda: f"json:///{settings.data_folder}/tools.json",
        "sqlite": lambda: None,
        "mongo": lambda: request.getfixturevalue("mongo_database_url"),
    }[request.param]()
    key = base64.b64encode(bytes(range(32))).decode()
    return await serve(settings.with_changes("test", store=url, seal_keys=(key,)))


async def upload(client: httpx.AsyncClient, content: bytes, **parameters: str) -> httpx.Response:
    return await client.post("/tools/upload", files={"file": ("bundle.zip", content)}, params=parameters)


def spec(tool_id: str, **changes: Any) -> dict[str, Any]:
    return {**SPEC, "tool_id": tool_id, **changes}


async def ids(answer: httpx.Response) -> list[str]:
    assert answer.status_code == 200, answer.text
    return [entry["tool_id"] for entry in answer.json()]


async def test_upload_get_update_delete(client: httpx.AsyncClient) -> None:
    answer = await upload(client, bundle())
    assert (answer.status_code, answer.json()) == (
        200,
        {"message": "Tool uploaded successfully", "tool_id": "tool-123"},
    )

    entry = (await client.get("/tools/tool-123")).json()
    assert entry.keys() == ENTRY_FIELDS
    assert entry["tool_man_page_doc"] == MANUAL
    assert {key: entry[key] for key in SPEC if key != "tool_metadata"} == {
        key: value for key, value in SPEC.items() if key != "tool_metadata"
    }
    assert entry["tool_metadata"] == SPEC["tool_metadata"]

    code = await client.get(entry["tool_source_code_link"])
    assert (code.status_code, code.content) == (200, code_zip())
    assert (await client.get("/tools/tool-123/tool.zip")).content == code_zip()

    answer = await client.put("/tools/tool-123", json={"tool_type": "transformer", "tool_tags": ["ai", "image"]})
    assert (answer.status_code, answer.json()) == (200, {"message": "Tool updated successfully"})
    changed = (await client.get("/tools/tool-123")).json()
    assert changed == {**entry, "tool_type": "transformer", "tool_tags": ["ai", "image"]}

    answer = await client.delete("/tools/tool-123")
    assert (answer.status_code, answer.json()) == (200, {"message": "Tool deleted successfully"})
    for gone in ("/tools/tool-123", "/tools/tool-123/tool.zip", entry["tool_source_code_link"]):
        assert (await client.get(gone)).status_code == 404
    assert (await client.delete("/tools/tool-123")).status_code == 404
    assert (await client.put("/tools/tool-123", json={"tool_type": "x"})).status_code == 404


async def test_a_duplicate_upload_is_refused_and_replaced_on_demand(client: httpx.AsyncClient) -> None:
    await upload(client, bundle())
    refused = await upload(client, bundle(code=code_zip(b"other")))
    assert refused.status_code == 409
    assert refused.json()["code"] == "tool_exists"
    assert (await client.get("/tools/tool-123/tool.zip")).content == code_zip()

    replaced = await upload(client, bundle(code=code_zip(b"other"), manual="new"), replace="true")
    assert replaced.status_code == 200
    assert (await client.get("/tools/tool-123/tool.zip")).content == code_zip(b"other")
    assert (await client.get("/tools/tool-123")).json()["tool_man_page_doc"] == "new"


async def test_queries(client: httpx.AsyncClient) -> None:
    await upload(client, bundle(spec("tool-001")))
    await upload(client, bundle(spec("tool-002", tool_type="validator", tool_tags=["nlp", "transformer"])))
    await upload(
        client,
        bundle(
            spec(
                "tool-003",
                tool_execution_mode="sync",
                tool_tags=["image"],
                tool_search_description="Finds 100% of (large) Language\nmodel files.",
                tool_policy_rule_uri="policies://other",
                tool_metadata={"version": "2.0.0", "stars": 5},
            )
        ),
    )

    async def get(path: str, **parameters: str) -> list[str]:
        return await ids(await client.get(f"/tools/query/{path}", params=parameters))

    assert await get("by-type", type="extractor") == ["tool-001", "tool-003"]
    assert await get("by-type", type="extract") == []
    assert await get("by-tag", tag="nlp") == ["tool-001", "tool-002"]
    assert await get("by-keyword", keyword="model") == ["tool-001", "tool-002", "tool-003"]
    assert await get("by-keyword", keyword="Large Language Model") == ["tool-001", "tool-002"]
    assert await get("by-keyword", keyword="100% of (LARGE)") == ["tool-003"]
    assert await get("by-keyword", keyword=".*") == []
    assert await get("by-execution-mode", mode="batch") == ["tool-001", "tool-002"]
    assert await get("by-policy-uri", uri="policies://validate/compliance") == ["tool-001", "tool-002"]

    async def generic(where: Any) -> list[str]:
        return await ids(await client.post("/tools/query/generic", json=where))

    assert await generic({"tool_type": "extractor", "tool_tags": "nlp"}) == ["tool-001"]
    assert await generic({}) == ["tool-001", "tool-002", "tool-003"]
    assert await generic({"tool_metadata.stars": {"$gte": 3}}) == ["tool-003"]
    assert await generic({"$or": [{"tool_id": "tool-002"}, {"tool_tags": {"$all": ["image"]}}]}) == [
        "tool-002",
        "tool-003",
    ]
    assert await generic({"tool_source_code_link": {"$regex": "^http://127.0.0.1:8000/bundles/"}}) == [
        "tool-001",
        "tool-002",
        "tool-003",
    ]
    wrong: list[Any] = [{"$where": "sleep(1000)"}, {"tool_id": {"$function": {}}}]
    for bad in [*wrong, {"default_tool_usage_credentials.key": "x"}]:
        refused = await client.post("/tools/query/generic", json=bad)
        assert (refused.status_code, refused.json()["code"]) == (400, "invalid_query"), bad

    page = await client.get("/tools/query/by-type", params={"type": "extractor", "limit": "1"})
    assert await ids(page) == ["tool-001"]
    following = await client.get(page.links["next"]["url"])
    assert await ids(following) == ["tool-003"]
    assert "next" not in following.links


async def test_graphql(client: httpx.AsyncClient) -> None:
    await upload(client, bundle(spec("tool-nlp-01")))
    await upload(client, bundle(spec("tool-nlp-02", tool_tags=["image"])))
    query = """
        query {
          tools(query: { tool_type: "extractor", tool_tags: "nlp" }) {
            tool_id
            tool_type
            tool_tags
            tool_search_description
            tool_metadata
            tool_source_code_link
          }
        }
    """
    answer = await client.post("/graphql", json={"query": query})
    entry = (await client.get("/tools/tool-nlp-01")).json()
    asked = ("tool_id", "tool_type", "tool_tags", "tool_search_description", "tool_metadata", "tool_source_code_link")
    assert answer.json() == {"data": {"tools": [{key: entry[key] for key in asked}]}}

    everything = " ".join(sorted(ENTRY_FIELDS))
    answer = await client.post("/graphql", json={"query": f'{{ tool(tool_id: "tool-nlp-01") {{ {everything} }} }}'})
    assert answer.json()["data"]["tool"] == entry


async def test_credentials_are_never_shown(client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture) -> None:
    secret = "s3cr3t-value-of-a-credential"
    await upload(client, bundle(spec("tool-1", default_tool_usage_credentials={"api_key": secret})))
    await client.put("/tools/tool-1", json={"tool_type": "other"})
    texts = [
        (await client.get(path)).text
        for path in (
            "/tools/tool-1",
            "/tools",
            "/tools/query/by-type?type=other",
            "/tools/search?q=language",
            "/tools/tool-1/history/1",
            "/tools/tool-1/history",
            "/audit",
        )
    ]
    graph = {"query": "{ tools { default_tool_usage_credentials } }"}
    texts.append((await client.post("/graphql", json=graph)).text)
    assert json.loads(texts[0])["default_tool_usage_credentials"] == {"api_key": "********"}
    assert not any(secret in text for text in texts)
    assert secret not in caplog.text

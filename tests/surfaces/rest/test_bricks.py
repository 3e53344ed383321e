"""The scraping samples, run by the service: over REST and MCP, behind its address rules."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.website import serve_site
from tests.surfaces.conftest import Serve, system_of

from toolcrib.bootstrap import seed_samples
from toolcrib.settings import Settings
from toolcrib.toolsets.scraping.practice import Site

SOUP = {"html": "<h1>x</h1>", "selectors": {"a": "h1"}}


@pytest.fixture
def site() -> Iterator[Site]:
    with serve_site() as running:
        yield running


async def test_a_sample_runs_over_rest_and_mcp(serve: Serve, settings: Settings, site: Site) -> None:
    client = await serve(settings.with_changes("test", allowed_addresses=["127.0.0.1"]))
    seed_samples(system_of(client).catalogue)

    async def run(name: str, arguments: dict[str, Any]) -> Any:
        return (await client.post(f"/tools/{name}/run", json={"arguments": arguments})).json()

    parsed = await run("beautifulsoup4", SOUP)
    assert parsed["success"], parsed
    assert parsed["data"] == {"records": [{"a": "x"}]}
    page = await run("httpx", {"url": f"{site.url}/books/1"})
    assert page["data"]["status"] == 200
    call = {"name": "beautifulsoup4", "arguments": SOUP}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answer = await client.post("/mcp", json=message, headers={"accept": "application/json, text/event-stream"})
    assert '\\"a\\": \\"x\\"' in answer.text or '"a":"x"' in answer.text.replace("\\", "").replace(" ", "")


async def test_the_service_fetches_nothing_from_its_neighbours_and_writes_where_it_may(
    serve: Serve, settings: Settings, site: Site, tmp_path: Path
) -> None:
    client = await serve(settings)
    seed_samples(system_of(client).catalogue)
    refused = await client.post("/tools/httpx/run", json={"arguments": {"url": f"{site.url}/books/1"}})
    assert refused.json()["error_code"] == "denied"
    assert not site.hits
    outside = {"records": [{"a": 1}], "path": str(tmp_path / "evil.jsonl")}
    denied = await client.post("/tools/jsonlines/run", json={"arguments": outside})
    assert denied.json()["error_code"] == "denied"
    assert not (tmp_path / "evil.jsonl").exists()
    kept = await client.post("/tools/jsonlines/run", json={"arguments": outside | {"path": "kept.jsonl"}})
    assert kept.json()["success"], kept.json()
    assert (tmp_path / "data/files/kept.jsonl").exists()

"""What one publisher says of a tool takes nobody the list of the others."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.stores import STORES
from tests.surfaces.conftest import Serve, serve, system_of  # noqa: F401

from toolcrib import Binding, ToolSpec
from toolcrib.core.query.budget import QueryLimits
from toolcrib.settings import load_settings

MCP = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}
RUNS = Binding(service_url="http://127.0.0.1:9/run")


@pytest.fixture(params=["sqlite", "mongo"])
async def client(request: pytest.FixtureRequest, serve: Serve, tmp_path: Path) -> httpx.AsyncClient:  # noqa: F811
    store = STORES[request.param](tmp_path, lambda: str(request.getfixturevalue("mongo_database_url")))
    settings = load_settings({"HOME": str(tmp_path), "TOOLCRIB_DATA_DIR": str(tmp_path / "data")}, tmp_path)
    limits = QueryLimits(characters=3_000_000)
    client = await serve(settings.with_changes("test", store=store), query_limits=limits)
    system_of(client).catalogue.publish(ToolSpec(name="z-honest", description="Says so.", binding=RUNS))
    return client


async def listed(client: httpx.AsyncClient, cursor: str | None = None) -> dict[str, Any]:
    params = {} if cursor is None else {"cursor": cursor}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    answer: dict[str, Any] = (await client.post("/mcp", json=message, headers=MCP)).json()
    return answer


@pytest.mark.parametrize("hints", [{"readOnlyHint": {"x": 1}}, {"title": 5}, {"openWorldHint": "perhaps"}])
async def test_hints_of_a_wrong_kind_are_left_out(client: httpx.AsyncClient, hints: dict[str, Any]) -> None:
    own = {"mcp_annotations": {**hints, "idempotentHint": True}}
    system_of(client).catalogue.publish(ToolSpec(name="evil", description="Odd.", metadata=own, binding=RUNS))
    tools = (await listed(client))["result"]["tools"]
    assert [tool["name"] for tool in tools] == ["evil", "z-honest", "read_result"]
    assert tools[0]["annotations"]["idempotentHint"] is True
    assert not hints.items() & tools[0]["annotations"].items()


async def test_large_tools_make_smaller_pages(client: httpx.AsyncClient) -> None:
    """A page of tools that are too long all together was refused, and with it every tool behind them."""
    large = {"type": "object", "description": "x" * 200_000}
    specs = [ToolSpec(name=f"evil{n:02}", description="Long.", parameters=large, binding=RUNS) for n in range(20)]
    system_of(client).catalogue.publish_many(specs)
    names: list[str] = []
    pages, cursor = 0, None
    while pages == 0 or cursor:
        page = (await listed(client, cursor))["result"]
        names += [tool["name"] for tool in page["tools"]]
        pages, cursor = pages + 1, page.get("nextCursor")
    assert names == [*(spec.name for spec in specs), "z-honest", "read_result"]
    assert pages > 3


@pytest.mark.parametrize("cursor", ["live:" + "9" * 5000, "kept:\0", "live:\N{SUPERSCRIPT TWO}"])
async def test_a_cursor_that_is_none_is_no_defect(client: httpx.AsyncClient, cursor: str) -> None:
    answer = await listed(client, cursor)
    assert "result" in answer or answer["error"]["code"] == -32602, answer

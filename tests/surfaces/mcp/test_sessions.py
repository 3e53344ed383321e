"""One browser session for each MCP client, asked by the SDK's own client in each way that it has of speaking."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.shop import browsers, shop
from tests.support.waiting import PATIENCE, until
from tests.surfaces.conftest import Serve, system_of
from tests.surfaces.http.running import RunningService

from toolcrib.settings import Settings
from toolcrib.toolsets.browser import browser_specs

mcp = pytest.importorskip("mcp")

__all__ = ["shop"]
PROGRAM = "from toolcrib.surfaces.cli import main; main()"


def data_of(answer: Any) -> dict[str, Any]:
    assert not answer.is_error, answer
    data: dict[str, Any] = answer.structured_content
    return data


async def heading(client: Any, **options: Any) -> str:
    answer = await client.call_tool("extract_text", {"selector": "h1", "timeout": 300}, **options)
    return "nothing" if answer.is_error else str(data_of(answer)["text"])


@pytest.fixture
def service(tmp_path: Path, chromium_path: str) -> Iterator[RunningService]:
    settings = {"allowed_addresses": "127.0.0.1", "chromium": chromium_path, "auth": "auto"}
    with RunningService(tmp_path, "--sample", **settings) as running:
        yield running


@pytest.mark.skipif(sys.platform != "linux", reason="looks for browsers among the processes of Linux")
async def test_one_session_for_each_client_over_http(service: RunningService, shop: str) -> None:
    from mcp import Client

    url = f"{service.url}/mcp"
    async with httpx.AsyncClient(base_url=service.url, timeout=PATIENCE) as rest, Client(url) as newer:

        async def names() -> list[str]:
            return [session["name"] for session in (await rest.get("/sessions")).json()]

        async with Client(url, mode="legacy") as older:
            assert await names() == []  # nothing is opened for who only connects
            await older.call_tool("goto", {"url": shop})
            await older.call_tool("click", {"selector": "Buy now"})
            assert await heading(older) == "Bought"
            await newer.call_tool("goto", {"url": shop})
            assert (await heading(newer), await heading(older)) == ("Hammer", "Bought")
            before = await names()
            assert len(before) == 2 and all(name.startswith("mcp-") for name in before)
            with pytest.raises(mcp.MCPError, match=r"_meta\.session must be a name"):
                await heading(older, meta={"session": "no name"})

        # Who leaves and says so has ended its session; the others stay until they are ended.
        assert await names() == before[1:]

        # A call may name a session itself: it is the same one at every door.
        named: Any = {"session": "shop"}
        went = await newer.call_tool("goto", {"url": shop}, meta=named)
        clicked = await newer.call_tool("click", {"selector": "Buy now"}, meta=named)
        opened, again = went.meta or {}, clicked.meta or {}
        assert (opened["session"], opened["session_opened"]) == ("shop", True)
        assert again["session"] == "shop" and "session_opened" not in again
        asked = {"session": "shop", "arguments": {"selector": "h1"}}
        assert (await rest.post("/tools/extract_text/run", json=asked)).json()["data"]["text"] == "Bought"
        assert await heading(newer) == "Hammer"
        assert (await rest.delete("/sessions/shop")).status_code == 200
        assert await names() == before[1:] and browsers(str(service.folder))
        service.kill()
    await until(lambda: not browsers(str(service.folder)))


async def ask(client: httpx.AsyncClient, method: str, params: Any = None, **headers: str) -> httpx.Response:
    """One message of the protocol, as it is on the wire."""
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    params = hello if method == "initialize" else params or {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    return await client.post("/mcp", json=body, headers={"accept": "application/json, text/event-stream", **headers})


async def test_how_a_client_is_given_its_name(client: httpx.AsyncClient) -> None:
    given = {(await ask(client, "initialize")).headers["mcp-session-id"] for _ in range(2)}
    assert len(given) == 2 and all(len(name) == len("mcp-") + 32 for name in given)
    listed = await ask(client, "tools/list")
    assert "mcp-session-id" not in listed.headers and "HttpOnly" in listed.headers["set-cookie"]
    assert "set-cookie" not in (await ask(client, "tools/list")).headers  # the cookie came back
    client.cookies.clear()
    name = given.pop()
    assert "set-cookie" not in (await ask(client, "tools/list", **{"mcp-session-id": name})).headers
    assert "set-cookie" in (await ask(client, "tools/list", **{"mcp-session-id": "of-my-own"})).headers
    client.cookies.clear()
    assert (await client.delete("/mcp", headers={"mcp-session-id": name})).status_code == 204
    assert (await client.delete("/mcp")).status_code == 400


async def test_several_processes_give_none_and_refuse_those_that_are_named(serve: Serve, settings: Settings) -> None:
    client = await serve(settings.with_changes("test", workers=2))
    system_of(client).catalogue.publish_many(browser_specs())
    assert "mcp-session-id" not in (await ask(client, "initialize")).headers
    assert "set-cookie" not in (await ask(client, "tools/list")).headers
    call = {"name": "goto", "arguments": {"url": "https://example.com"}, "_meta": {"session": "shop"}}
    refused = (await ask(client, "tools/call", call)).json()["result"]
    assert refused["isError"] and "start the service with --workers 1" in refused["content"][0]["text"]


async def test_over_standard_input_the_process_is_the_client(tmp_path: Path, chromium_path: str, shop: str) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    environment = {
        "HOME": str(tmp_path), "TOOLCRIB_STORE": "memory:", "TOOLCRIB_CHROMIUM": chromium_path,
        "TOOLCRIB_ALLOWED_ADDRESSES": "127.0.0.1",
    }  # fmt: skip
    server = StdioServerParameters(command=sys.executable, args=["-c", PROGRAM, "mcp"], env=environment)
    async with Client(stdio_client(server)) as client:
        await client.call_tool("goto", {"url": shop})
        await client.call_tool("click", {"selector": "Buy now"})
        assert await heading(client) == "Bought"
    await until(lambda: not browsers(str(tmp_path)))

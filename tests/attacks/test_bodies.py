"""Bodies that never come, never end or are larger than allowed, at every door that reads one."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from tests.support.waiting import until
from tests.surfaces.conftest import Serve, serve, settings

from toolcrib.settings import Settings
from toolcrib.surfaces.http.bodies import Limits

__all__ = ["serve", "settings"]  # the fixtures of the doors

QUICK = Limits(10_000, 10_000, json_seconds=0.3, upload_seconds=1.0, stall_seconds=0.3)
JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
DOORS = ["/tools", "/tools/query/generic", "/graphql", "/mcp"]


@pytest.fixture
async def client(serve: Serve, settings: Settings) -> httpx.AsyncClient:
    return await serve(settings, limits=QUICK)


async def gushing() -> AsyncIterator[bytes]:
    while True:
        yield b" " * 5_000


async def dripping(pause: float) -> AsyncIterator[bytes]:
    yield b" "
    while True:
        await asyncio.sleep(pause)
        yield b" "


def problem(answer: httpx.Response) -> tuple[int, Any]:
    return answer.status_code, answer.json()["code"]


async def test_a_body_comes_in_time_or_not_at_all(client: httpx.AsyncClient) -> None:
    for door in DOORS:
        for pause in (600, 0.05):  # one that stops, and one that never ends
            answer = await client.post(door, content=dripping(pause), headers=JSON)
            assert problem(answer) == (408, "slow_client"), door
            assert answer.headers["connection"] == "close"


async def test_a_body_is_no_larger_than_allowed(client: httpx.AsyncClient) -> None:
    for door in DOORS:
        declared = await client.post(door, content=b"[" + b" " * 10_000, headers=JSON)
        assert problem(declared) == (413, "body_too_large"), door
        measured = await client.post(door, content=gushing(), headers=JSON)
        assert problem(measured) == (413, "body_too_large"), door


async def test_a_body_that_breaks_off_is_told(client: httpx.AsyncClient) -> None:
    for door in DOORS:
        answer = await client.post(door, content=b"{}", headers={**JSON, "content-length": "9"})
        assert problem(answer) == (400, "bad_request"), door
        assert "before the body was complete" in answer.json()["detail"]


async def test_one_caller_leaves_places_for_the_others(serve: Serve, settings: Settings) -> None:
    """Slow bodies of one caller fill half of the places, and then no more of them are taken."""
    client = await serve(settings.with_changes("test", max_connections=8), limits=Limits(10_000, 10_000))
    begun: list[bool] = []

    async def never_ending() -> AsyncIterator[bytes]:
        begun.append(True)
        async for piece in dripping(600):
            yield piece

    slow = [asyncio.ensure_future(client.post("/graphql", content=never_ending(), headers=JSON)) for _ in range(4)]
    await until(lambda: len(begun) == 4)
    answer = await client.post("/graphql", json={"query": "{ tools { tool_id } }"})
    assert problem(answer) == (503, "overloaded")
    assert (await client.get("/tools")).status_code == 200
    for one in slow:
        one.cancel()
    await asyncio.gather(*slow, return_exceptions=True)
    assert (await client.post("/graphql", json={"query": "{ tools { tool_id } }"})).status_code == 200


async def test_nothing_is_held_open_for_nothing(client: httpx.AsyncClient) -> None:
    """The MCP SDK answers a GET with a stream on which it never says anything."""
    answer = await client.get("/mcp", headers={"accept": "text/event-stream"})
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("number", ["NaN", "-Infinity", "1e999", "-1E+999", "9" * 400 + ".5", "0.1e400"])
@pytest.mark.parametrize("path", ["/tools", "/tools/nothing/run", "/tools/query/generic", "/mcp"])
async def test_numbers_that_are_none_are_refused(client: httpx.AsyncClient, path: str, number: str) -> None:
    """Some would reach a tool as infinity, and whoever it asks as what is no JSON."""
    message = '"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a", "arguments": {"a": [%s]}}'
    body = f"{{{message % number}}}"
    answer = await client.post(path, content=body, headers={"content-type": "application/json"})
    assert problem(answer) == (400, "bad_request"), answer.text


async def test_a_large_number_in_a_text_is_none(client: httpx.AsyncClient) -> None:
    body = {"tool_id": "talks", "tool_search_description": f"NaN, 1e999 and {'9' * 400}", "tool_metadata": {"a": 1e300}}
    assert (await client.post("/tools", json=body)).status_code == 201

"""A run as a stream of server-sent events."""

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.waiting import until, wait_until
from tests.surfaces.conftest import Serve
from tests.surfaces.http.running import RunningService
from tests.surfaces.http.telling import TELLING

from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.settings import Settings
from toolcrib.surfaces.http import event_stream
from toolcrib.surfaces.http.event_stream import EventStream

EVENTS = {"accept": "text/event-stream"}


def entry(name: str) -> dict[str, Any]:
    return {
        "tool_id": name,
        "tool_search_description": f"{name} for tests",
        "tool_api_spec": {"input": {"type": "object", "required": ["pages"] if name == "crawl" else []}},
        "tool_metadata": {
            "toolcrib": {"binding": {"python": f"tests.surfaces.http.telling:{name}"}, "timeout_seconds": 3600}
        },
    }


def events_of(text: str) -> list[dict[str, Any]]:
    """As a reader of the standard has them; the name of each is its kind."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
        if fields:
            event = json.loads(fields["data"])
            assert fields["event"] == event["kind"]
            found.append(event)
    return found


@pytest.fixture
async def client(serve: Serve, settings: Settings) -> httpx.AsyncClient:
    made = await serve(settings.with_changes("test", python_tools=TELLING))
    for name in ("crawl", "draws"):
        assert (await made.post("/tools", json=entry(name))).status_code == 201
    return made


async def run(client: httpx.AsyncClient, name: str, arguments: Any, **headers: str) -> httpx.Response:
    return await client.post(f"/tools/{name}/run", json={"arguments": arguments}, headers=headers)


async def test_progress_and_items_and_then_the_result(client: httpx.AsyncClient) -> None:
    answer = await run(client, "crawl", {"pages": 2}, **EVENTS)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/event-stream")
    assert answer.headers["cache-control"] == "no-cache, no-transform" and "content-length" not in answer.headers
    *told, last = events_of(answer.text)
    assert told == [
        {"kind": "progress", "fraction": 0.5, "message": "page 1 of 2"},
        {"kind": "item", "item": "text 1"},
        {"kind": "progress", "fraction": 1.0, "message": "page 2 of 2"},
        {"kind": "item", "item": "text 2"},
    ]
    assert last["kind"] == "result" and last["result"]["data"] == ["text 1", "text 2"] and last["result"]["success"]
    assert 'toolcrib_tool_runs_total{outcome="done"} 1.0' in (await client.get("/metrics")).text


@pytest.mark.parametrize(
    "accept",
    [
        "*/*",
        "application/json",
        "text/*",
        "application/json, text/event-stream",
        "",
        "text/event-stream;q=0",
        "*/*, text/event-stream; q=0.000",
        "text/event-stream;q=0.5, application/json",
    ],
)
async def test_who_does_not_prefer_events_gets_json(client: httpx.AsyncClient, accept: str) -> None:
    answer = await run(client, "crawl", {"pages": 2}, accept=accept)
    assert answer.json()["data"] == ["text 1", "text 2"]


@pytest.mark.parametrize(
    "accept",
    [
        "Text/Event-Stream; charset=utf-8",
        "application/json;q=0.5, text/event-stream",
        "text/event-stream; q = 0.1",
        "text/event-stream;q=much",
        "text/event-stream;q=0.9, */*",
    ],
)
async def test_who_prefers_events_gets_them(client: httpx.AsyncClient, accept: str) -> None:
    answer = await run(client, "crawl", {"pages": 1}, accept=accept)
    assert answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize(
    ("name", "arguments", "status", "code"),
    [("nothing", {}, 404, "tool_not_found"), ("crawl", {}, 400, "invalid_arguments"), ("crawl", 7, 400, "invalid_arg")],
)
async def test_what_is_refused_is_answered_as_without_events(
    client: httpx.AsyncClient, name: str, arguments: Any, status: int, code: str
) -> None:
    answer = await run(client, name, arguments, **EVENTS)
    assert answer.status_code == status and "json" in answer.headers["content-type"]
    plain = await run(client, name, arguments)
    assert plain.status_code == status
    assert code in answer.text and code in plain.text


async def test_who_is_not_let_in_gets_a_problem(serve: Serve, settings: Settings) -> None:
    client = await serve(settings.with_changes("test", auth="required"))
    answer = await run(client, "crawl", {}, **EVENTS)
    assert (answer.status_code, answer.headers["content-type"]) == (401, "application/problem+json")


async def test_images_and_bytes_are_base64(client: httpx.AsyncClient) -> None:
    expected = [
        {"type": "image", "media_type": "image/png", "data": "iVBORw=="},
        {"type": "file", "media_type": "application/octet-stream", "name": "", "data": "/w=="},
    ]
    assert (await run(client, "draws", {})).json()["data"] == expected
    assert events_of((await run(client, "draws", {}, **EVENTS)).text)[-1]["result"]["data"] == expected


async def test_the_description_tells_of_the_events(client: httpx.AsyncClient) -> None:
    described = (await client.get("/openapi.json")).json()
    content = described["paths"]["/tools/{tool_id}/run"]["post"]["responses"]["200"]["content"]
    assert set(content) == {"application/json", "text/event-stream"}
    assert set(described["components"]["schemas"]["ToolEvent"]["properties"]["kind"]["enum"]) == {
        "progress", "item", "result",
    }  # fmt: skip


# The stream itself


async def sent_by(stream: EventStream, *, receive: Any = None) -> list[bytes]:
    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))

    async def connected() -> Any:
        await asyncio.Event().wait()

    await stream({"type": "http"}, receive or connected, send)
    return sent


async def test_a_comment_is_sent_while_nothing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "QUIET_SECONDS", 0.01)
    go_on = asyncio.Event()

    async def events() -> AsyncIterator[ToolEvent]:
        await go_on.wait()
        yield ToolEvent("result", result=ToolResult(True, 1))

    sent: list[bytes] = []

    async def send(message: Any) -> None:
        sent.append(message.get("body", b""))
        if sent.count(b": still running\n\n") == 2:
            go_on.set()

    async def connected() -> Any:
        await asyncio.Event().wait()

    await EventStream(events())({"type": "http"}, connected, send)  # type: ignore[arg-type]
    assert sent[1] == sent[2] == b": still running\n\n" and b'"data":1' in b"".join(sent)


async def test_who_takes_nothing_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "SLOW_SECONDS", 0.01)
    closed = asyncio.Event()

    async def events() -> AsyncIterator[ToolEvent]:
        try:
            while True:
                yield ToolEvent("item", item=1)
        finally:
            closed.set()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.body":
            await asyncio.Event().wait()

    async def connected() -> Any:
        await asyncio.Event().wait()

    await EventStream(events())({"type": "http"}, connected, send)  # type: ignore[arg-type]
    assert closed.is_set()


async def test_who_leaves_at_once_closes_the_events() -> None:
    closed = asyncio.Event()

    async def events() -> AsyncIterator[ToolEvent]:
        try:
            yield ToolEvent("progress")
            await asyncio.Event().wait()
        finally:
            closed.set()

    told = events()
    await anext(told)

    async def gone() -> Any:
        return {"type": "http.disconnect"}

    await sent_by(EventStream(told), receive=gone)  # type: ignore[arg-type]
    assert closed.is_set()


# The real server

pytestmark = pytest.mark.xdist_group("run-events")


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    service = RunningService(tmp_path_factory.mktemp("service"), python_tools=",".join(TELLING))
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    service.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with service as running:
        with running.client() as client:
            for name in ("crawl", "pauses", "hangs", "floods"):
                assert client.post("/tools", json=entry(name)).status_code == 201
        yield running


def test_events_come_while_the_tool_runs(service: RunningService, tmp_path: Path) -> None:
    free = tmp_path / "free"
    body = {"arguments": {"free": str(free)}}
    with service.client() as client, client.stream("POST", "/tools/pauses/run", json=body, headers=EVENTS) as answer:
        pieces = answer.iter_text()
        assert events_of(next(pieces)) == [{"kind": "progress", "fraction": 0.5, "message": "half"}]
        free.touch()
        assert events_of("".join(pieces))[-1]["result"]["data"] == "went on"


def test_who_closes_the_stream_kills_the_process(service: RunningService, tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    body = {"arguments": {"pid": str(pid)}}
    with service.client() as client, client.stream("POST", "/tools/hangs/run", json=body, headers=EVENTS) as answer:
        assert "hanging" in next(answer.iter_text())
        process = Path("/proc") / pid.read_text(encoding="utf-8")
        assert process.exists()
    wait_until(lambda: not process.exists())


def test_a_reader_who_reads_nothing_does_not_fill_the_memory(service: RunningService, tmp_path: Path) -> None:
    """What waits is bounded by what the result holds anyway."""
    ended = tmp_path / "ended"
    arguments = {"items": 20_000, "size": 1000, "ended": str(ended)}
    body = json.dumps({"arguments": arguments})
    before = service.memory()
    with socket.create_connection(("127.0.0.1", service.port)) as connection:
        head = (
            f"POST /tools/floods/run HTTP/1.1\r\nHost: 127.0.0.1:{service.port}\r\nAccept: text/event-stream\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        connection.sendall((head + body).encode())
        wait_until(ended.exists)
        assert service.memory() - before < 200_000_000
    with service.client() as client:
        assert client.get("/healthz").status_code == 200


async def test_many_streams_at_once(service: RunningService) -> None:
    async with httpx.AsyncClient(base_url=service.url, timeout=60) as client:
        answers = await asyncio.gather(*(run(client, "crawl", {"pages": 50}, **EVENTS) for _ in range(20)))
        for answer in answers:
            assert len(events_of(answer.text)) == 101
        await until(lambda: client.get("/healthz"))

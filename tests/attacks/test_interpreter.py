"""Nothing that one caller sends becomes a long step of the interpreter, for which all the others would wait."""

import asyncio
import gc
import gzip
import io
import json
import weakref
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import httpcore
import pytest
from starlette.requests import Request
from starlette.types import Message
from tests.support.receiver import Answer, Received, Receiver, receiving
from tests.support.waiting import PATIENCE, until
from tests.surfaces.conftest import Serve, serve, settings, system_of

from toolcrib import Binding, ToolSpec
from toolcrib.adapters.http import HttpCaller
from toolcrib.adapters.runners.bound import BoundRunner, bound_tool
from toolcrib.adapters.runners.box import Ended
from toolcrib.adapters.runners.bundle_calls import program_answer, python_answer
from toolcrib.adapters.runners.http_service import HttpServiceRunner
from toolcrib.adapters.runners.mcp_server import McpRunner
from toolcrib.calling.blocking import WRITES, in_thread
from toolcrib.calling.places import CALLER
from toolcrib.catalogue import Catalogue
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import ToolFailedError, UnavailableError
from toolcrib.core.tool import Tool
from toolcrib.settings import Settings
from toolcrib.surfaces.graphql.limits import MAX_COST
from toolcrib.surfaces.http.bodies import MOST_VALUES
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.fields import ENTRY_FIELDS

__all__ = ["serve", "settings"]  # the fixtures of the doors

JSON = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


class Large:
    """What a call holds while it works."""


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


async def _in_a_pool(work: Callable[[], None]) -> None:
    CALLER.set("somebody")
    await in_thread(WRITES, work)


async def _for_one_who_may_leave(work: Callable[[], None]) -> None:
    async def stay() -> Message:
        never: asyncio.Future[Message] = asyncio.get_running_loop().create_future()
        return await never

    async def working() -> None:
        await asyncio.sleep(0)
        work()

    await while_connected(Request({"type": "http"}, stay), working())


@pytest.mark.usefixtures("without_collector")
@pytest.mark.parametrize("call", [_in_a_pool, _for_one_who_may_leave])
async def test_what_failed_is_gone_at_once(call: Callable[[Callable[[], None]], Coroutine[Any, Any, None]]) -> None:
    """Whoever fails often would leave more and more to the garbage collector, which then stops everybody."""
    left: list[weakref.ref[Large]] = []

    def fail() -> None:
        large = Large()
        left.append(weakref.ref(large))
        raise ValueError(large)

    with pytest.raises(ValueError, match="Large"):
        await call(fail)
    await until(lambda: left[0]() is None)  # the thread of a pool lets go of it a moment later


@pytest.mark.parametrize("path", ["/tools", "/tools/query/generic", "/graphql", "/mcp"])
async def test_a_body_of_too_many_values_is_refused(serve: Serve, settings: Settings, path: str) -> None:
    client = await serve(settings)
    for body in (b"[%b1]" % (b"[]," * MOST_VALUES), b"[%b1]" % (b'"",' * 5 * MOST_VALUES)):
        answer = await client.post(path, content=body, headers=JSON)
        assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large"), path
        assert f"{MOST_VALUES:,} values" in answer.json()["detail"]


async def test_a_comma_in_a_text_is_no_value(serve: Serve, settings: Settings) -> None:
    manual = r'a,"b\",' * (MOST_VALUES // 2)
    answer = await (await serve(settings)).post("/tools", json={"tool_id": "table", "tool_man_page_doc": manual})
    assert answer.status_code == 201, answer.text


def test_a_result_of_too_many_values_is_refused() -> None:
    many = b"[%b1]" % (b"[]," * 250_000)
    with pytest.raises(ToolFailedError, match="more than 250,000 values"):
        python_answer("wide", b'{"alone": true, "value": %b}' % many, "")
    with pytest.raises(ToolFailedError, match="more than 250,000 values"):
        program_answer("wide", Ended(0, many, ""))
    assert program_answer("long", Ended(0, b'["%b"]' % (b'a,\\",' * 250_000), "")) == ['a,",' * 250_000]


# What a publisher's own server answers


EVENTS = "text/event-stream"
MANY = b"[%b1]" % (b"[]," * 250_000)
WORDY = b"event: x\n\n" * 10_000
SLOW = {"type": "object", "properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
"""Each ``a`` more doubles the time of a pattern that tries every way; a few are enough to see that it is not asked."""


@pytest.fixture
def server() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


@pytest.fixture
def caller() -> Iterator[HttpCaller]:
    caller = HttpCaller(AddressRules(("127.0.0.1",)))
    yield caller
    caller.close()


def at(server: Receiver, runner: BoundRunner) -> Tool:
    way = "mcp" if isinstance(runner, McpRunner) else "service_url"
    return bound_tool(
        ToolSpec(name="theirs", description="It is elsewhere.", binding=Binding(**{way: server.url})), runner
    )


def speaking_mcp(result: bytes, **headers: str) -> Callable[[Received], Answer]:
    """An MCP server whose tool gives that result; with ``headers``, that is all of the answer."""

    def answer(request: Received) -> Answer:
        asked = json.loads(request.body)
        if "id" not in asked:
            return 202, {}, b""
        if asked["method"] == "tools/call" and headers:
            return 200, headers, result
        results = {
            "initialize": b'{"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, '
            b'"serverInfo": {"name": "theirs", "version": "1"}}',
            "tools/list": json.dumps(
                {"tools": [{"name": "theirs", "inputSchema": {"type": "object"}, "outputSchema": SLOW}]}
            ).encode(),
            "tools/call": result,
        }
        if asked["method"] not in results:
            return (
                200,
                {"Content-Type": "application/json"},
                _rpc(asked["id"], b"error", b'{"code": -32601, "message": "no"}'),
            )
        return 200, {"Content-Type": "application/json"}, _rpc(asked["id"], b"result", results[asked["method"]])

    return answer


def _rpc(number: Any, kind: bytes, value: bytes) -> bytes:
    return b'{"jsonrpc": "2.0", "id": %b, "%b": %b}' % (json.dumps(number).encode(), kind, value)


async def test_a_service_that_answers_too_many_values_is_refused(server: Receiver, caller: HttpCaller) -> None:
    tool = at(server, HttpServiceRunner(caller))
    server.answer = lambda _: (200, {"Content-Type": "application/json"}, MANY)
    with pytest.raises(ToolFailedError, match="more than 250,000 values"):
        await tool.execute({})
    table = "a,b\n" * 250_000
    server.answer = lambda _: (200, {"Content-Type": "text/csv"}, table.encode())
    assert await tool.execute({}) == table, "text is read as it is"


async def test_an_mcp_server_that_answers_too_much_is_refused(server: Receiver, caller: HttpCaller) -> None:
    tool = at(server, McpRunner(caller))
    server.answer = speaking_mcp(b'{"content": [], "structuredContent": {"a": %b}}' % MANY)
    with pytest.raises(ToolFailedError, match="more than 250,000 values"):
        await tool.execute({})
    for lines in (WORDY, b"\r" * 20_000, b"\n" * 20_000):
        server.answer = speaking_mcp(lines, **{"Content-Type": EVENTS})
        with pytest.raises(ToolFailedError, match="more than 10,000 lines"):
            await tool.execute({})


async def test_what_an_mcp_server_compressed_is_not_undone(server: Receiver, caller: HttpCaller) -> None:
    """A thousandth of it comes over the line, and all of it would be in memory."""
    said = gzip.compress(_rpc(2, b"result", b'{"content": [{"type": "text", "text": "%b"}]}' % (b"x" * 1000)))
    server.answer = speaking_mcp(said, **{"Content-Type": "application/json", "Content-Encoding": "gzip"})
    with pytest.raises(ToolFailedError, match="its MCP server failed"):
        await at(server, McpRunner(caller)).execute({})


async def test_no_pattern_of_an_mcp_server_is_tried(server: Receiver, caller: HttpCaller) -> None:
    said = {"a": "a" * 16 + "!"}
    server.answer = speaking_mcp(json.dumps({"content": [], "structuredContent": said}).encode())
    assert await at(server, McpRunner(caller)).execute({}) == said
    assert not [one for one in server.received if b"tools/list" in one.body], "its schema is not asked for"


class Ready(httpcore.AsyncMockStream):
    """A connection on which everything has arrived already, so that who reads it never has to wait."""

    def __init__(self, content: bytes) -> None:
        super().__init__([])
        self._content = io.BytesIO(content)

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._content.read(max_bytes)


class Loop(httpcore.AsyncMockBackend):
    """Counts how often others have their turn on the event loop of the calls, from the moment of a connection."""

    def __init__(self, content: bytes) -> None:
        super().__init__([])
        self._content = content
        self.turns = 0

    async def connect_tcp(self, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        self._others = asyncio.ensure_future(self._count())
        return Ready(self._content)

    async def _count(self) -> None:
        while True:
            self.turns += 1
            await asyncio.sleep(0)


HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("content", "steps"),
    [
        (HEAD + b"1\r\nx\r\n" * 20_000 + b"0\r\n\r\n", 20_000),
        (b"HTTP/1.1 102 Processing\r\n\r\n" * 20_000 + HEAD + b"0\r\n\r\n", 20_000),
    ],
    ids=["pieces of a byte", "heads before the head"],
)
async def test_an_answer_in_crumbs_lets_others_have_their_turn(
    caller: HttpCaller, monkeypatch: pytest.MonkeyPatch, content: bytes, steps: int
) -> None:
    loop = Loop(content)
    monkeypatch.setattr(httpcore, "AnyIOBackend", lambda: loop)
    reply = await caller.post("http://127.0.0.1/", b"", {}, seconds=PATIENCE)
    assert reply.ok
    assert loop.turns > steps / 200


async def test_an_answer_in_too_many_pieces_is_refused(caller: HttpCaller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(httpcore, "AnyIOBackend", lambda: Loop(HEAD + b"1\r\nx\r\n" * 60_000))
    with pytest.raises(UnavailableError, match="in more than 50,000 pieces"):
        await caller.post("http://127.0.0.1/", b"", {}, seconds=PATIENCE)


async def test_the_largest_answer_of_graphql_is_whole(serve: Serve, settings: Settings) -> None:
    """It is written a tool at a time; what comes is what was asked for, in the order in which it was asked."""
    client = await serve(settings)
    catalogue: Catalogue = system_of(client).catalogue
    catalogue.publish_many([ToolSpec(name=f"t{number:03}", description="It is kept.") for number in range(250)])
    every = " ".join(field.name for field in ENTRY_FIELDS)
    limit = MAX_COST // 2 // len(ENTRY_FIELDS) - 1
    asked = (
        f"b: tools(limit: {limit}) {{ {every} }}",
        'one: tool(tool_id: "t007") { tool_id }',
        'none: tool(tool_id: "no-such") { tool_id }',
        f'a: tools(limit: {limit}, after: "t099") {{ tool_id }}',
    )
    query = "{" + " ".join(asked) + "}"
    answer = await client.post("/graphql", json={"query": query})
    data = json.loads(answer.content, object_pairs_hook=_once)["data"]
    assert list(data) == ["b", "one", "none", "a"]
    assert [tool["tool_id"] for tool in data["b"]] == [f"t{number:03}" for number in range(250)]
    assert [tool["tool_id"] for tool in data["a"]] == [f"t{number:03}" for number in range(100, 250)]
    assert (data["one"], data["none"]) == ({"tool_id": "t007"}, None)
    assert data["b"][7] == (await client.get("/tools/t007")).json()


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)

"""Progress, cancellation and long results through the MCP door, asked by the SDK's own client."""

import asyncio
import json
import os
import re
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.support.waiting import until
from tests.surfaces.http.running import RunningService
from tests.surfaces.http.telling import TELLING

from toolcrib import Image, ToolContext, ToolEvent, ToolRegistry, tool
from toolcrib.calling.call import Calls
from toolcrib.core.limits import TokenLimits
from toolcrib.core.roles import NOBODY
from toolcrib.core.tool import Tool
from toolcrib.registry.large_results import LargeResults
from toolcrib.surfaces.mcp import Toolbox, build_server
from toolcrib.surfaces.mcp.reporting import Progress

mcp = pytest.importorskip("mcp")

PROGRAM = "from toolcrib.surfaces.cli import main; main()"
MODES = ["auto", "legacy"]


@tool
async def rows(n: int) -> dict[str, Any]:
    """Rows."""
    return {"rows": [{"id": number} for number in range(n)]}


@tool
async def words(n: int) -> str:
    """Words."""
    return "word " * n


@tool
async def plenty(n: int) -> list[int]:
    """At least so many numbers."""
    return list(range(n))


@tool
async def drawn() -> list[Any]:
    """A picture and much text."""
    return ["word " * 1000, Image(b"\x89PNG")]


@tool
async def crawl(pages: int, context: ToolContext) -> AsyncIterator[str]:
    """Tell of each page, and yield it."""
    for page in range(1, pages + 1):
        context.progress(page / pages, f"page {page}")
        yield f"text {page}"


def toolbox(*tools: Tool, most: int = 500) -> Toolbox:
    registry = ToolRegistry(tools)
    return Toolbox(Calls(registry.get), registry=registry, large=LargeResults(most))


def text_of(answer: Any) -> str:
    """The first of its content."""
    text: str = answer.content[0].text
    return text


def handle_in(text: str) -> str:
    found = re.search(r'handle="([^"]+)"', text)
    assert found, text
    return found[1]


# Long results


async def test_a_long_result_is_an_outline_that_its_schema_takes() -> None:
    from mcp import Client

    async with Client(build_server(toolbox(rows, words))) as client:
        assert [each.name for each in (await client.list_tools()).tools] == ["rows", "words", "read_result"]
        answer = await client.call_tool("rows", {"n": 1000})
        text = text_of(answer)
        assert "1,000 items" in text and len(text) < 800
        assert answer.structured_content == json.loads(text.partition("\n\n")[0])
        part = await client.call_tool("read_result", {"handle": handle_in(text), "pointer": "/rows/999"})
        assert part.structured_content == {"id": 999}
        said = await client.call_tool("words", {"n": 1000})
        assert said.structured_content["result"] == "word " * 100
        short = await client.call_tool("words", {"n": 2})
        assert short.structured_content == {"result": "word word "} and text_of(short) == "word word "


async def test_what_cannot_be_shortened_within_its_schema_is_whole_for_programs() -> None:
    from mcp import Client

    strict = plenty.with_spec(plenty.spec.with_changes(returns={"type": "array", "minItems": 900}))
    async with Client(build_server(toolbox(strict))) as client:
        await client.list_tools()
        answer = await client.call_tool("plenty", {"n": 1000})
    assert len(text_of(answer)) < 800
    assert answer.structured_content == {"result": list(range(1000))}


@pytest.mark.parametrize("most", [500, 50_000])
async def test_pictures_stay(most: int) -> None:
    """Also those of tools that say what they return: the client wants structured content of them."""
    from mcp import Client

    @tool
    async def alone() -> Image:
        """A picture."""
        return Image(b"\x89PNG")

    async with Client(build_server(toolbox(drawn, alone, most=most))) as client:
        assert (await client.call_tool("alone", {})).content[0].type == "image"
        answer = await client.call_tool("drawn", {})
    assert [block.type for block in answer.content] == ["text", "image"]
    told = answer.structured_content["result"]
    assert told[1] == "[image of 4 bytes, image/png]", "it is not sent a second time"
    assert (len(text_of(answer)) < 800) == (len(told[0]) < 800) == (most == 500)


async def test_a_tool_of_the_same_name_is_hidden_while_results_are_kept() -> None:
    from mcp import Client

    @tool(name="read_result")
    async def other() -> str:
        """Another."""
        return "another"

    async with Client(build_server(toolbox(other))) as client:
        [listed] = (await client.list_tools()).tools
        assert "too long" in str(listed.description)
        assert (await client.call_tool("read_result", {"handle": "x"})).is_error
    async with Client(build_server(Toolbox(Calls(lambda _: other), registry=ToolRegistry([other])))) as client:
        assert (await client.call_tool("read_result", {})).structured_content == {"result": "another"}


async def test_a_token_for_one_tool_reads_the_rest_of_its_results() -> None:
    box = toolbox(words)
    caller = ToolContext("ada", limits=TokenLimits(tools=("words",)))
    call = box.call("words", {"n": 1000})
    handle = handle_in(call.render(await call.execute(caller), caller)["content"][0]["text"])
    for who, success in ((caller, True), (ToolContext("eve"), False), (ToolContext.of(NOBODY), False)):
        result = await box.call("read_result", {"handle": handle, "offset": 10}).execute(who)
        assert result.success is success
    refused = await box.call("rows", {"n": 1}).execute(caller)
    assert not refused.success


# Progress


async def test_progress_and_items_are_reported_to_who_asks() -> None:
    from mcp import Client

    heard: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total, message))

    async with Client(build_server(toolbox(crawl)), mode="legacy") as client:
        answer = await client.call_tool("crawl", {"pages": 2}, progress_callback=hear)
        assert (await client.call_tool("crawl", {"pages": 2})).structured_content == answer.structured_content
    assert answer.structured_content == {"result": ["text 1", "text 2"]}
    assert [message for *_, message in heard] == ["page 1", "text 1", "page 2", "text 2"]
    assert [progress for progress, *_ in heard] == sorted({progress for progress, *_ in heard}), "it only grows"


@pytest.mark.parametrize(
    ("events", "told"),
    [
        ([ToolEvent("item", item=1), ToolEvent("item", item={"a": 1})], [(1, None, "1"), (2, None, '{"a": 1}')]),
        ([ToolEvent("progress", 0.5, "half"), ToolEvent("progress", 0.5)], [(0.5, 1, "half"), (0.5, 1, None)]),
        ([ToolEvent("progress", 0.0, "a"), ToolEvent("item", item=1)], [(0, 1, "a"), (0, 1, "1")]),
        ([ToolEvent("progress", None, "x"), ToolEvent("progress", 0.5, "y")], [(1, None, "x"), (2, None, "y")]),
        ([ToolEvent("progress", 1.0, "a"), ToolEvent("item", item="b")], [(1, 1, "a"), (1, 1, "b")]),
    ],
)
def test_progress_only_grows(events: list[ToolEvent], told: list[tuple[float, float | None, str | None]]) -> None:
    progress = Progress()
    reported = [progress.after(event) for event in events]
    assert [far for far, *_ in reported] == sorted({far for far, *_ in reported})
    for (far, total, message), (expected, of, said) in zip(reported, told, strict=True):
        assert far == pytest.approx(expected) and (total, message) == (of, said)


@pytest.mark.parametrize("item", [Image(b"x" * 1000), [b"\x89PNG\r\n\x1a\n"]])
def test_an_image_is_a_message_of_a_few_words(item: Any) -> None:
    _, _, message = Progress().after(ToolEvent("item", item=item))
    assert message is not None and "image of " in message and len(message) < 50


def test_a_long_item_is_a_short_message() -> None:
    _, _, message = Progress().after(ToolEvent("item", item="x" * 1_000_000))
    assert message is not None and len(message) == 2000


# Over the wires


PLUGIN = """
import asyncio, os, time
from pathlib import Path
from toolcrib import ToolContext, tool

@tool
async def crawl(pages: int, context: ToolContext):
    "Tell of each page."
    for page in range(1, pages + 1):
        context.progress(page / pages, f"page {page}")
        yield f"text {page}"

@tool
async def words(n: int) -> str:
    "Words."
    return "word " * n

@tool(isolation="process", timeout_seconds=3600)
def hangs(pid: str, context: ToolContext) -> None:
    "Leave the process id, then hang."
    Path(pid).write_text(str(os.getpid()), encoding="utf-8")
    time.sleep(3600)
"""


@pytest.mark.parametrize("mode", MODES)
async def test_over_standard_input_and_output(tmp_path: Path, mode: Any) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    (tmp_path / "plugin.py").write_text(PLUGIN, encoding="utf-8")
    settings = {
        "TOOLCRIB_PLUGINS_DIR": str(tmp_path),
        "TOOLCRIB_STORE": "memory:",
        "TOOLCRIB_MAX_RESULT_CHARACTERS": "200",
        "HOME": str(tmp_path),
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
    }
    server = StdioServerParameters(command=sys.executable, args=["-c", PROGRAM, "mcp"], env=settings)
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total == 1
        heard.append((progress, message))

    async with Client(stdio_client(server), mode=mode) as client:
        await client.call_tool("crawl", {"pages": 2}, progress_callback=hear)
        assert [message for _, message in heard] == ["page 1", "text 1", "page 2", "text 2"]
        text = text_of(await client.call_tool("words", {"n": 100}))
        rest = await client.call_tool("read_result", {"handle": handle_in(text), "offset": 490})
        assert text_of(rest) == "word word \n\n[This is the end of the result.]"
        process = await _cancelled(client, tmp_path)
        await until(lambda: not process.exists())
        assert (await client.call_tool("words", {"n": 1})).structured_content == {"result": "word "}


async def _cancelled(client: Any, folder: Path, **options: Any) -> Path:
    """The process of a call that its caller has cancelled."""
    pid = folder / "pid"
    call = asyncio.create_task(client.call_tool("hangs", {"pid": str(pid)}, **options))
    await until(lambda: pid.exists() and bool(pid.read_text(encoding="utf-8")))
    process = Path("/proc") / pid.read_text(encoding="utf-8")
    assert process.exists()
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    return process


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    made = RunningService(tmp_path_factory.mktemp("service"), python_tools=",".join(TELLING), max_result_characters=200)
    paths = [str(Path(__file__).parents[3]), os.environ.get("PYTHONPATH", "")]
    made.environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    with made as running:
        with running.client() as client:
            for name in ("crawl", "hangs"):
                entry = {
                    "tool_id": name,
                    "tool_api_spec": {"input": {"type": "object"}},
                    "tool_metadata": {
                        "toolcrib": {"binding": {"python": f"tests.surfaces.http.telling:{name}"}}
                        | {"timeout_seconds": 3600}
                    },
                }
                assert client.post("/tools", json=entry).status_code == 201
        yield running


pytestmark = pytest.mark.xdist_group("mcp-long-calls")


@pytest.mark.parametrize("mode", MODES)
async def test_over_http(service: RunningService, tmp_path: Path, mode: Any) -> None:
    from mcp import Client

    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        assert total == 1
        heard.append((progress, message))

    async with Client(f"{service.url}/mcp", mode=mode) as client:
        answer = await client.call_tool("crawl", {"pages": 2}, progress_callback=hear)
        assert [message for _, message in heard] == ["page 1 of 2", "text 1", "page 2 of 2", "text 2"]
        assert json.loads(text_of(answer)) == ["text 1", "text 2"]
        text = text_of(await client.call_tool("crawl", {"pages": 100}))
        part = await client.call_tool("read_result", {"handle": handle_in(text), "pointer": "/99"})
        assert text_of(part) == "text 100"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("reported", [False, True])
async def test_who_leaves_ends_the_run_over_http(
    service: RunningService, tmp_path: Path, mode: Any, reported: bool
) -> None:
    from mcp import Client

    async def hear(*_: Any) -> None: ...

    options = {"progress_callback": hear} if reported else {}
    async with Client(f"{service.url}/mcp", mode=mode) as client:
        process = await _cancelled(client, tmp_path, **options)
    await until(lambda: not process.exists())


@pytest.mark.parametrize("accept", ["application/json", "application/json, text/event-stream"])
@pytest.mark.parametrize("token", [False, True])
def test_an_answer_is_json_unless_progress_is_asked_for(service: RunningService, accept: str, token: bool) -> None:
    meta = {"_meta": {"progressToken": 1}} if token else {}
    body = {
        "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "crawl", "arguments": {"pages": 1}, **meta},
    }  # fmt: skip
    with httpx.Client() as client:
        answer = client.post(f"{service.url}/mcp", json=body, headers={"accept": accept})
    streamed = token and "event-stream" in accept
    assert answer.headers["content-type"].startswith("text/event-stream" if streamed else "application/json")
    assert answer.text.count("notifications/progress") == (2 if streamed else 0)
    assert "text 1" in answer.text

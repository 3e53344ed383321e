"""Tools of a real MCP server, over HTTP and over a command's standard streams."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.processes import Program, accepts, free_port, wait_for

from toolcrib import Audio, File, Image, Link, Tool, ToolSpec
from toolcrib.adapters.http import HttpCaller
from toolcrib.adapters.runners.bound import bound_tool
from toolcrib.adapters.runners.mcp_server import McpRunner
from toolcrib.bootstrap import open_catalogue
from toolcrib.core.addresses import AddressRules
from toolcrib.core.errors import DeniedError, ToolFailedError, ToolTimeoutError
from toolcrib.settings import Settings

SERVER = """
import asyncio, sys
from typing import Any
from mcp.server.mcpserver import Audio, Image, MCPServer
from mcp.types import (
    BlobResourceContents, CallToolResult, EmbeddedResource, ImageContent, ResourceLink, TextContent,
    TextResourceContents,
)

server = MCPServer("workshop")

@server.tool()
def add(a: int, b: int) -> dict[str, int]:
    "Add."
    return {"sum": a + b}

@server.tool(structured_output=False)
def shout(text: str) -> str:
    "Shout."
    return text.upper()

PNG = b"\\x89PNG\\r\\n\\x1a\\n"

@server.tool(structured_output=False)
def chart() -> Image:
    "A chart."
    return Image(data=PNG, format="png")

@server.tool(structured_output=False)
def charts() -> list[Any]:
    "A chart with words."
    blob = BlobResourceContents(uri="file:///a%20b.pdf", mime_type="application/pdf", blob="JVBERi0=")
    return [
        "The chart:",
        Image(data=PNG, format="png"),
        Audio(data=b"RIFF", format="wav"),
        EmbeddedResource(type="resource", resource=blob),
        EmbeddedResource(type="resource", resource=TextResourceContents(uri="x:y", text="notes")),
        ResourceLink(type="resource_link", uri="https://example.org/", name="there"),
        ImageContent(type="image", data="a", mime_type="image/png"),
    ]

@server.tool()
def sales() -> CallToolResult:
    "Numbers and their chart."
    image = ImageContent(type="image", data="iVBORw0KGgo=", mime_type="image/png")
    text = TextContent(type="text", text='{"sum": 5}')
    return CallToolResult(content=[text, image], structured_content={"sum": 5})

@server.tool()
def fail() -> str:
    "Fail."
    raise ValueError("bent nail")

@server.tool()
async def slow() -> str:
    "Take your time."
    await asyncio.sleep(600)
    return "done"

if sys.argv[1:]:
    server.run(transport="streamable-http", host="127.0.0.1", port=int(sys.argv[1]))
else:
    server.run(transport="stdio")
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("mcp") / "server.py"
    path.write_text(SERVER)
    return path


@pytest.fixture(scope="module")
def server_url(script: Path) -> Iterator[str]:
    port = free_port()
    program = Program([sys.executable, str(script), str(port)], script.with_suffix(".log"))
    try:
        wait_for(lambda: accepts(port), program, timeout=100)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        program.kill()


@pytest.fixture
def caller() -> Iterator[HttpCaller]:
    caller = HttpCaller(AddressRules(("127.0.0.1",)))
    yield caller
    caller.close()


def remote(caller: HttpCaller, binding: str, name: str = "add", **fields: Any) -> Tool:
    parameters = {"type": "object"}
    fields = {"name": name, "description": "x", "parameters": parameters, "binding": {"mcp": binding}, **fields}
    return bound_tool(ToolSpec(**fields), McpRunner(caller))


async def test_a_tool_over_http(caller: HttpCaller, server_url: str) -> None:
    assert await remote(caller, server_url).execute({"a": 2, "b": 3}) == {"sum": 5}
    assert await remote(caller, f"{server_url}#shout", name="local-name").execute({"text": "é"}) == "É"


async def test_images_audio_files_and_links_are_what_they_are(caller: HttpCaller, server_url: str) -> None:
    chart = Image(b"\x89PNG\r\n\x1a\n")
    assert await remote(caller, server_url, "chart").execute({}) == chart
    *parts, broken = await remote(caller, server_url, "charts").execute({})
    audio, pdf = Audio(b"RIFF"), File(b"%PDF-", "application/pdf", "a b.pdf")
    assert parts == ["The chart:", chart, audio, pdf, "notes", Link("https://example.org/", "there")]
    assert broken == {"type": "image", "data": "a", "mimeType": "image/png"}


async def test_an_image_beside_structured_content_is_not_lost_unless_a_schema_asks_for_that_alone(
    caller: HttpCaller, server_url: str
) -> None:
    assert await remote(caller, server_url, "sales").execute({}) == ['{"sum": 5}', Image(b"\x89PNG\r\n\x1a\n")]
    assert await remote(caller, server_url, "sales", returns={"type": "object"}).execute({}) == {"sum": 5}


async def test_failures_are_told(caller: HttpCaller, server_url: str) -> None:
    with pytest.raises(ToolFailedError, match="Error executing tool fail"):
        await remote(caller, server_url, "fail").execute({})
    with pytest.raises(ToolFailedError):
        await remote(caller, server_url, "no-such-tool").execute({})
    with pytest.raises(ToolFailedError):
        await remote(caller, server_url.replace("/mcp", "/elsewhere")).execute({"a": 1, "b": 1})
    with pytest.raises(ToolFailedError):
        await remote(caller, f"http://127.0.0.1:{free_port()}/mcp").execute({"a": 1, "b": 1})


async def test_the_deadline_holds(caller: HttpCaller, server_url: str) -> None:
    with pytest.raises(ToolTimeoutError):
        await remote(caller, server_url, "slow", timeout_seconds=0.5).execute({})


async def test_internal_servers_are_refused(server_url: str) -> None:
    caller = HttpCaller(AddressRules(public_only=True))
    with pytest.raises(DeniedError, match="not a public address"):
        await remote(caller, server_url).execute({"a": 1, "b": 1})
    caller.close()


async def test_a_command_runs_only_if_the_settings_list_it(script: Path, tmp_path: Path) -> None:
    command = f"{sys.executable} {script}"
    settings = Settings(data_dir=str(tmp_path), mcp_commands=(command,))
    catalogue = open_catalogue("memory:", settings)
    for name, target in {"add": command, "other": f"{command} "}.items():
        binding = {"mcp": f"{target}#add"}
        catalogue.publish({"name": name, "description": "Adds.", "binding": binding, "parameters": {}})
    assert await catalogue.tool("add").execute({"a": 1, "b": 1}) == {"sum": 2}
    with pytest.raises(DeniedError, match="list it in TOOLCRIB_MCP_COMMANDS") as refused:
        await catalogue.tool("other").execute({"a": 1, "b": 1})
    assert refused.value.rule == "mcp_commands"
    catalogue.close()


async def test_a_catalogued_tool_of_an_mcp_server_runs(server_url: str, tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path), allowed_addresses=("127.0.0.1",))
    catalogue = open_catalogue("memory:", settings)
    catalogue.publish({"name": "add", "description": "Adds.", "binding": {"mcp": server_url}, "parameters": {}})
    assert await catalogue.tool("add").execute({"a": 20, "b": 22}) == {"sum": 42}
    catalogue.close()

"""The MCP door, asked by the SDK's own client."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.http.running import RunningService

from toolcrib import Binding, StoreError, Tool, ToolRegistry, ToolSpec, tool
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.bootstrap import System
from toolcrib.calling.call import Calls
from toolcrib.catalogue import Catalogue
from toolcrib.define import as_tool
from toolcrib.settings import Settings
from toolcrib.surfaces.mcp import Toolbox, build_server

mcp = pytest.importorskip("mcp")

PROGRAM = "from toolcrib.surfaces.cli import main; main()"


@tool
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@tool(safety_level="dangerous")
async def wipe() -> None:
    """Wipe."""


def live(registry: ToolRegistry) -> Toolbox:
    return Toolbox(Calls(registry.get), registry=registry)


async def ask(toolbox: Any) -> tuple[list[Any], Any, Any, Any]:
    from mcp import Client

    async with Client(build_server(toolbox)) as client:
        tools = (await client.list_tools()).tools
        return (
            tools,
            await client.call_tool("add", {"a": 2}),
            await client.call_tool("add", {"a": "2"}),
            await client.call_tool("wipe", {}),
        )


async def test_a_registry_through_the_door() -> None:
    tools, good, wrong, refused = await ask(live(ToolRegistry([add, wipe])))
    assert [each.name for each in tools] == ["add", "wipe"]
    assert tools[0].input_schema["required"] == ["a"] and tools[0].output_schema is not None
    assert good.structured_content == {"result": 3} and not good.is_error
    assert wrong.is_error and "argument 'a'" in wrong.content[0].text
    assert refused.is_error and "above the allowed" in refused.content[0].text


async def test_a_catalogue_hands_out_what_it_can_run() -> None:
    known: dict[str, Tool] = {"add": add, "wipe": wipe}
    catalogue = Catalogue(MemoryStore(), bind=lambda spec, _: known[spec.name])
    for made in (add, wipe):
        catalogue.publish(as_tool(made).spec.with_changes(binding=Binding(python=f"somewhere:{made.name}")))
    catalogue.publish(ToolSpec(name="only-described", description="Nothing runs it."))
    tools, good, wrong, _ = await ask(Toolbox(Calls(catalogue.tool), catalogue=catalogue))
    assert [each.name for each in tools] == ["add", "wipe"]
    assert good.structured_content == {"result": 3} and wrong.is_error


async def test_kept_tools_and_plugins_in_one_toolbox(tmp_path: Path) -> None:
    """A name means what the root says: the kept tool if it can run, else the plugin's. Each call is on record once."""
    from mcp import Client

    plugins = ("same", "described", "plugin")
    (tmp_path / "plugin.py").write_text(
        "from toolcrib import tool\n"
        + "".join(f"@tool\nasync def {name}() -> str:\n    'Live.'\n    return 'live'\n" for name in plugins)
    )

    async def kept() -> str:
        return "kept"

    settings = Settings(data_dir=str(tmp_path), store="memory:", plugins_dir=str(tmp_path))
    with System(settings, functions={"kept": kept}) as system:
        binding = Binding(system_function_rpc_id="kept")
        for name in ("same", "only-kept"):
            system.catalogue.publish(ToolSpec(name=name, description="Kept.", binding=binding))
        system.catalogue.publish(ToolSpec(name="described", description="Kept."))
        toolbox = Toolbox(system.local_calls, registry=system.plugins, catalogue=system.catalogue)
        async with Client(build_server(toolbox)) as client:
            listed = await client.list_tools()
            assert listed.next_cursor is None
            shown = {each.name: each.description for each in listed.tools}
            assert shown == {"only-kept": "Kept.", "same": "Kept.", "described": "Live.", "plugin": "Live."}
            for name, description in shown.items():
                answer = await client.call_tool(name, {})
                assert answer.structured_content == {"result": str(description).rstrip(".").lower()}
            assert (await client.call_tool("nobody", {})).is_error
        runs = [(event.tool, event.outcome) for event in reversed(system.audit.events(action="run"))]
    ends = dict.fromkeys(shown, "done") | {"nobody": "failed"}
    assert runs == [(name, outcome) for name in ends for outcome in ("attempt", ends[name])]


async def test_many_tools_come_in_pages() -> None:
    from mcp import Client

    async def run() -> None: ...

    registry = ToolRegistry([tool(name=f"t{n}", description="T.")(run) for n in range(450)])
    names: list[str] = []
    async with Client(build_server(live(registry))) as client:
        page = await client.list_tools()
        names.extend(each.name for each in page.tools)
        while page.next_cursor:
            page = await client.list_tools(cursor=page.next_cursor)
            names.extend(each.name for each in page.tools)
    assert names == [f"t{n}" for n in range(450)]


async def test_an_error_that_is_no_result_has_its_json_rpc_code() -> None:
    from mcp import Client, MCPError

    class Gone(MemoryStore):
        def query(self, *_: Any, **__: Any) -> Any:
            raise StoreError("the store is gone")

    catalogue = Catalogue(Gone(), bind=lambda *_: as_tool(add))
    async with Client(build_server(Toolbox(Calls(catalogue.tool), catalogue=catalogue))) as client:
        with pytest.raises(MCPError, match="the store is gone") as raised:
            await client.list_tools()
    assert raised.value.code == StoreError.answer.rpc


async def test_over_standard_input_and_output(tmp_path: Path) -> None:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    (tmp_path / "plugin.py").write_text(
        "from toolcrib import tool\n"
        "@tool\n"
        "async def shout(text: str) -> str:\n"
        "    'Shout.'\n"
        "    print('noise that must not reach the protocol')\n"
        "    return text.upper()\n"
        "@tool\n"
        "async def judged(url: str) -> str:\n"
        "    'Say why an address may not be reached.'\n"
        "    from toolcrib.toolsets.browser import BrowserSession\n"
        "    return BrowserSession().addresses.refusal_of_url(url)\n"
    )
    server = StdioServerParameters(
        command=sys.executable,
        args=["-c", PROGRAM, "mcp"],
        env={"TOOLCRIB_PLUGINS_DIR": str(tmp_path), "TOOLCRIB_STORE": "memory:", "HOME": str(tmp_path)},
    )
    async with Client(stdio_client(server)) as client:
        assert "shout" in [each.name for each in (await client.list_tools()).tools]
        answer = await client.call_tool("shout", {"text": "hey"})
        fenced = await client.call_tool("judged", {"url": "http://127.1/"})
    assert answer.structured_content == {"result": "HEY"}
    assert "is not a public address" in str(fenced.structured_content)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[RunningService]:
    """A service of its own, on embedded defaults."""
    with RunningService(tmp_path, plugins_dir="") as running:
        yield running


async def test_over_http_behind_the_gate(service: RunningService) -> None:
    from mcp import Client

    async with Client(f"{service.url}/mcp") as client:
        assert [each.name for each in (await client.list_tools()).tools] == ["read_result"]
        missing = await client.call_tool("nobody", {})
    assert missing.is_error and "no tool is called 'nobody'" in str(missing.content)
    with service.client() as foreign:
        hostile = foreign.post("/mcp", json={}, headers={"origin": "http://evil.example"})
    assert hostile.status_code == 403

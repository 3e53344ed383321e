"""One behaviour over every door: in this process, by command line, by REST, by GraphQL and by MCP.

Each door is asked the same questions about the same catalogue and must give the same answers. Not every door can ask
everything (GraphQL runs nothing, MCP knows nothing of stacking): it is asked what it has a method for.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.surfaces.http.running import RunningService

from toolcrib import Binding, ToolNotFoundError, ToolRegistry, ToolSpec, open_catalogue
from toolcrib.core.json import as_json
from toolcrib.settings import load_settings

CODE = '''
from toolcrib import tool

@tool(timeout_seconds=60)
async def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b

@tool
async def broken() -> None:
    """Fail."""
    raise RuntimeError("no luck")

@tool
async def odd() -> dict:
    """Return what JSON lacks."""
    return {"png": b"\\x89PNG\\xff", "half": "a\\ud800", "mean": float("nan")}

@tool
async def deep() -> list:
    """Return what nests deeper than anybody can follow."""
    value: list = []
    for _ in range(100_000):
        value = [value]
    return value

@tool(safety_level="dangerous")
async def wipe() -> str:
    """Wipe a disk."""
    return "wiped"
'''


class Here:
    """The library, in this process."""

    def __init__(self, service: RunningService) -> None:
        settings = load_settings(service.environment, service.folder)
        self.catalogue = open_catalogue(settings=settings)

    def get(self, name: str) -> str | None:
        try:
            return self.catalogue.get(name).description
        except ToolNotFoundError:
            return None

    def names(self, query: dict[str, Any]) -> list[str]:
        renamed = {{"tool_type": "tool_type", "tool_tags": "tags"}[key]: value for key, value in query.items()}
        return [spec.name for spec in self.catalogue.query(renamed)]

    def search(self, text: str) -> list[str]:
        return [hit.spec.name for hit in self.catalogue.search(text)]

    def stacks(self, *names: str) -> bool:
        return self.catalogue.check_compat(names).compatible

    def run(self, name: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
        if name not in self.catalogue:
            return (False, f"no tool is called {name!r}")
        registry = ToolRegistry([self.catalogue.tool(name)])
        result = asyncio.run(registry.execute(name, arguments))
        return (result.success, result.data if result.success else result.error)


class Shell:
    """The command line, as a user types it."""

    def __init__(self, service: RunningService) -> None:
        self.environment = service.environment

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        program = Path(sys.executable).with_name("toolcrib")
        return subprocess.run(
            [program, *arguments], env=self.environment, capture_output=True, text=True, timeout=60, check=False
        )

    def get(self, name: str) -> str | None:
        answer = self.call("tools", "show", name)
        if answer.returncode == 3:
            return None
        description: str = json.loads(answer.stdout)["description"]
        return description

    def search(self, text: str) -> list[str]:
        found = json.loads(self.call("tools", "search", text).stdout)
        return [hit.get("name") or hit["tool"]["name"] for hit in found]

    def stacks(self, *names: str) -> bool:
        answer = self.call("tools", "check-compat", *names)
        first = answer.stdout.splitlines()[0]
        assert (first, answer.returncode) in {("Compatible", 0), ("Non compatible", 1)}
        return first == "Compatible"

    def run(self, name: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
        answer = self.call("tools", "run", name, "--arguments", json.dumps(arguments))
        if answer.returncode == 0:
            return (True, json.loads(answer.stdout))
        return (False, answer.stderr.removeprefix("toolcrib: ").strip())


class Rest:
    def __init__(self, service: RunningService) -> None:
        self.client = service.client()

    def get(self, name: str) -> str | None:
        answer = self.client.get(f"/tools/{name}")
        return None if answer.status_code == 404 else answer.json()["tool_search_description"]

    def names(self, query: dict[str, Any]) -> list[str]:
        return [entry["tool_id"] for entry in self.client.post("/tools/query/generic", json=query).json()]

    def search(self, text: str) -> list[str]:
        return [hit["tool_id"] for hit in self.client.get("/tools/search", params={"q": text}).json()]

    def stacks(self, *names: str) -> bool:
        answer: bool = self.client.post("/tools/check-compat", json={"tools": list(names)}).json()["compatible"]
        return answer

    def run(self, name: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
        answer = self.client.post(f"/tools/{name}/run", json={"arguments": arguments}).json()
        if answer.get("success"):
            return (True, answer["data"])
        return (False, answer.get("error") or answer["detail"])


class Graph:
    def __init__(self, service: RunningService) -> None:
        self.client = service.client()

    def ask(self, text: str, **variables: Any) -> Any:
        answer = self.client.post("/graphql", json={"query": text, "variables": variables}).json()
        assert "errors" not in answer, answer
        return answer["data"]

    def get(self, name: str) -> str | None:
        found = self.ask("query($n: String!) { tool(tool_id: $n) { tool_search_description } }", n=name)["tool"]
        return None if found is None else found["tool_search_description"]

    def names(self, query: dict[str, Any]) -> list[str]:
        found = self.ask("query($q: JSON) { tools(query: $q) { tool_id } }", q=query)["tools"]
        return [entry["tool_id"] for entry in found]


class Mcp:
    def __init__(self, service: RunningService) -> None:
        self.url = f"{service.url}/mcp"

    def run(self, name: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
        return asyncio.run(self._run(name, arguments))

    async def _run(self, name: str, arguments: dict[str, Any]) -> tuple[bool, Any]:
        from mcp import Client

        async with Client(self.url) as client:
            answer = await client.call_tool(name, arguments)
        if answer.is_error:
            return (False, getattr(answer.content[0], "text", ""))
        content = answer.structured_content
        return (True, content.get("result", content))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    folder = tmp_path_factory.mktemp("doors")
    (folder / "door_tools.py").write_text(CODE)
    sys.path.insert(0, str(folder))
    names = ("add", "broken", "odd", "deep", "wipe")
    running = RunningService(folder, python_tools=",".join(f"door_tools:{name}" for name in names))
    running.environment["PYTHONPATH"] = str(folder)
    import door_tools  # type: ignore[import-not-found]

    catalogue = open_catalogue(settings=load_settings(running.environment, folder))
    for name in names:
        bound = Binding(python=f"door_tools:{name}")
        catalogue.publish(
            getattr(door_tools, name).spec.with_changes(binding=bound, tags=["sums"] if name == "add" else [])
        )
    catalogue.publish(ToolSpec(name="firefox", description="A browser.", tool_type="browser"))
    catalogue.publish(ToolSpec(name="chrome", description="Another browser.", tool_type="browser"))
    catalogue.publish(ToolSpec(name="soup", description="Parses pages.", tool_type="parser"))
    catalogue.close()
    with running:
        yield running
    sys.path.remove(str(folder))


DOORS = {"here": Here, "shell": Shell, "rest": Rest, "graphql": Graph, "mcp": Mcp}


def every_door_that_can(question: str) -> pytest.MarkDecorator:
    names = [name for name, kind in DOORS.items() if hasattr(kind, question)]
    assert len(names) > 1
    return pytest.mark.parametrize("door", names, indirect=True)


@pytest.fixture
def door(request: pytest.FixtureRequest, service: RunningService) -> Iterator[Any]:
    made: Any = DOORS[request.param](service)
    yield made
    for held in ("client", "catalogue"):
        if hasattr(made, held):
            getattr(made, held).close()


@every_door_that_can("get")
def test_a_tool_and_its_absence(door: Any) -> None:
    assert door.get("firefox") == "A browser."
    assert door.get("nobody") is None


@every_door_that_can("names")
def test_the_same_query(door: Any) -> None:
    assert door.names({"tool_type": "browser"}) == ["chrome", "firefox"]
    assert door.names({"tool_tags": "sums"}) == ["add"]
    assert door.names({"tool_type": {"$in": ["parser", "browser"]}, "tool_tags": {"$size": 0}}) == [
        "chrome",
        "firefox",
        "soup",
    ]


@every_door_that_can("search")
def test_the_same_search(door: Any) -> None:
    assert door.search("numbers")[0] == "add"


@every_door_that_can("stacks")
def test_the_same_verdict(door: Any) -> None:
    assert door.stacks("firefox", "soup") is True
    assert door.stacks("firefox", "chrome") is False


@every_door_that_can("run")
def test_a_result_that_json_lacks_is_told_alike(door: Any) -> None:
    told = as_json(door.run("odd", {})[1])
    assert told == {"png": "iVBOR/8=", "half": "a?", "mean": "NaN"}
    assert "nested too deep" in as_json(door.run("deep", {})[1])


@every_door_that_can("run")
def test_the_same_results_and_the_same_sentences(door: Any) -> None:
    assert door.run("add", {"a": 2}) == (True, 3)
    for name, arguments, says in [
        ("add", {"a": True}, "argument 'a' of tool 'add': true is not of type \"integer\""),
        ("add", {}, "tool 'add' needs the argument 'a'"),
        ("broken", {}, "tool 'broken' failed: RuntimeError: no luck"),
        ("wipe", {}, "'wipe' is 'dangerous', above the allowed 'high', and nobody is there to approve it"),
        ("nobody", {}, "no tool is called 'nobody'"),
    ]:
        succeeded, error = door.run(name, arguments)
        assert not succeeded
        assert error.startswith(says), (name, error)

"""One browser a module, one session a test, and a web of our own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from tests.toolsets.browser.pages import Web

from toolcrib import ToolRegistry, ToolResult
from toolcrib.toolsets.browser import BrowserSession, Chromium, browser_registry


@pytest.fixture(scope="module")
def web() -> Iterator[Web]:
    server = Web()
    yield server
    server.close()


@pytest.fixture
def world() -> Iterator[Web]:
    """The rest of the world: another server, which guarded browsers must never reach. No page of another test does."""
    server = Web()
    yield server
    server.close()


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def chromium(chromium_path: str) -> AsyncIterator[Chromium]:
    async with Chromium(chromium_path) as browser:
        yield browser


@pytest_asyncio.fixture(loop_scope="module")
async def session(chromium: Chromium, tmp_path: Path) -> AsyncIterator[BrowserSession]:
    async with BrowserSession(chromium=chromium, folder=tmp_path / "files") as opened:
        yield opened


_PATIENCE_MS = 60_000
"""For what must succeed; the tools' own limits are a person's patience with a machine that is not busy."""


class Agent:
    """Calls tools as an agent does: by name, through the registry."""

    def __init__(self, session: BrowserSession, registry: ToolRegistry) -> None:
        self.session = session
        self.registry = registry

    async def try_(self, tool: str, /, **arguments: Any) -> ToolResult:
        return await self.registry.execute(tool, arguments)

    async def __call__(self, tool: str, /, **arguments: Any) -> Any:
        timeout = self.registry.get(tool).spec.parameters["properties"].get("timeout")
        if timeout is not None and timeout["default"] < _PATIENCE_MS:
            arguments.setdefault("timeout", _PATIENCE_MS)
        result = await self.try_(tool, **arguments)
        assert result.success, f"{tool}: {result.error} ({result.error_code})"
        return result.data

    async def js(self, script: str) -> Any:
        return await self.session.page.evaluate(script)

    async def text(self, selector: str) -> str:
        return str(await self.session.page.inner_text(selector))


@pytest.fixture
def agent_of() -> Callable[[BrowserSession], Agent]:
    return lambda session: Agent(session, browser_registry(session, approve=lambda *_: True))


@pytest.fixture
def agent(session: BrowserSession, agent_of: Callable[[BrowserSession], Agent]) -> Agent:
    return agent_of(session)

"""The application in this process, on each store."""

import asyncio
from collections.abc import AsyncIterator, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import httpx
import pytest

from toolcrib.bootstrap import System, open_system
from toolcrib.settings import Settings, load_settings
from toolcrib.surfaces.http.application import Application
from toolcrib.surfaces.service import application_of

BASE = "http://127.0.0.1:8000"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"HOME": str(tmp_path), "TOOLCRIB_DATA_DIR": str(tmp_path / "data")}, tmp_path)


class Serve(Protocol):
    """``options`` are those of ``application_of``."""

    async def __call__(self, settings: Settings, **options: Any) -> httpx.AsyncClient: ...


@asynccontextmanager
async def lifespan(app: Application) -> AsyncIterator[None]:
    """Start and end the application as a server does."""
    to_app: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    from_app: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
    task = asyncio.create_task(app({"type": "lifespan"}, to_app.get, from_app.put))
    await to_app.put({"type": "lifespan.startup"})
    assert (await from_app.get())["type"] == "lifespan.startup.complete"
    try:
        yield
    finally:
        await to_app.put({"type": "lifespan.shutdown"})
        assert (await from_app.get())["type"] == "lifespan.shutdown.complete"
        await task


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """A client of an application with the given settings; everything is closed at the end."""
    ends: list[tuple[asyncio.Event, asyncio.Task[None]]] = []

    async def live(app: Application, started: asyncio.Event, ended: asyncio.Event) -> None:
        async with lifespan(app):  # entered and left in one task
            started.set()
            await ended.wait()

    async def client_of(settings: Settings, **options: Any) -> httpx.AsyncClient:
        system = open_system(settings)
        app = application_of(system, **options)
        started, ended = asyncio.Event(), asyncio.Event()
        ends.append((ended, asyncio.create_task(live(app, started, ended))))
        await started.wait()
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000))
        client = httpx.AsyncClient(transport=transport, base_url=BASE)
        client.system = system  # type: ignore[attr-defined]
        return client

    yield client_of
    for ended, task in ends:
        ended.set()
        await task


@pytest.fixture
async def client(serve: Serve, settings: Settings) -> httpx.AsyncClient:
    return await serve(settings)


def system_of(client: httpx.AsyncClient) -> System:
    """What the application behind a client of ``serve`` runs on."""
    system: System = client.system  # type: ignore[attr-defined]
    return system

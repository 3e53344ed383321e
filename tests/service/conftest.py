"""The application in this process, on each store."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

from toolcrib.settings import Settings, load_settings
from toolcrib.surfaces.rest import Application
from toolcrib.surfaces.serve import application

BASE = "http://127.0.0.1:8000"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return load_settings({"HOME": str(tmp_path), "TOOLCRIB_DATA_DIR": str(tmp_path / "data")}, tmp_path)


Serve = Callable[[Settings], Awaitable[httpx.AsyncClient]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    """A client of an application with the given settings; everything is closed at the end."""
    async with AsyncExitStack() as stack:

        async def client_of(settings: Settings) -> httpx.AsyncClient:
            app = application(settings)
            stack.callback(_close, app)
            transport = httpx.ASGITransport(app, client=("127.0.0.1", 50_000))
            client = httpx.AsyncClient(transport=transport, base_url=BASE)
            client.headers["x-test"] = "1"
            client.app = app  # type: ignore[attr-defined]
            return await stack.enter_async_context(client)

        yield client_of


def _close(app: Application) -> None:
    app.service.close()
    app.service.catalogue.close()


@pytest.fixture
async def client(serve: Serve, settings: Settings) -> httpx.AsyncClient:
    return await serve(settings)


def app_of(client: httpx.AsyncClient) -> Any:
    return client.app  # type: ignore[attr-defined]

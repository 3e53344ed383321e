"""The browser tools, run by the service: not against its own neighbours."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.surfaces.conftest import Serve, system_of
from tests.surfaces.http.running import RunningService

from toolcrib.settings import Settings
from toolcrib.toolsets.browser import browser_specs


def ran(service: RunningService, url: str) -> dict[str, Any]:
    answer = httpx.post(f"{service.url}/tools/goto/run", json={"arguments": {"url": url}}, timeout=90)
    result: dict[str, Any] = answer.json()
    return result


@pytest.fixture
def neighbour() -> Iterator[tuple[str, list[str]]]:
    """A page on loopback, and the paths that were asked of it."""
    asked: list[str] = []

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = b"<title>Inside</title>"
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://localhost:{server.server_port}/", asked
    server.shutdown()
    server.server_close()


def test_only_what_the_settings_let_through(
    tmp_path: Path, chromium_path: str, neighbour: tuple[str, list[str]]
) -> None:
    inside, asked = neighbour
    with RunningService(tmp_path, "--sample") as service:
        fenced = ran(service, inside)
    assert fenced["success"] is False
    assert "'localhost:" in fenced["error"] and "is not a public address" in fenced["error"]
    assert asked == []
    with RunningService(tmp_path, allowed_addresses="localhost") as service:
        opened = ran(service, inside)
    assert opened["success"] is True, opened
    assert opened["data"]["title"] == "Inside"


@pytest.mark.parametrize("host", ["localhost", "127.1", "0x7f000001", "[::ffff:127.0.0.1]"])
async def test_the_application_is_fenced_without_its_server(
    serve: Serve, settings: Settings, chromium_path: str, neighbour: tuple[str, list[str]], host: str
) -> None:
    """``application(settings)`` is what others mount in servers of their own."""
    inside, asked = neighbour
    client = await serve(settings)
    goto = next(spec for spec in browser_specs() if spec.name == "goto")
    system_of(client).catalogue.publish(goto)
    answer = await client.post("/tools/goto/run", json={"arguments": {"url": inside.replace("localhost", host)}})
    assert answer.json()["error_code"] == "domain_denied"
    assert "is not a public address" in answer.json()["error"]
    assert asked == []

"""The browser tools, run by the service: not against its own neighbours."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.surfaces.rest.running import RunningService


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
    assert "127.0.0.0/8" in fenced["error"]
    assert asked == []
    with RunningService(tmp_path, browser_deny="") as service:
        opened = ran(service, inside)
    assert opened["success"] is True, opened
    assert opened["data"]["title"] == "Inside"

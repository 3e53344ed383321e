"""One page with a button, and the browsers that look at it."""

from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.support.website import served

_PAGE = b"""<title>Shop</title><h1>Hammer</h1>
<button onclick="document.cookie = 'bought=yes'; document.querySelector('h1').textContent = 'Bought'">Buy now</button>
"""


class _Shop(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.send_header("content-length", str(len(_PAGE)))
        self.end_headers()
        self.wfile.write(_PAGE)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture
def shop() -> Iterator[str]:
    """The page's address. Whoever presses its button changes the heading from Hammer to Bought."""
    with served(ThreadingHTTPServer(("127.0.0.1", 0), _Shop)) as server:
        yield f"http://127.0.0.1:{server.server_port}/"


def browsers(mark: str) -> list[int]:
    """The processes of the browsers that were started where ``mark`` was in the environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            variables = entry.read_bytes()
            if mark.encode() in variables and b"TOOLCRIB_BROWSER=" in variables:
                found.append(int(entry.parent.name))
    return found

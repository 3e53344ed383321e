"""The practice bookshop, served in a thread."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from typing import TypeVar

from toolcrib.toolsets.scraping.practice import Site

Server = TypeVar("Server", bound=ThreadingHTTPServer)


@contextmanager
def served(server: Server) -> Iterator[Server]:
    """Serve in a thread until the block ends."""
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def serve_site(*, delay: float = 0.0) -> Iterator[Site]:
    site = Site()
    site.delay = delay
    with served(site) as running:
        yield running

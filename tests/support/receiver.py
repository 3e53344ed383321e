"""A real HTTP server on loopback that keeps what it was sent and answers as a test says."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, dict[str, str], bytes]


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: bytes
    at: float = field(default_factory=time.time)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


class Receiver:
    """``answer`` is called for each request; a test may put another in its place at any time."""

    def __init__(self, port: int = 0) -> None:
        self.received: list[Received] = []
        self.answer: Callable[[Received], Answer] = lambda _: (200, {}, b"{}")
        self._server = _Server(("127.0.0.1", port), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self) -> None:
                length = int(self.headers.get("Content-Length", 0))
                body = self.rfile.read(length)
                if len(body) < length:  # the sender died in the middle
                    self.close_connection = True
                    return
                request = Received(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                receiver.received.append(request)
                status, headers, content = receiver.answer(request)
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)
                except OSError:
                    self.close_connection = True

            do_GET = do_POST

            def log_message(self, *args: object) -> None:
                pass

        return Handler


@contextmanager
def receiving(port: int = 0) -> Iterator[Receiver]:
    receiver = Receiver(port)
    try:
        yield receiver
    finally:
        receiver.stop()

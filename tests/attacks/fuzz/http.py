"""Raw bytes to the real service over a socket of loopback: heads, bodies, chunks.

What leaves no complete request is answered or hung up on; nothing is answered as a defect, and the service lives on.
``@LENGTH@`` in an input is replaced by the length of what follows the head, so that changed bodies arrive too.
"""

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.attacks.fuzz.target import Attack, Fault, Target
from tests.support.waiting import PATIENCE
from tests.surfaces.http.bundles import bundle
from tests.surfaces.http.running import RunningService

from toolcrib.surfaces.service import ENDPOINTS

_STATUS = re.compile(rb"(?:\A|\r\n\r\n|[}\]])HTTP/1\.[01] (\d{3})")
_QUIET_SECONDS = 0.1
"""Who says nothing for so long may wait for the rest of a request: we hang up our end, and it must hang up its."""
_LENGTH = b"@LENGTH@"


def _answer(port: int, content: bytes) -> bytes:
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection, suppress(ConnectionError):
        connection.sendall(content)
        connection.settimeout(_QUIET_SECONDS)
        with suppress(TimeoutError):
            while piece := connection.recv(65536):
                answer += piece
            return answer
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(PATIENCE)
        while piece := connection.recv(65536):
            answer += piece
    return answer


def _complete(content: bytes) -> bytes:
    body = content.partition(b"\r\n\r\n")[2]
    return content.replace(_LENGTH, b"%d" % len(body), 1)


@contextmanager
def _opened(folder: Path) -> Iterator[Attack]:
    with RunningService(folder, max_body_bytes=200_000, max_upload_bytes=400_000) as service:

        def attack(content: bytes) -> None:
            try:
                answer = _answer(service.port, _complete(content))
            except TimeoutError:
                raise Fault("the service neither answers nor hangs up") from None
            except OSError as error:
                raise Fault(f"the service takes no connection: {error}") from error
            if any(status == b"500" for status in _STATUS.findall(answer)):
                raise Fault(f"answered as a defect: {answer[-600:]!r}")

        yield attack
        broken = [line for line in service.log_text().splitlines() if '"level": "error"' in line or "panicked" in line]
        if broken or service.process.poll() is not None:
            raise Fault(f"the service's log: {broken[:3]}")


def _request(method: str, target: str, body: bytes = b"", *headers: str) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", *headers]
    if body:
        lines.append(f"Content-Length: {_LENGTH.decode()}")
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def _json(method: str, target: str, body: bytes) -> bytes:
    return _request(method, target, body, "Content-Type: application/json")


def _corpus() -> Iterator[bytes]:
    for endpoint in ENDPOINTS:
        if endpoint.body is None:
            path = endpoint.path.replace("{tool_id}", "a").replace("{version}", "1").replace("{digest}", "0" * 64)
            asked = "?" + "&".join(f"{p.name}=1" for p in endpoint.parameters if p.where == "query")
            yield _request(endpoint.method, path + asked.rstrip("?"))
    yield _json("POST", "/tools", b'{"tool_id": "a", "tool_type": "x", "tool_metadata": {"a": [1, 2.5]}}')
    yield _json("PUT", "/tools/a?force=true", b'{"tool_tags": ["ai"], "tool_api_spec": {"input": {"type": "object"}}}')
    yield _json("POST", "/tools/a/run", b'{"arguments": {"text": "a"}}')
    yield _json("POST", "/tools/query/generic", b'{"tool_tags": {"$in": ["a", null]}, "tool_id": {"$regex": "^a"}}')
    yield _json(
        "POST", "/graphql", b'{"query": "query($n: Int!) { tools(limit: $n) { tool_id } }", "variables": {"n": 5}}'
    )
    yield _json("POST", "/mcp", b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}').replace(
        b"Connection", b"Accept: application/json, text/event-stream\r\nConnection"
    )
    form = b'--b\r\nContent-Disposition: form-data; name="file"; filename="b.zip"\r\n\r\n' + bundle() + b"\r\n--b--\r\n"
    yield _request("POST", "/tools/upload?replace=true", form, "Content-Type: multipart/form-data; boundary=b")
    chunks = b'8\r\n{"tool_i\r\n7;x=y\r\nd":"b"}\r\n0\r\nTrailer: 1\r\n\r\n'
    yield _request("POST", "/tools", b"", "Content-Type: application/json", "Transfer-Encoding: chunked") + chunks
    yield _request("GET", "/tools/a", b"", 'If-None-Match: W/"x", "y"', "Authorization: Bearer tcrib_x")
    yield _request("OPTIONS", "*") + _request("GET", "/healthz")


TARGET = Target(
    "http",
    tuple(_corpus()),
    (
        b"\r\n", b"\n", b"\r\n\r\n", b" ", b"\t", b"\0", b"HTTP/1.0", b"HTTP/2.0",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"Host: a\r\n",
        b"Host: 127.0.0.1\r\n", b"Origin: null\r\n", b"Content-Length: 0\r\n", b"Content-Length: -1\r\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Expect: 100-continue\r\n",
        b"ffffffffffffffff\r\n",
        b"0\r\n\r\n", b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"X-Forwarded-For: ::1\r\n",
        b"Range: bytes=0-\r\n", b"%00",
        b"%ff", b"%2e%2e/", b"../", b"?limit=0", b"&cursor=", b"#", b"CONNECT a:1 HTTP/1.1\r\n", b"TRACE ", b"HEAD ",
        b"DELETE ",
        b"Content-Type: text/plain\r\n", b"application/x-www-form-urlencoded", b"Authorization: Bearer \r\n",
        b'"$where"',
        b'If-Match: "a"\r\n', b"Content-Encoding: gzip\r\n", b"--b", b"--b--", b'name="file"',
        b"traceparent: 00-0-0-01\r\n",
        b"Mcp-Session-Id: 1\r\n", b"Accept: */*\r\n", b"\xff", b"multipart/form-data; boundary=", b"tools/call",
        b'"params"',
    ),
    _opened,
    400,
    shares=1,
)  # fmt: skip

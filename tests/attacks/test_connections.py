"""Connections and bodies that are held on to: the service has places for the others."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.attacks.conftest import Attacked
from tests.support.waiting import PATIENCE, wait_until
from tests.surfaces.http.running import RunningService

pytestmark = pytest.mark.xdist_group("service-process")


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def connect(service: RunningService, opened: ExitStack, said: bytes = b"") -> socket.socket:
    connection = opened.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE))
    connection.sendall(said)
    return connection


def test_silent_connections_leave_room(attacked: Attacked, opened: ExitStack) -> None:
    """More of them than there are file handles; reading and writing go on, and so does health."""
    service = attacked.service
    service.environment["TOOLCRIB_IDLE_SECONDS"] = "3600"
    service.start(limits="ulimit -n 300")
    publisher = attacked.as_role("publisher")
    for said in (b"", b"GET /healthz HTTP/1.1\r\nHost: 127"):
        for _ in range(320):
            connect(service, opened, said)
        with service.client() as client:
            assert client.get("/healthz").status_code == 200
        assert publisher.post("/tools", json={"tool_id": f"written-{len(said)}"}).status_code == 201
        assert publisher.get("/tools").status_code == 200
    assert "the limit on open files is 300" in service.log_text()


def test_a_silent_connection_is_closed(tmp_path: Path, opened: ExitStack) -> None:
    with RunningService(tmp_path, idle_seconds=0.5) as service:
        for said in (b"", b"GET / HTTP/1.1\r\nHost: 127", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
            connection = connect(service, opened, said)
            while connection.recv(65536):  # until the service closes it
                pass


def test_it_speaks_one_version_of_http(tmp_path: Path, opened: ExitStack) -> None:
    """HTTP/2 on a plain connection would be another way in, with limits of its own."""
    with RunningService(tmp_path) as service:
        connection = connect(service, opened, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(9))
        said = b""
        while piece := connection.recv(65536):
            said += piece
        assert not said or said.startswith(b"HTTP/1.1 400")
        assert service.answers("/healthz")


def test_a_slow_reader_does_not_hold_its_place(tmp_path: Path, opened: ExitStack) -> None:
    """With every place taken by clients that read nothing of their answer, the next is served."""
    service = RunningService(tmp_path, max_connections=16, idle_seconds=3600)
    with service, service.client() as client:
        manual = "x" * 3_000_000
        assert client.post("/tools", json={"tool_id": "large", "tool_man_page_doc": manual}).status_code == 201
        for _ in range(40):
            slow = opened.enter_context(socket.socket())
            slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            slow.settimeout(PATIENCE)
            slow.connect(("127.0.0.1", service.port))
            slow.sendall(b"GET /tools/large HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        wait_until(lambda: service.answers("/healthz"))
        assert client.get("/tools/large").json()["tool_man_page_doc"] == manual

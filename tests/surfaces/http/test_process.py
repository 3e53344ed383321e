"""The real server as a process: start, refusal to start, slow and endless clients, graceful end, several workers."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import httpx
import pytest
from tests.support.processes import free_port
from tests.support.waiting import PATIENCE, wait_until
from tests.surfaces.http.bundles import SPEC, bundle
from tests.surfaces.http.runnable import RUNNABLE
from tests.surfaces.http.running import RunningService

from toolcrib.settings import Settings
from toolcrib.surfaces.serve import check_start

pytestmark = pytest.mark.xdist_group("service-process")

PROGRAM = str(Path(sys.executable).with_name("toolcrib"))


def raw(port: int, request: bytes) -> bytes:
    """All that comes back, also from a service that answers and hangs up before it has read everything."""
    answer = b""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        with suppress(ConnectionError):
            connection.sendall(request)
        with suppress(ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
    return answer


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> object:
    with RunningService(
        tmp_path_factory.mktemp("service"),
        "--sample",
        python_tools=",".join(RUNNABLE),
        max_body_bytes=100_000,
    ) as running:
        yield running


def test_a_started_service_knows_nothing_of_the_developers_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / "developer" / ".config"
    (config / "toolcrib").mkdir(parents=True)
    (config / "toolcrib" / "toolcrib.toml").write_text(f'store = "sqlite:///{tmp_path}/developers.db"\n')
    monkeypatch.setenv("HOME", str(tmp_path / "developer"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(config))
    monkeypatch.setenv("TOOLCRIB_NONSENSE", "1")
    with RunningService(tmp_path) as service, service.client() as client:
        assert client.post("/tools", json={"tool_id": "a"}).status_code == 201
    assert not (tmp_path / "developers.db").exists()


def test_the_newcomers_way(service: RunningService) -> None:
    """As the README has it: upload, find four ways, read the manual."""
    with service.client() as client:
        uploaded = client.post("/tools/upload", files={"file": bundle({**SPEC, "tool_tags": ["newcomer"]})})
        assert uploaded.json() == {"message": "Tool uploaded successfully", "tool_id": "tool-123"}
        by_tag = client.get("/tools/query/by-tag", params={"tag": "newcomer"}).json()
        by_keyword = client.get("/tools/query/by-keyword", params={"keyword": "large language model"}).json()
        generic = client.post("/tools/query/generic", json={"tool_tags": "newcomer"}).json()
        query = '{ tools(query: { tool_tags: "newcomer" }) { tool_id tool_man_page_doc } }'
        graph = client.post("/graphql", json={"query": query}).json()["data"]["tools"]
        for found in (by_tag, by_keyword, generic, graph):
            assert [entry["tool_id"] for entry in found] == ["tool-123"]
        assert graph[0]["tool_man_page_doc"].startswith("# tool-123")
        assert by_tag[0]["tool_source_code_link"].startswith(f"{service.url}/bundles/")
        assert client.get(by_tag[0]["tool_source_code_link"]).status_code == 200
        assert len(client.get("/tools").json()) > 10, "the samples are there too"


def test_odd_http(service: RunningService) -> None:
    host = b"Host: 127.0.0.1\r\n"
    for request, statuses in (
        (b"GET /tools/%zz HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n", (400, 404)),
        (b"GET /tools/%ff HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n", (400, 404)),
        (b"GET /tools/../../etc/passwd HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n", (400, 404)),
        (b"GET /tools/" + b"a" * 5000 + b" HTTP/1.1\r\n" + host + b"Connection: close\r\n\r\n", (400, 404)),
        (b"GET /tools/a HTTP/1.1\r\nConnection: close\r\n\r\n", (400, 421)),
        (b"GET /tools/a HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", (421,)),
        (b"GET http://evil.example/tools/a HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", (421,)),
        (b"GET /tools/a HTTP/1.1\r\n" + host + b"Host: evil.example\r\nConnection: close\r\n\r\n", (400,)),
        (b"POST /tools HTTP/1.1\r\n" + host + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde", (400,)),
        (b"nonsense\r\n\r\n", (400,)),
        (b"GET / HTTP/1.1\r\n" + host + b"X: " + b"y" * 600_000 + b"\r\n\r\n", (400, 431)),
    ):
        answer = raw(service.port, request)
        assert int(answer.split(b" ")[1]) in statuses, (request[:60], answer[:200])


def test_bodies_over_the_limit_are_refused_while_they_come(service: RunningService) -> None:
    head = b"POST /tools HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    declared = raw(service.port, head + b"Content-Length: 99999999\r\nConnection: close\r\n\r\n{")
    assert b" 413 " in declared.splitlines()[0]
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        try:
            for _ in range(200):
                connection.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            answer = connection.recv(4096)
        except ConnectionError:
            return  # it has hung up, which is an answer too
        assert b" 413 " in answer.splitlines()[0]


def test_slow_clients_do_not_hold_up_the_others(service: RunningService) -> None:
    idle = [socket.create_connection(("127.0.0.1", service.port)) for _ in range(200)]
    for number, connection in enumerate(idle):
        connection.sendall(b"GET /tools HTTP/1.1\r\nHost: 127" if number % 2 else b"")
    assert httpx.get(f"{service.url}/tools/httpx", timeout=PATIENCE).status_code in (200, 404)
    for connection in idle:
        connection.close()


def test_headers_that_never_come_are_not_waited_for(service: RunningService) -> None:
    with socket.create_connection(("127.0.0.1", service.port), timeout=PATIENCE) as connection:
        connection.sendall(b"GET /tools HTTP/1.1\r\nHost: 127")
        while connection.recv(4096):  # until the service closes it
            pass


def test_workers_do_not_show_old_answers(tmp_path: Path) -> None:
    with RunningService(tmp_path, "--workers", "2") as service, service.client() as client:
        client.post("/tools", json={"tool_id": "a", "tool_type": "0"})
        for number in range(1, 13):
            assert client.put("/tools/a", json={"tool_type": str(number)}).status_code == 200
            for _ in range(3):  # a new connection each, so that both workers answer
                answer = httpx.get(f"{service.url}/tools/a", timeout=PATIENCE)
                assert answer.json()["tool_type"] == str(number)

        def counted(method: str) -> int:
            text = httpx.get(f"{service.url}/metrics", timeout=PATIENCE).text
            found = re.search(rf'method="{method}",route="/tools/\{{tool_id\}}",status="200"\}} (\d+)', text)
            return int(found.group(1)) if found else 0

        # Every worker answers for all of them. A request is counted a moment after its answer was sent.
        wait_until(lambda: counted("PUT") >= 12 and counted("GET") >= 36)
        assert (counted("PUT"), counted("GET")) == (12, 36)
        assert service.stop() == 0


def test_it_ends_gracefully(tmp_path: Path) -> None:
    service = RunningService(tmp_path, python_tools=",".join(RUNNABLE))
    service.environment["PYTHONPATH"] = str(Path(__file__).parents[3])
    begun, free = tmp_path / "begun", tmp_path / "free"
    with service, service.client() as client:
        entry = {
            "tool_id": "wait",
            "tool_metadata": {"toolcrib": {"binding": {"python": "tests.surfaces.http.runnable:wait"}}},
        }
        assert client.post("/tools", json=entry).status_code == 201
        answers: list[httpx.Response] = []

        def long_call() -> None:
            arguments = {"begun": str(begun), "free": str(free)}
            answers.append(client.post("/tools/wait/run", json={"arguments": arguments}))

        thread = threading.Thread(target=long_call)
        thread.start()
        wait_until(begun.exists)
        service.process.send_signal(signal.SIGTERM)
        wait_until(lambda: not service.answers("/healthz"))
        free.touch()
        thread.join()
        assert answers[0].json()["data"] == "waited", "a request under way is answered"
        assert service.process.wait(PATIENCE) == 0
    lines = [json.loads(line) for line in service.log_text().splitlines()]
    assert lines[-1]["message"] == "stopped"
    assert all(line.keys() >= {"time", "level", "logger", "message"} for line in lines)


def test_a_worker_leaves_with_its_parent(tmp_path: Path) -> None:
    with RunningService(tmp_path) as service:
        service.process.kill()
        service.process.wait()
        wait_until(service.ended)


def refused(tmp_path: Path, *options: str, **environment: str) -> tuple[int, str]:
    service = RunningService(tmp_path, **environment)
    done = subprocess.run(
        [PROGRAM, "serve", "--port", str(service.port), *options],
        env=service.environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


def test_it_does_not_start_open_to_everybody(tmp_path: Path) -> None:
    status, said = refused(tmp_path, "--host", "0.0.0.0")
    assert status == 4
    assert "open to everybody" in said
    assert "Traceback" not in said


def test_it_starts_elsewhere_with_a_token(tmp_path: Path) -> None:
    service = RunningService(tmp_path, "--host", "0.0.0.0")
    made = subprocess.run(
        [PROGRAM, "tokens", "create", "--role", "runner", "--role", "publisher", "--name", "ci"],
        env=service.environment, cwd=tmp_path, capture_output=True, text=True, check=True,
    )  # fmt: skip
    token = made.stdout.strip()
    assert "for 'ci', role 'runner, publisher'; it is not shown again" in made.stderr
    with service, service.client() as client:
        assert client.get("/tools").status_code == 401
        authorised = {"authorization": f"Bearer {token}"}
        assert client.get("/tools", headers=authorised).status_code == 200
        assert client.post("/tools", json={"tool_id": "a"}, headers=authorised).status_code == 201
        assert client.get("/audit", headers=authorised).status_code == 403
        service.stop()
    assert token not in service.log_text()
    assert token.removeprefix("tcrib_") not in service.log_text()


def test_it_listens_by_name_too(tmp_path: Path) -> None:
    settings = Settings(host="localhost", port=free_port(), store="memory:", data_dir=str(tmp_path), environ={})
    assert ip_address(check_start(settings)).is_loopback  # the server takes no names


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        status, said = refused(tmp_path, "--port", str(port))
    assert status == 6
    assert str(port) in said


def test_a_wrong_setting_is_told(tmp_path: Path) -> None:
    status, said = refused(tmp_path, store="ftp://x")
    assert status == 4
    assert "ftp://x" in said
    status, said = refused(tmp_path, jwt_issuer="https://i", jwt_audience="a", jwt_keys="/no/such/file")
    assert status == 4
    assert "/no/such/file" in said

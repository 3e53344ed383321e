"""Crashes, full disks, broken files, receivers that are away: nothing acknowledged is lost, and the answer is honest.

CRASH_UPLOADS=1000 makes the crash tests as long as one likes.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from pymongo import MongoClient
from tests.support.mongo import MongoCluster
from tests.support.processes import free_port
from tests.support.receiver import Received, receiving
from tests.support.waiting import PATIENCE, wait_until
from tests.surfaces.http.bundles import SPEC, bundle, code_zip, large_code
from tests.surfaces.http.running import RunningService

pytestmark = [pytest.mark.xdist_group("service-process"), pytest.mark.timeout(300)]  # a disk may be slow

PROGRAM = str(Path(sys.executable).with_name("toolcrib"))
UPLOADS = int(os.environ.get("CRASH_UPLOADS", "60"))


class Uploaders:
    """Uploads bundles from several threads until the service is gone; remembers what was acknowledged."""

    def __init__(self, url: str, count: int, threads: int = 4) -> None:
        self.acknowledged: dict[str, bytes] = {}
        self.refused: list[str] = []
        self._url = url
        self._numbers = iter(range(count))
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._work) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _work(self) -> None:
        with httpx.Client(base_url=self._url, timeout=2 * PATIENCE) as client:
            while True:
                with self._lock:
                    number = next(self._numbers, None)
                if number is None:
                    return
                code = code_zip(b"%d" % number * 1000)
                content = bundle({**SPEC, "tool_id": f"crash-{number}"}, code, manual=f"manual {number}")
                try:
                    answer = client.post("/tools/upload", files={"file": content})
                except httpx.HTTPError:
                    return
                if answer.status_code == 200:
                    self.acknowledged[f"crash-{number}"] = code
                else:
                    self.refused.append(answer.text)

    def wait_for(self, count: int) -> None:
        wait_until(lambda: len(self.acknowledged) >= count, 2 * PATIENCE)

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


@pytest.mark.parametrize("store", ["sqlite", "mongo"])
def test_kill_9_loses_nothing_that_was_acknowledged(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    settings = {"store": request.getfixturevalue("mongo_database_url")} if store == "mongo" else {}
    acknowledged: dict[str, bytes] = {}
    with RunningService(tmp_path, **settings) as service:
        uploaders = Uploaders(service.url, UPLOADS * 2)
        uploaders.wait_for(UPLOADS)
        service.kill()
        uploaders.join()
        acknowledged = uploaders.acknowledged
        assert not uploaders.refused
        assert len(acknowledged) >= UPLOADS
        service.start()
        with service.client() as client:
            present = {entry["tool_id"]: entry for entry in client.get("/tools?limit=10000").json()}
            assert acknowledged.keys() <= present.keys()
            for name, entry in present.items():
                assert entry["tool_man_page_doc"] == f"manual {name.removeprefix('crash-')}"
                code = client.get(f"/tools/{name}/tool.zip")
                assert code.status_code == 200
                assert name not in acknowledged or code.content == acknowledged[name]
            assert client.post("/tools/upload", files={"file": bundle()}).status_code == 200
        assert not list((tmp_path / "data" / "incoming").glob("*")), "what was half uploaded is gone"
    if settings:
        with MongoClient[dict[str, object]](settings["store"]) as database:  # what the dead service left open
            database.admin.command({"killAllSessions": []})
    print(f"{store}: killed after {len(acknowledged)} acknowledged uploads; {len(present)} there, none missing")


def test_the_primary_is_killed_under_load(tmp_path: Path, mongo_cluster: MongoCluster) -> None:
    url = mongo_cluster.url.replace("/?", "/failover?")
    with RunningService(tmp_path, store=url) as service:
        uploaders = Uploaders(service.url, 60)
        uploaders.wait_for(15)
        mongo_cluster.kill_primary()
        uploaders.join()
        with service.client() as client:
            present = {entry["tool_id"] for entry in client.get("/tools?limit=10000").json()}
            assert uploaders.acknowledged.keys() <= present
            assert client.post("/tools/upload", files={"file": bundle()}).status_code == 200
    shown = f"{len(uploaders.acknowledged)} acknowledged, {len(uploaders.refused)} refused, none missing"
    print(f"primary killed: {shown}")
    assert len(uploaders.acknowledged) + len(uploaders.refused) == 60


def test_the_receiver_of_events_is_away(tmp_path: Path) -> None:
    port = free_port()
    with RunningService(tmp_path, events_url=f"http://127.0.0.1:{port}/events", events_secret="s" * 32) as service:
        with service.client() as client:
            for number in range(10):
                assert client.post("/tools", json={"tool_id": f"t{number}"}).status_code == 201
            assert client.put("/tools/t1", json={"tool_type": "x"}).status_code == 200
            assert client.delete("/tools/t2").status_code == 200
            assert "toolcrib_outbox_waiting 12.0" in client.get("/metrics").text
        service.kill()
        service.start()
        with receiving(port) as receiver:
            # The longer the receiver was away, the longer the service waits before it tries again: up to 60 s.
            wait_until(lambda: len(events(receiver.received)) >= 12, 60 + PATIENCE)
            seen = events(receiver.received)
            told = {key: [kind for name, kind in seen.values() if name == key] for key in ("t0", "t1", "t2")}
            assert told == {
                "t0": ["tool.created"],
                "t1": ["tool.created", "tool.updated"],
                "t2": ["tool.created", "tool.deleted"],
            }
            assert len(seen) == 12
            with service.client() as client:
                wait_until(lambda: "toolcrib_outbox_waiting 0.0" in client.get("/metrics").text)


def events(received: list[Received]) -> dict[str, tuple[str, str]]:
    """By id, as a receiver sees them that keeps ids: the first of each counts."""
    seen: dict[str, tuple[str, str]] = {}
    for request in received:
        event = json.loads(request.body)
        seen.setdefault(event["id"], (event["tool_id"], event["event"]))
    return seen


def test_a_full_disk(tmp_path: Path) -> None:
    """No file may grow beyond 2 MB, which is what a full disk looks like to a program."""
    service = RunningService(tmp_path)
    try:
        service.start(limits="ulimit -f 4096")
        with service.client() as client:
            assert client.post("/tools", json={"tool_id": "first"}).status_code == 201
            statuses = []
            for number in range(30):
                entry = {"tool_id": f"t{number}", "tool_man_page_doc": os.urandom(100_000).hex()}
                answer = client.post("/tools", json=entry)
                statuses.append(answer.status_code)
                if answer.status_code != 201:
                    assert answer.status_code == 503
                    assert answer.json()["code"] == "store_failed"
            assert 503 in statuses
            written = statuses.count(201)
            large = bundle({**SPEC, "tool_id": "large"}, large_code(5_000_000))
            refused = client.post("/tools/upload", files={"file": large})
            assert (refused.status_code, refused.json()["code"]) == (503, "store_failed")
            assert client.get("/tools/first").status_code == 200
            assert len(client.get("/tools").json()) == written + 1, "what was refused is not there"
            assert client.get("/healthz").status_code == 200
        service.kill()
        service.start()
        with service.client() as client:
            assert len(client.get("/tools").json()) == written + 1
            assert client.post("/tools", json={"tool_id": "after"}).status_code == 201
    finally:
        service.__exit__()


@pytest.fixture(params=["a file in its place", "a folder that nobody can write"])
def no_folder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    if request.param == "a file in its place":
        (tmp_path / "data").write_text("not a folder")
        yield tmp_path / "data"
    else:
        yield Path("/proc/toolcrib-tests")


def test_a_folder_that_cannot_be_written(no_folder: Path, tmp_path: Path) -> None:
    environment = {**RunningService(tmp_path).environment, "TOOLCRIB_DATA_DIR": str(no_folder)}
    done = subprocess.run(
        [PROGRAM, "serve", "--port", str(free_port())],
        env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 6
    assert str(no_folder) in done.stderr
    assert "Traceback" not in done.stderr


def test_a_corrupt_database(tmp_path: Path) -> None:
    service = RunningService(tmp_path)
    with service, service.client() as client:
        for number in range(50):
            client.post("/tools", json={"tool_id": f"t{number}", "tool_man_page_doc": "x" * 2000})
        assert service.stop() == 0
    database = tmp_path / "data" / "toolcrib.db"
    whole = database.read_bytes()
    database.write_bytes(b"this is not a database " * 100)
    done = subprocess.run(
        [PROGRAM, "serve", "--port", str(service.port)],
        env=service.environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 6
    assert "toolcrib.db" in done.stderr
    assert "Traceback" not in done.stderr

    database.write_bytes(whole[:8192] + b"\xff" * (len(whole) - 8192))
    started = service.start(ready=False)
    answers: list[httpx.Response] = []

    def answered_or_ended() -> bool:
        if started.process.poll() is not None:
            return True
        try:
            answers[:] = [httpx.get(f"{service.url}{path}", timeout=10) for path in ("/tools", "/tools/t7", "/readyz")]
        except httpx.HTTPError:
            return False
        return True

    wait_until(answered_or_ended)
    if answers:
        assert {answer.status_code for answer in answers} <= {200, 404, 503}
        assert any(answer.status_code == 503 for answer in answers)
        service.kill()
    else:
        assert started.process.poll() == 6, "it says so at the start, or with every answer"


def test_a_large_upload_takes_little_memory(tmp_path: Path) -> None:
    megabytes = 100
    (tmp_path / "large.zip").write_bytes(bundle({**SPEC, "tool_id": "large"}, large_code(megabytes * 1_000_000)))
    patient = 2 * PATIENCE
    with RunningService(tmp_path) as service, httpx.Client(base_url=service.url, timeout=patient) as client:
        client.post("/tools/upload", files={"file": bundle()})
        idle = service.memory()
        highest, stop = idle, threading.Event()

        def watch() -> None:
            nonlocal highest
            while not stop.wait(0.02):
                highest = max(highest, service.memory())

        watcher = threading.Thread(target=watch)
        watcher.start()
        with (tmp_path / "large.zip").open("rb") as file:
            answer = client.post("/tools/upload", files={"file": file})
        stop.set()
        watcher.join()
        assert answer.status_code == 200, answer.text
        size = 0
        with client.stream("GET", "/tools/large/tool.zip") as code:
            for piece in code.iter_bytes():
                size += len(piece)
        assert size > megabytes * 1_000_000
    above = (highest - idle) / 1e6
    print(f"upload of {megabytes} MB: {idle / 1e6:.0f} MB idle, {above:.0f} MB above it at most")
    assert above < 100

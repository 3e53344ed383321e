"""A disk that is really full: a small one of the service's own. Reads go on, writes say why, nothing is lost."""

import hashlib
import io
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from tests.support.archives import SPEC, bundle, zipped
from tests.support.stores import STORES
from tests.support.waiting import wait_until
from tests.surfaces.http.running import RunningService

from toolcrib.adapters.blobs import open_blobs
from toolcrib.formats.bundle import blob_key

SMALL_DISK = 'mount -t tmpfs -o size=12m none "$1" && shift && exec "$@"'
OWN_MOUNTS = ["unshare", "--mount", "--propagation", "private"]


class FullDisk:
    """The service with a disk of 12 MB for its data folder, which nobody else sees mounted."""

    def __init__(self, service: RunningService) -> None:
        self.service = service
        data = service.folder / "data"
        data.mkdir()
        command = [*OWN_MOUNTS, "sh", "-c", SMALL_DISK, "sh", str(data)]
        service.start(limits=f'exec {shlex.join(command)} "$@"')
        self.data = Path(f"/proc/{service.process.pid}/root{data}")
        self.acknowledged: dict[str, bytes] = {}

    def fill(self) -> None:
        with (self.data / "filler").open("ab", buffering=0) as file, suppress(OSError):
            while True:
                file.write(b"\0" * 4096)

    def make_room(self) -> None:
        (self.data / "filler").unlink()

    def ready(self) -> tuple[int, str]:
        answer = httpx.get(f"{self.service.url}/readyz", timeout=60)
        return answer.status_code, answer.json().get("code", "")

    def upload(self, client: httpx.Client, name: str, size: int) -> int:
        code = zipped({"code/function.py": "", "code/data.bin": os.urandom(size)})
        content = bundle(spec={**SPEC, "tool_id": name}, code=code)
        answer = client.post("/tools/upload", files={"file": content})
        if answer.is_success:
            self.acknowledged[name] = code
        else:
            assert answer.json()["code"] == "storage_full", answer.text
        return answer.status_code


@pytest.fixture(params=["sqlite", "mongo"])
def disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[FullDisk]:
    allowed = subprocess.run(
        [*OWN_MOUNTS, "sh", "-c", SMALL_DISK, "sh", str(tmp_path), "true"], check=False, capture_output=True
    )
    if allowed.returncode:
        pytest.skip(f"no disk can be mounted here: {allowed.stderr.decode().strip()}")
    settings = {} if request.param == "sqlite" else {"store": STORES["mongo"](tmp_path, lambda: _mongo(request))}
    service = RunningService(tmp_path, **settings)
    try:
        yield FullDisk(service)
    finally:
        service.__exit__()


def _mongo(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("mongo_database_url"))


def test_a_full_disk_stops_writes_alone_and_says_so(disk: FullDisk) -> None:
    with disk.service.client() as client:
        assert [disk.upload(client, f"before{number}", 20_000) for number in range(3)] == [200] * 3
        disk.fill()
        wait_until(lambda: disk.ready() == (503, "storage_full"))
        statuses = [disk.upload(client, f"t{size}", size) for size in (100, 5_000, 300_000, 2_000_000)]
        assert 507 in statuses
        assert set(statuses) <= {200, 507}
        assert client.get("/healthz").status_code == 200
        for name, code in disk.acknowledged.items():
            assert client.get(f"/tools/{name}").status_code == 200
            assert client.get(f"/tools/{name}/tool.zip").content == code
        assert len(client.get("/tools").json()) == len(disk.acknowledged)
        disk.make_room()
        wait_until(lambda: disk.ready()[0] == 200)
        assert disk.upload(client, "after", 20_000) == 200
    for folder in ("incoming", "blobs/.incoming"):
        assert list((disk.data / folder).iterdir()) == []
    with disk.service.client() as client:
        assert {tool["tool_id"] for tool in client.get("/tools").json()} == set(disk.acknowledged)
        for name, code in disk.acknowledged.items():
            assert client.get(f"/tools/{name}/tool.zip").content == code


UNPACKING = """
import sys
from pathlib import Path
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.runners.unpacking import BundleCache
from toolcrib.core.errors import StorageFullError
folder, digest = Path(sys.argv[1]), sys.argv[2]
try:
    BundleCache(open_blobs(f"file://{folder}/blobs"), folder / "disk/cache").lease(digest)
except StorageFullError as error:
    print("refused:", error, list((folder / "disk/cache").iterdir()))
"""


def test_a_full_disk_while_unpacking_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    code = zipped({"code/function.py": "", "code/data.bin": os.urandom(14_000_000)})
    digest = hashlib.sha256(code).hexdigest()
    open_blobs(f"file://{tmp_path}/blobs").put(blob_key(digest), io.BytesIO(code))
    (tmp_path / "disk").mkdir()
    command = [*OWN_MOUNTS, "sh", "-c", SMALL_DISK, "sh", str(tmp_path / "disk"), sys.executable, "-c", UNPACKING]
    done = subprocess.run([*command, str(tmp_path), digest], capture_output=True, text=True, check=False)
    if "mount" in done.stderr or "unshare" in done.stderr:
        pytest.skip(f"no disk can be mounted here: {done.stderr.strip()}")
    assert done.stdout.startswith(f"refused: the bundle {digest} cannot be unpacked: No space left"), done.stderr
    assert done.stdout.endswith("[]\n")

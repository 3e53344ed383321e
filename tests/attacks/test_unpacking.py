"""Bundles that are small when they come in and large when they run, and copies that nobody needs any more."""

import asyncio
import hashlib
import io
import os
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.archives import SPEC, bundle, python_code, zipped
from tests.support.bundles import Bench
from tests.surfaces.http.running import RunningService

from toolcrib import ToolContext
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.locks import FolderLock
from toolcrib.adapters.runners.unpacking import BundleCache
from toolcrib.bootstrap import open_system
from toolcrib.catalogue.bundles import ingest
from toolcrib.core.errors import InvalidBundleError, OverloadedError
from toolcrib.formats.archives import ArchiveLimits
from toolcrib.formats.bundle import BundleLimits, blob_key, bundle_link, read_bundle
from toolcrib.settings import Settings
from toolcrib.surfaces.collecting import collect_once

MANY_ZEROS = {f"code/{number}.bin": b"\0" * 999_000 for number in range(40)}


def test_much_from_little_is_refused_at_the_upload() -> None:
    """Each member is small, but not all of them together; in the second archive even that is packed again."""
    content = bundle(code=zipped({"code/function.py": b"", **MANY_ZEROS}))
    assert len(content) < 20_000
    with pytest.raises(InvalidBundleError, match="more than 200 times its size"):
        read_bundle(io.BytesIO(content), io.BytesIO())


def test_the_service_refuses_what_is_too_large_unpacked(tmp_path: Path) -> None:
    with RunningService(tmp_path, max_unpacked_bytes=50_000) as service, service.client() as client:
        for size, status in ((60_000, 400), (40_000, 200)):
            code = zipped({"code/function.py": b"", "code/data.bin": os.urandom(size)})
            answer = client.post("/tools/upload", files={"file": bundle(code=code)})
            assert answer.status_code == status, answer.text


class Shelf:
    """A cache with little room, and bundles of a known size to put there."""

    def __init__(self, folder: Path, most: int = 250_000, limits: ArchiveLimits | None = None) -> None:
        self.folder = folder / "cache"
        self.blobs = open_blobs(f"file://{folder}/blobs")
        self.cache = BundleCache(self.blobs, self.folder, most_bytes=most, limits=limits)

    def bundle(self, mark: str, size: int = 90_000) -> str:
        stored = io.BytesIO()
        with zipfile.ZipFile(stored, "w") as archive:
            archive.writestr("code/function.py", f"mark = {mark!r}\n")
            archive.writestr("code/data.bin", os.urandom(size))
        digest = hashlib.sha256(stored.getvalue()).hexdigest()
        self.blobs.put(blob_key(digest), io.BytesIO(stored.getvalue()))
        return digest

    def there(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}

    def use(self, digest: str, at: float) -> None:
        self.cache.lease(digest).release()
        os.utime(self.folder / digest, (at, at))


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_the_limits_hold_again_when_it_is_unpacked(tmp_path: Path) -> None:
    shelf = Shelf(tmp_path, limits=ArchiveLimits(max_bytes=50_000))
    with pytest.raises(InvalidBundleError, match="50,000 bytes"):
        shelf.cache.lease(shelf.bundle("large"))
    assert shelf.there() == set()


def test_what_was_used_longest_ago_makes_room(shelf: Shelf) -> None:
    one, two, three = (shelf.bundle(mark) for mark in ("one", "two", "three"))
    shelf.use(one, at=1)
    shelf.use(two, at=2)
    shelf.use(one, at=3)
    shelf.cache.lease(three).release()
    assert shelf.there() == {one, three}


def test_what_is_in_use_stays_and_others_wait(shelf: Shelf) -> None:
    one, two, three = (shelf.bundle(mark) for mark in ("one", "two", "three"))
    leases = [shelf.cache.lease(one), shelf.cache.lease(two)]
    with pytest.raises(OverloadedError, match="unpacked_cache_bytes"):
        shelf.cache.lease(three)
    assert shelf.there() == {one, two}
    assert not shelf.cache.forget(one)
    assert shelf.cache.sweep(set()) == 0
    leases[0].release()
    leases[0].release()
    with shelf.cache.lease(three) as lease:
        assert (lease.unpacked.path / "function.py").read_text() == "mark = 'three'\n"
    assert shelf.there() == {two, three}


@pytest.mark.usefixtures("namespaces")
async def test_what_only_waits_for_a_next_call_makes_room_too(make_bench: Callable[..., Bench], shelf: Shelf) -> None:
    """Whoever runs large bundles one after the other would fill the cache with processes that are kept."""
    bench = make_bench()
    bench.runner.cache = shelf.cache
    code = "class AgentSpaceV1Tool:\n    def __init__(self, *_): ...\n    def execute(self, _):\n        return 1\n"
    for caller in ("eve", "eve", "ada", "bob"):
        tool = bench.tool(zipped({"code/function.py": code, "code/data.bin": os.urandom(90_000)}))
        assert await tool.execute({}, context=ToolContext(caller)) == 1


def test_what_never_fits_is_said_so(shelf: Shelf) -> None:
    with pytest.raises(InvalidBundleError, match="unpacked_cache_bytes"):
        shelf.cache.lease(shelf.bundle("huge", 300_000))


HOLDING = """
import sys
from pathlib import Path
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.runners.unpacking import BundleCache
folder, digest = Path(sys.argv[1]), sys.argv[2]
lease = BundleCache(open_blobs(f"file://{folder}/blobs"), folder / "cache").lease(digest)
print("held", flush=True)
sys.stdin.read()
"""


def test_what_another_process_uses_stays_until_that_process_is_gone(shelf: Shelf, tmp_path: Path) -> None:
    digest = shelf.bundle("one")
    command = [sys.executable, "-c", HOLDING, str(tmp_path), digest]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert not shelf.cache.forget(digest)
        process.kill()
    assert shelf.cache.forget(digest)
    assert shelf.there() == set()


def test_what_crashes_left_and_what_no_tool_names_is_swept(shelf: Shelf) -> None:
    kept, gone = shelf.bundle("kept"), shelf.bundle("gone")
    for digest in (kept, gone):
        shelf.cache.lease(digest).release()
    for leftover in (f".unpacking-{gone}", ".unpacking-x1y2", ".removing-0123"):
        (shelf.folder / leftover / "code").mkdir(parents=True)
    busy = shelf.folder / ".unpacking-busy"
    with FolderLock.making(busy) as held:
        assert held
        assert shelf.cache.sweep({kept}) == 1
        assert shelf.there() == {kept, busy.name}
    shelf.cache.sweep({kept})
    assert shelf.there() == {kept}


def test_many_threads_at_many_bundles_never_lose_the_folder_under_their_hands(shelf: Shelf) -> None:
    digests = [shelf.bundle(str(number), 60_000) for number in range(4)]
    broken: list[object] = []

    def use(first: int) -> None:
        for number in range(first, first + 12):
            try:
                with shelf.cache.lease(digests[number % 4]) as lease:
                    if (lease.unpacked.path / "function.py").read_text() != f"mark = '{number % 4}'\n":
                        broken.append(number)
            except OverloadedError:
                pass
            except BaseException as error:
                broken.append(error)

    threads = [threading.Thread(target=use, args=(first,)) for first in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert broken == []
    assert {name for name in shelf.there() if name.startswith(".")} == set()


async def test_copies_of_replaced_versions_go_when_the_tool_is_deleted(tmp_path: Path) -> None:
    with open_system(Settings(data_dir=str(tmp_path / "data"))) as system:
        catalogue = system.catalogue
        for number in (1, 2):
            path = tmp_path / "bundle.zip"
            path.write_bytes(bundle(code=python_code(f"number = {number}\n")))
            ingest(path, blobs=system.blobs, catalogue=catalogue, link_for=lambda x: bundle_link("", x), replace=True)
            digest = hashlib.sha256(python_code(f"number = {number}\n")).hexdigest()
            (await asyncio.to_thread(system.unpacked.lease, digest)).release()
        assert len(list((tmp_path / "data/unpacked").iterdir())) == 2
        catalogue.delete(SPEC["tool_id"])
        collect_once(system)
        assert list((tmp_path / "data/unpacked").iterdir()) == []


@pytest.mark.parametrize("name", ["code/function.py.", "code/function.py ", "code./function.py", "code/CODE/../x"])
def test_names_that_some_disk_takes_for_others_are_refused(name: str) -> None:
    code = zipped({"code/function.py": "", name: "evil = 1\n"})
    with pytest.raises(InvalidBundleError):
        read_bundle(io.BytesIO(bundle(code=code)), io.BytesIO(), BundleLimits())


def test_a_program_is_made_runnable_when_it_is_unpacked_and_never_later(shelf: Shelf) -> None:
    stored = io.BytesIO()
    with zipfile.ZipFile(stored, "w") as archive:
        archive.writestr(zipfile.ZipInfo("code/run"), "#!/bin/sh\n")  # without permissions
    digest = hashlib.sha256(stored.getvalue()).hexdigest()
    shelf.blobs.put(blob_key(digest), io.BytesIO(stored.getvalue()))
    with shelf.cache.lease(digest) as lease:
        assert (lease.unpacked.kind, lease.unpacked.path.stat().st_mode & 0o777) == ("program", 0o755)
        lease.unpacked.path.chmod(0o644)
    with shelf.cache.lease(digest) as lease:
        assert lease.unpacked.path.stat().st_mode & 0o777 == 0o644


def test_a_folder_that_is_a_link_is_not_taken_for_the_code(shelf: Shelf, tmp_path: Path) -> None:
    digest = shelf.bundle("one")
    (tmp_path / "elsewhere").mkdir()
    shelf.folder.mkdir()
    (shelf.folder / digest).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="cannot be unpacked"):
        shelf.cache.lease(digest)

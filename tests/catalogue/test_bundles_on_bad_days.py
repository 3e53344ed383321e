"""kill -9 in the middle of uploads, and a disk that takes no more."""

import hashlib
import subprocess
import sys
import time
from pathlib import Path

import pytest

from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.collecting import GRACE_SECONDS, collect
from toolcrib.formats.bundle import blob_key, bundle_digest

UPLOADS = """
import sys
from pathlib import Path
from tests.support.archives import SPEC, bundle, python_code
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.stores.sqlite import SqliteStore
from toolcrib.catalogue.bundles import ingest
from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.formats.bundle import bundle_link

folder, begin = Path(sys.argv[1]), int(sys.argv[2])
catalogue = Catalogue(SqliteStore(folder / "tools.db"))
blobs = open_blobs(f"file://{folder}/blobs")
for number in range(begin, begin + 100_000):
    upload = folder / "upload.zip"
    upload.write_bytes(bundle(spec={**SPEC, "tool_id": f"tool{number}"}, code=python_code(f"number = {number}")))
    ingest(upload, blobs=blobs, catalogue=catalogue, link_for=lambda digest: bundle_link("", digest))
    print(number, flush=True)
"""


@pytest.mark.timeout(400)  # a slow disk may take a second for each write
def test_everything_acknowledged_is_there_and_complete_after_kill_9(tmp_path: Path) -> None:
    acknowledged: list[int] = []
    for attempt in range(4):
        command = [sys.executable, "-c", UPLOADS, str(tmp_path), str(attempt * 1_000_000)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            acknowledged += [int(process.stdout.readline()) for _ in range(5 + 7 * attempt)]
            process.kill()
            acknowledged += [int(line) for line in process.stdout if line.endswith("\n")]
    store = SqliteStore(tmp_path / "tools.db")
    catalogue, blobs = Catalogue(store), open_blobs(f"file://{tmp_path}/blobs")
    for number in acknowledged:
        digest = bundle_digest(catalogue.get(f"tool{number}").binding.source_code_link) or ""
        assert hashlib.sha256(b"".join(blobs.open(blob_key(digest)) or ())).hexdigest() == digest
    assert len(acknowledged) >= 62
    collect(blobs, store, clock=lambda: time.time() + 2 * GRACE_SECONDS)
    collect(blobs, store, clock=lambda: time.time() + 4 * GRACE_SECONDS)
    kept = {blob_key(bundle_digest(spec.binding.source_code_link) or "") for spec in catalogue}
    assert set(dict(blobs.keys())) == kept
    print(f"{len(acknowledged)} acknowledged, {len(kept)} kept, 4 kills")
    store.close()


FULL = """
import io, resource, sys
from toolcrib.adapters.blobs import open_blobs
from toolcrib.core.errors import StoreError
blobs = open_blobs(f"file://{sys.argv[1]}")
resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
try:
    blobs.put("big", io.BytesIO(b"x" * 20_000_000))
except StoreError as error:
    print("refused:", error)
"""


def test_a_disk_that_takes_no_more_leaves_nothing_behind(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused: the blob store at ")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []

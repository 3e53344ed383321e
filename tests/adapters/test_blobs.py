"""One suite over a folder, memory and a real S3 server; then what each promises alone."""

import hashlib
import io
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.s3 import S3Server
from tests.support.waiting import wait_until

from toolcrib.adapters.blobs import S3Credentials, open_blobs
from toolcrib.core.errors import SettingsError, StorageMissingError, StorageRefusedError, StoreError
from toolcrib.ports import Blobs

BIG = bytes(range(256)) * 4096 * 20  # 20 MiB: more than one part


def open_bucket(server: S3Server, **options: str) -> Blobs:
    url = f"s3://{server.create_bucket()}?endpoint={server.endpoint}&region={server.region}"
    for name, value in options.items():
        url += f"&{name}={value}"
    return open_blobs(url, S3Credentials(server.access_key, server.secret_key))


@pytest.fixture(params=["file", "memory", "s3"])
def blobs(request: pytest.FixtureRequest, tmp_path: Path) -> Blobs:
    if request.param == "s3":
        return open_bucket(request.getfixturevalue("s3_server"))
    return open_blobs("memory:" if request.param == "memory" else f"file://{tmp_path}/blobs")


def read(blobs: Blobs, key: str) -> bytes:
    return b"".join(blobs.open(key) or ())


def test_bytes_come_back_as_they_went_in(blobs: Blobs) -> None:
    for key, content in {"sha256/ab/abc": b"hello", "sha256/cd/cde": BIG, "empty": b""}.items():
        blobs.put(key, io.BytesIO(content))
        assert hashlib.sha256(read(blobs, key)).digest() == hashlib.sha256(content).digest()


def test_the_same_key_again_changes_no_bytes_and_renews_its_age(blobs: Blobs) -> None:
    blobs.put("sha256/ab/abc", io.BytesIO(b"hello"))
    ((_, before),) = blobs.keys()

    def renewed() -> bool:
        blobs.put("sha256/ab/abc", io.BytesIO(b"hello"))
        ((key, after),) = blobs.keys()
        assert (key, read(blobs, key)) == ("sha256/ab/abc", b"hello")
        return after > before

    wait_until(renewed)  # S3 counts whole seconds


def test_keys_say_when_they_were_written(blobs: Blobs) -> None:
    for name in "abc":
        blobs.put(f"x/{name}", io.BytesIO(b"1"))
    written = dict(blobs.keys())
    assert set(written) == {"x/a", "x/b", "x/c"}
    now = time.time()
    assert all(now - 3600 < at < now + 3600 for at in written.values())


def test_what_is_missing_is_none_and_deleting_it_is_no_error(blobs: Blobs) -> None:
    assert blobs.open("nothing") is None
    blobs.put("x", io.BytesIO(b"1"))
    blobs.delete("x")
    blobs.delete("x")
    assert blobs.open("x") is None


def test_blobs_that_are_there_answer_a_ping(blobs: Blobs) -> None:
    blobs.ping()
    blobs.put("x", io.BytesIO(b"1"))
    blobs.ping()
    blobs.ping()
    assert set(dict(blobs.keys())) == {"x"}  # nothing piles up


@pytest.mark.parametrize("key", ["../x", "a/../b", "/etc/passwd", "", "a//b", "a\\b", "a\0b", "./a"])
def test_a_key_cannot_leave_the_store(blobs: Blobs, key: str) -> None:
    calls: list[Callable[[], object]] = [
        lambda: blobs.put(key, io.BytesIO(b"1")),
        lambda: blobs.open(key),
        lambda: blobs.delete(key),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="not a blob's key"):
            call()


class Torn(io.RawIOBase):
    """A source that breaks after some bytes."""

    def __init__(self) -> None:
        self._left = 12

    def read(self, size: int = -1) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise OSError("the source broke")
        return b"x" * (1024 * 1024)

    def seek(self, *_: int) -> int:
        return 0

    def tell(self) -> int:
        return 0


def test_a_blob_can_be_moved_and_copied_and_is_as_new_there(blobs: Blobs) -> None:
    blobs.put("sha256/ab/abc", io.BytesIO(b"hello"))
    written = dict(blobs.keys())["sha256/ab/abc"]
    assert blobs.move("sha256/ab/abc", "trash/ab/1")
    assert (blobs.holds("sha256/ab/abc"), blobs.holds("trash/ab/1")) == (False, True)
    assert blobs.copy("trash/ab/1", "sha256/ab/abc")
    assert read(blobs, "sha256/ab/abc") == read(blobs, "trash/ab/1") == b"hello"
    assert min(dict(blobs.keys()).values()) >= written
    assert [key for key, _ in blobs.keys("trash")] == ["trash/ab/1"]
    assert list(blobs.keys("nothing")) == []


def test_what_is_missing_is_neither_moved_nor_copied(blobs: Blobs) -> None:
    assert not blobs.holds("x")
    assert not blobs.move("x", "trash/x")
    assert not blobs.copy("x", "trash/x")
    assert list(blobs.keys()) == []


def test_a_move_leaves_nothing_of_an_old_age_behind(tmp_path: Path) -> None:
    blobs = open_blobs(f"file://{tmp_path}/blobs")
    blobs.put("x", io.BytesIO(b"1"))
    os.utime(tmp_path / "blobs" / "x", (0, 0))
    blobs.move("x", "trash/x")
    assert dict(blobs.keys())["trash/x"] > 0


def test_half_a_put_leaves_nothing(blobs: Blobs) -> None:
    with pytest.raises(StoreError):
        blobs.put("half", Torn())  # type: ignore[arg-type]
    assert list(blobs.keys()) == []


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is read from /proc")
def test_a_big_file_passes_in_little_memory(tmp_path: Path) -> None:
    source = tmp_path / "big"
    with source.open("wb") as file:
        file.truncate(200 * 1024 * 1024)
    blobs = open_blobs(f"file://{tmp_path}/blobs")
    Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")  # the peak is counted anew
    before = peak_memory()
    with source.open("rb") as file:
        blobs.put("big", file)
    assert sum(len(piece) for piece in blobs.open("big") or ()) == 200 * 1024 * 1024
    assert peak_memory() - before < 80 * 1024 * 1024


def peak_memory() -> int:
    """Bytes, those of the Rust part included."""
    (line,) = (
        line for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines() if line.startswith("VmHWM")
    )
    return int(line.split()[1]) * 1024


def test_a_folder_that_cannot_be_written_is_a_store_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(StoreError, match="cannot hold blobs"):
        open_blobs(f"file://{tmp_path}/file/blobs")


def test_a_folder_that_is_gone_does_not_answer_a_ping(tmp_path: Path) -> None:
    blobs = open_blobs(f"file://{tmp_path}/blobs")
    (tmp_path / "blobs").rmdir()
    with pytest.raises(StoreError, match="gone"):
        blobs.ping()


def test_a_missing_bucket_is_named_with_the_way_out(s3_server: S3Server) -> None:
    blobs = open_blobs(
        f"s3://nobody-made-this?endpoint={s3_server.endpoint}",
        S3Credentials(s3_server.access_key, s3_server.secret_key),
    )
    calls: list[Callable[[], object]] = [blobs.ping, lambda: blobs.open("x")]
    if s3_server.kind == "ceph":  # SeaweedFS makes the bucket instead
        calls.append(lambda: blobs.put("x", io.BytesIO(b"1")))
    for call in calls:
        with pytest.raises(StorageMissingError, match="'s3://nobody-made-this' does not exist; create it"):
            call()


@pytest.mark.parametrize(
    "url",
    ["ftp://x", "file://host/x", "file:x", "file:///x?y=1", "file:///x#y", "s3://", "s3://b?endpont=x",
     "s3://key:secret@b", "/plain/path"],
)  # fmt: skip
def test_wrong_addresses_are_refused(url: str) -> None:
    with pytest.raises(SettingsError):
        open_blobs(url)


@pytest.mark.parametrize("url", ["file:///~/blobs", "file:///~/blobs/", "file://localhost/~/%62lobs"])
def test_a_folder_may_be_in_the_home_folder(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    open_blobs(url).put("x", io.BytesIO(b"1"))
    assert (tmp_path / "blobs" / "x").read_bytes() == b"1"


def fetch(url: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(url) as response:
            return response.status, response.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


def test_only_s3_hands_out_links(tmp_path: Path) -> None:
    for url in ("memory:", f"file://{tmp_path}"):
        blobs = open_blobs(url)
        blobs.put("x", io.BytesIO(b"1"))
        assert blobs.link("x") is None


def test_a_presigned_link_serves_the_bytes_and_a_forged_or_expired_one_does_not(s3_server: S3Server) -> None:
    blobs = open_bucket(s3_server)
    blobs.put("sha256/ab/abc", io.BytesIO(b"hello"))
    blobs.put("sha256/ab/other", io.BytesIO(b"secret"))

    link = blobs.link("sha256/ab/abc", seconds=60)
    assert link is not None
    assert fetch(link) == (200, b"hello")

    assert fetch(link.replace("/abc?", "/other?"))[0] == 403
    assert fetch(link.partition("?")[0])[0] == 403
    assert fetch(link[:-4] + ("0000" if not link.endswith("0000") else "1111"))[0] == 403
    assert fetch(link.replace("Expires=60", "Expires=6000"))[0] == 403

    short = blobs.link("sha256/ab/abc", seconds=1)
    assert short is not None
    wait_until(lambda: fetch(short)[0] == 403)


def test_links_use_the_public_endpoint(s3_server: S3Server) -> None:
    link = open_bucket(s3_server, public_endpoint="https://files.example.org").link("x")
    assert link is not None
    assert link.startswith("https://files.example.org/bucket-")


def test_a_prefix_keeps_to_itself(s3_server: S3Server) -> None:
    bucket = s3_server.create_bucket()
    credentials = S3Credentials(s3_server.access_key, s3_server.secret_key)
    one, two = (
        open_blobs(f"s3://{bucket}/{prefix}?endpoint={s3_server.endpoint}", credentials) for prefix in ("one", "two")
    )
    one.put("x", io.BytesIO(b"1"))
    assert (set(dict(one.keys())), list(two.keys())) == ({"x"}, [])
    link = one.link("x")
    assert link is not None
    assert fetch(link) == (200, b"1")


def test_wrong_credentials_are_a_store_error_without_the_secret(s3_server: S3Server) -> None:
    url = f"s3://{s3_server.create_bucket()}?endpoint={s3_server.endpoint}"
    blobs = open_blobs(url, S3Credentials(s3_server.access_key, "not-the-secret"))
    with pytest.raises(StorageRefusedError, match="TOOLCRIB_S3_SECRET_ACCESS_KEY") as caught:
        blobs.ping()
    assert "not-the-secret" not in str(caught.value)

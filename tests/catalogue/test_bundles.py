"""An upload from the file to the catalogue: in which order, and what a bad moment leaves behind."""

import io
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
from tests.support.archives import SPEC, bundle, python_code

from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.catalogue.bundles import ingest
from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.code import open_code
from toolcrib.catalogue.collecting import GRACE_SECONDS, Collected, collect
from toolcrib.catalogue.entries import Entry
from toolcrib.core.errors import (
    DeniedError,
    InvalidBundleError,
    StoreError,
    ToolExistsError,
    ToolValidationError,
)
from toolcrib.formats.bundle import blob_key, bundle_digest, bundle_link
from toolcrib.ports import Blobs, Decision, PolicyRequest

NAME = SPEC["tool_id"]


class Shop:
    """A catalogue with blobs, and what was asked of the blobs."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.blobs = Watched(open_blobs(f"file://{folder}/blobs"))
        self.catalogue = Catalogue(MemoryStore(), **options)

    def upload(self, content: bytes, catalogue: Catalogue | None = None, **options: Any) -> Entry:
        path = self.folder / "upload.zip"
        path.write_bytes(content)
        return ingest(
            path,
            blobs=self.blobs,
            catalogue=self.catalogue if catalogue is None else catalogue,
            link_for=lambda digest: bundle_link("https://tools.example.org", digest),
            **options,
        )

    def kept(self) -> set[str]:
        return set(dict(self.blobs.keys()))


class Watched:
    remote = False

    def __init__(self, inner: Blobs) -> None:
        self.inner = inner
        self.puts: list[str] = []

    def put(self, key: str, source: BinaryIO) -> None:
        self.puts.append(key)
        self.inner.put(key, source)

    def open(self, key: str) -> Iterator[bytes] | None:
        return self.inner.open(key)

    def ping(self) -> None:
        self.inner.ping()

    def link(self, key: str, *, seconds: int = 3600) -> str | None:
        return self.inner.link(key, seconds=seconds)

    def delete(self, key: str) -> None:
        self.inner.delete(key)

    def keys(self) -> Iterator[tuple[str, float]]:
        return self.inner.keys()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_an_upload_becomes_a_tool_with_its_manual_and_its_code(shop: Shop) -> None:
    code = python_code()
    entry = shop.upload(bundle(code=code, manual="# How\n"), principal="ada")
    spec = shop.catalogue.get(NAME)
    assert entry.spec == spec
    assert (spec.manual, spec.tags, spec.execution_mode) == ("# How\n", ("git", "text"), "local_code")
    assert spec.parameters["required"] == ["diff"]
    digest = bundle_digest(spec.binding.source_code_link)
    assert digest is not None
    assert spec.binding.source_code_link == f"https://tools.example.org/bundles/{digest}/tool.zip"
    assert b"".join(shop.blobs.open(blob_key(digest)) or ()) == code
    assert {path.name for path in shop.folder.iterdir()} == {"blobs", "upload.zip"}


def test_a_link_in_the_spec_is_replaced(shop: Shop) -> None:
    entry = shop.upload(bundle(spec={**SPEC, "tool_source_code_link": "https://evil.example/x.zip"}))
    assert entry.spec.binding.source_code_link.startswith("https://tools.example.org/bundles/")


def test_a_duplicate_is_noticed_before_any_blob_is_touched(shop: Shop) -> None:
    shop.upload(bundle(code=python_code("first = 1\n")))
    before = list(shop.blobs.puts)
    with pytest.raises(ToolExistsError):
        shop.upload(bundle(code=python_code("second = 2\n")))
    assert shop.blobs.puts == before
    assert len(shop.kept()) == 1


def test_a_duplicate_is_on_record_however_it_comes(shop: Shop) -> None:
    spec = shop.upload(bundle()).spec
    audit = MemoryAudit()
    watched = Catalogue(shop.catalogue.store, audit=audit)
    with pytest.raises(ToolExistsError):
        watched.publish(spec, principal="ann")
    published = [event[2:] for event in audit.events()]
    assert [(event.outcome, event.principal) for event in audit.events()] == [("failed", "ann"), ("attempt", "ann")]
    with pytest.raises(ToolExistsError):
        shop.upload(bundle(), watched, principal="ann")
    assert [event[2:] for event in audit.events(limit=2)] == published


def test_replacing_keeps_the_old_code_for_the_history(shop: Shop) -> None:
    first = shop.upload(bundle(code=python_code("first = 1\n")))
    second = shop.upload(bundle(code=python_code("second = 2\n")), replace=True)
    assert first.spec.binding != second.spec.binding
    assert len(shop.kept()) == 2
    assert collect_orphans(shop.blobs, shop.catalogue.store, older_than=-10) == []
    restored = shop.catalogue.restore(NAME, 1)
    digest = bundle_digest(restored.spec.binding.source_code_link)
    assert b"".join(shop.blobs.open(blob_key(digest or "")) or ()) == python_code("first = 1\n")


@pytest.mark.parametrize(
    ("content", "error"),
    [
        (b"not a zip", InvalidBundleError),
        (bundle(spec={}), ToolValidationError),
        (bundle(spec={**SPEC, "tool_id": "../../etc/passwd"}), ToolValidationError),
        (bundle(spec={**SPEC, "tool_id": "x" * 5000}), ToolValidationError),
        (bundle(spec={**SPEC, "tool_tags": "git"}), ToolValidationError),
        (bundle(spec={**SPEC, "tool_color": "red"}), ToolValidationError),
        (bundle(spec={**SPEC, "tool_api_spec": {"input": {"type": "nonsense"}}}), ToolValidationError),
    ],
)
def test_a_wrong_bundle_leaves_nothing(shop: Shop, content: bytes, error: type[Exception]) -> None:
    with pytest.raises(error):
        shop.upload(content)
    assert (shop.blobs.puts, len(shop.catalogue)) == ([], 0)


class Refusing:
    remote = False

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(False, "not today")


def test_a_refused_upload_leaves_no_blob(tmp_path: Path) -> None:
    shop = Shop(tmp_path, policy=Refusing())
    with pytest.raises(DeniedError, match="not today"):
        shop.upload(bundle())
    assert shop.kept() == set()


def test_a_refused_upload_does_not_take_another_tools_code_along(shop: Shop) -> None:
    shop.upload(bundle())
    refusing = Catalogue(shop.catalogue.store, policy=Refusing())
    with pytest.raises(DeniedError):
        shop.upload(bundle(spec={**SPEC, "tool_id": "twin"}), refusing)
    assert len(shop.kept()) == 1


def test_a_refused_upload_leaves_the_code_that_was_published_meanwhile_under_another_address(shop: Shop) -> None:
    class RefusingLate(Refusing):
        def decide(self, request: PolicyRequest) -> Decision:
            link = request.spec["binding"]["source_code_link"].replace("tools.example.org", "old.example.org")
            twin = {"name": "twin", "description": "d", "binding": {"source_code_link": link}}
            shop.catalogue.publish(twin)
            return super().decide(request)

    with pytest.raises(DeniedError):
        shop.upload(bundle(), Catalogue(shop.catalogue.store, policy=RefusingLate()))
    assert len(shop.kept()) == 1


def test_a_store_that_fails_leaves_an_orphan_that_is_collected_when_it_is_old(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(shop.catalogue.store, "commit", fail)
        with pytest.raises(StoreError):
            shop.upload(bundle(code=python_code("orphan = 1\n")))
    shop.upload(bundle(code=python_code("kept = 1\n")))
    assert len(shop.kept()) == 2

    def collect(now: float) -> list[str]:
        return collect_orphans(shop.blobs, shop.catalogue.store, older_than=3600, clock=lambda: now)

    now = time.time()
    assert collect(now) == []
    assert len(collect(now + 7200)) == 1
    link = shop.catalogue.get(NAME).binding.source_code_link
    assert shop.kept() == {blob_key(bundle_digest(link) or "")}


def test_an_upload_renews_the_age_of_an_old_orphan(shop: Shop) -> None:
    """Otherwise the collector could take the code between the upload's blob and its record."""
    shop.upload(bundle())
    for path in (shop.folder / "blobs").rglob("*"):
        os.utime(path, (0, 0))
    ((key, before),) = shop.blobs.keys()
    shop.upload(bundle(), replace=True)
    assert dict(shop.blobs.keys())[key] > before


def test_the_code_goes_with_the_last_tool_that_has_it(shop: Shop) -> None:
    shop.upload(bundle())
    shop.upload(bundle(spec={**SPEC, "tool_id": "twin"}))
    assert len(shop.kept()) == 1
    shop.catalogue.delete(NAME)
    assert len(shop.kept()) == 1
    shop.catalogue.delete("twin")
    assert shop.kept() == set()


def test_code_that_vanished_during_the_upload_is_put_again(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    publish = shop.catalogue.publish

    def publish_while_another_deletes(*args: Any, **kwargs: Any) -> Entry:
        entry = publish(*args, **kwargs)
        for key in shop.kept():
            shop.blobs.delete(key)
        return entry

    monkeypatch.setattr(shop.catalogue, "publish", publish_while_another_deletes)
    entry = shop.upload(bundle())
    digest = bundle_digest(entry.spec.binding.source_code_link) or ""
    assert b"".join(shop.blobs.open(blob_key(digest)) or ()) == python_code()


def test_leftovers_of_a_crash_while_writing_a_blob_are_collected(shop: Shop) -> None:
    shop.blobs.put(".incoming/0123", io.BytesIO(b"half"))
    orphans = collect_orphans(shop.blobs, shop.catalogue.store, older_than=60, clock=lambda: time.time() + 3600)
    assert orphans == [".incoming/0123"]
    assert shop.blobs.open(".incoming/0123") is None

"""An upload from the file to the catalogue: in which order, and what a bad moment leaves behind."""

import io
from pathlib import Path
from typing import Any

import pytest
from tests.support.archives import SPEC, bundle, python_code
from tests.support.blobs import WatchedBlobs

from toolcrib.adapters.audit.memory import MemoryAudit
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.catalogue.bundles import ingest
from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.code import may_be_withdrawn, open_code, withdraw
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
from toolcrib.ports import Decision, PolicyRequest
from toolcrib.surfaces.http.bodies import Limits

NAME = SPEC["tool_id"]


class Shop:
    """A catalogue with blobs, and what was asked of the blobs."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder
        self.puts: list[str] = []
        self.ages: dict[str, float] = {}
        self.blobs = WatchedBlobs(open_blobs(f"file://{folder}/blobs"), self._note, age=self.ages.get)
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

    def collect(self, *, later: bool = False) -> Collected:
        """``later``: when all that is there now has been there for longer than the grace."""
        if later:
            self.ages |= dict.fromkeys(self.kept(), 0.0)
        return collect(self.blobs, self.catalogue.store)

    def _note(self, what: str, key: str) -> None:
        if what == "put" and key.startswith("sha256/"):
            self.puts.append(key)


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
    before = list(shop.puts)
    with pytest.raises(ToolExistsError):
        shop.upload(bundle(code=python_code("second = 2\n")))
    assert shop.puts == before
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
    assert shop.collect(later=True) == Collected([], [], [])
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
    assert (shop.puts, len(shop.catalogue)) == ([], 0)


class Refusing:
    remote = False

    def decide(self, request: PolicyRequest) -> Decision:
        return Decision(False, "not today")


def test_the_code_of_a_refused_upload_goes_when_it_is_old(tmp_path: Path) -> None:
    shop = Shop(tmp_path, policy=Refusing())
    with pytest.raises(DeniedError, match="not today"):
        shop.upload(bundle())
    (key,) = shop.kept()  # and no reference
    assert shop.collect() == Collected([], [], [])
    assert shop.kept() == {key}
    assert len(shop.collect(later=True).trashed) == 1
    assert len(shop.collect(later=True).removed) == 1
    assert shop.kept() == set()


def test_a_refused_upload_does_not_take_another_tools_code_along(shop: Shop) -> None:
    shop.upload(bundle())
    refusing = Catalogue(shop.catalogue.store, policy=Refusing())
    with pytest.raises(DeniedError):
        shop.upload(bundle(spec={**SPEC, "tool_id": "twin"}), refusing)
    assert shop.collect(later=True) == Collected([], [], [])
    assert len(shop.kept()) == 1


def test_an_upload_under_way_keeps_its_code_from_the_collector(shop: Shop) -> None:
    collected: list[Collected] = []

    class Collecting(Refusing):
        def decide(self, request: PolicyRequest) -> Decision:
            shop.ages |= {key: 0.0 for key in shop.kept() if key.startswith("sha256/")}
            collected.append(shop.collect())
            return Decision(True)

    shop.upload(bundle(), Catalogue(shop.catalogue.store, policy=Collecting()))
    assert collected == [Collected([], [], [])]
    assert len(shop.kept()) == 1


def test_a_store_that_fails_leaves_a_reference_that_counts_for_a_while(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows whether the record was written: it may turn up yet."""

    def fail(*args: object) -> None:
        raise StoreError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(shop.catalogue.store, "commit", fail)
        with pytest.raises(StoreError):
            shop.upload(bundle(code=python_code("orphan = 1\n")))
    (key,) = (key for key in shop.kept() if key.startswith("sha256/"))
    shop.ages[key] = 0.0  # the code was there before
    assert shop.collect() == Collected([], [], [])
    assert len(shop.collect(later=True).trashed) == 1
    assert {key.partition("/")[0] for key in shop.kept()} == {"trash"}  # the reference is gone too


def test_the_grace_is_longer_than_any_upload() -> None:
    assert Limits(0, 0).upload_seconds * 10 < GRACE_SECONDS


def test_the_code_stays_until_the_last_tool_that_has_it_is_gone_and_old(shop: Shop) -> None:
    shop.upload(bundle())
    link = shop.upload(bundle(spec={**SPEC, "tool_id": "twin"})).spec.binding.source_code_link
    digest = bundle_digest(link) or ""
    shop.catalogue.delete(NAME)
    assert shop.collect(later=True) == Collected([], [], [])
    shop.catalogue.delete("twin")
    assert shop.collect(later=True) == Collected([digest], [], [])
    assert b"".join(open_code(shop.blobs, digest) or ()) == python_code()  # it is found in the trash
    assert shop.collect() == Collected([], [], [])
    assert shop.collect(later=True) == Collected([], [], [digest])
    assert open_code(shop.blobs, digest) is None
    assert shop.kept() == set()


def test_a_withdrawn_code_may_be_asked_about_until_it_is_gone(shop: Shop) -> None:
    digest = bundle_digest(shop.upload(bundle()).spec.binding.source_code_link) or ""
    assert not may_be_withdrawn(shop.blobs, digest)
    shop.catalogue.delete(NAME)
    withdraw(shop.blobs, digest)
    assert may_be_withdrawn(shop.blobs, digest)
    shop.collect(later=True)
    assert {key.partition("/")[0] for key in shop.kept()} == {"trash"}
    assert may_be_withdrawn(shop.blobs, digest)


def test_code_that_is_needed_again_comes_back_from_the_trash(shop: Shop) -> None:
    digest = bundle_digest(shop.upload(bundle()).spec.binding.source_code_link) or ""
    shop.catalogue.delete(NAME)
    shop.collect(later=True)
    shop.catalogue.restore(NAME, 1)
    assert shop.collect(later=True) == Collected([], [digest], [])
    assert shop.kept() == {blob_key(digest)}


def test_leftovers_of_a_crash_while_writing_a_blob_are_collected(shop: Shop) -> None:
    shop.blobs.put(".incoming/0123", io.BytesIO(b"half"))
    shop.collect()
    assert shop.kept() == {".incoming/0123"}
    shop.collect(later=True)
    assert shop.kept() == set()

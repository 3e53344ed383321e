"""A purge: nothing stays of a tool but the audit, and nothing goes that is somebody else's."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from tests.support.archives import SPEC, bundle, python_code

from toolcrib.bootstrap import System
from toolcrib.catalogue.bundles import ingest
from toolcrib.catalogue.catalogue import Catalogue
from toolcrib.catalogue.code import open_code, referred
from toolcrib.core.errors import ConflictError, DeniedError, StoreError, ToolInUseError, ToolNotFoundError
from toolcrib.core.roles import Principal
from toolcrib.formats.bundle import blob_key, bundle_digest, bundle_link
from toolcrib.settings import Settings


@pytest.fixture
def system(store_url: str, settings: Settings) -> System:
    return System(settings.with_changes("test", store=store_url))


@pytest.fixture
def upload(system: System, tmp_path: Path) -> Callable[..., str]:
    """Uploads a tool of that name; the digest of its code."""

    def uploaded(name: str, code: str = "one", replace: bool = False) -> str:
        path, link = tmp_path / "upload.zip", partial(bundle_link, "https://tools.example.org")
        path.write_bytes(bundle(spec={**SPEC, "tool_id": name}, code=python_code(f"return {code!r}")))
        entry = ingest(path, blobs=system.blobs, catalogue=system.catalogue, link_for=link, replace=replace)
        digest = bundle_digest(entry.document["binding"]["source_code_link"])
        assert digest
        return digest

    return uploaded


def kept(system: System) -> set[str]:
    return set(dict(system.blobs.keys()))


def test_history_and_bundles_go(system: System, upload: Callable[..., str]) -> None:
    catalogue = system.catalogue
    first, second = upload("scribe"), upload("scribe", "two", replace=True)
    assert kept(system) == {blob_key(first), blob_key(second)}
    catalogue.delete("scribe", purge=True, principal="ada")
    with pytest.raises(ToolNotFoundError):
        catalogue.history("scribe")
    assert catalogue.search("commit") == []
    assert kept(system) == set()
    assert catalogue.store.outbox() == []
    done, attempt = system.audit.events(tool="scribe", action="delete")
    assert (attempt.outcome, done.outcome, done.principal) == ("attempt", "done", "ada")
    assert done.detail == "purged with its history of 2 versions"
    with pytest.raises(ToolNotFoundError):
        catalogue.delete("scribe", purge=True)
    upload("scribe")
    assert catalogue.entry("scribe").version == 1
    system.close()


def test_a_bundle_of_another_tool_stays(system: System, upload: Callable[..., str]) -> None:
    shared, own, past = upload("scribe"), upload("scribe", "two", replace=True), upload("other", "three")
    upload("scribe", "three", replace=True)
    upload("third")
    upload("other", "four", replace=True)  # 'three' is in its history, and can be restored
    system.catalogue.delete("scribe", purge=True)
    assert {blob_key(shared), blob_key(past)} < kept(system)
    assert open_code(system.blobs, own) is None
    assert system.catalogue.restore("other", 1).version == 3
    system.close()


def test_a_bundle_that_is_being_uploaded_stays(system: System, upload: Callable[..., str]) -> None:
    digest = upload("scribe")
    with referred(system.blobs, digest):
        system.catalogue.delete("scribe", purge=True)
        assert open_code(system.blobs, digest) is not None
    system.close()


def test_what_was_deleted_before_is_purged(system: System, upload: Callable[..., str]) -> None:
    upload("scribe")
    system.catalogue.delete("scribe")
    assert kept(system)
    assert system.catalogue.history("scribe")
    system.catalogue.delete("scribe", purge=True)
    assert kept(system) == set()
    with pytest.raises(ToolNotFoundError):
        system.catalogue.history("scribe")
    system.close()


@pytest.mark.parametrize("how", ["start", "again"])
def test_what_a_crash_left_is_finished(
    system: System, upload: Callable[..., str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """The record is gone, the code is not: the next start takes it away, or whoever asks once more."""
    upload("scribe")
    blobs, catalogue = system.blobs, system.catalogue

    def crash(*_: object) -> None:
        raise StoreError("the power went")

    with monkeypatch.context() as crashing:
        crashing.setattr(blobs, "delete", crash)
        catalogue.delete("scribe", purge=True)
    assert kept(system)
    if how == "start":
        assert catalogue.recover() == 1
    else:
        catalogue.delete("scribe", purge=True)
    assert kept(system) == set()
    assert catalogue.store.outbox() == []
    with pytest.raises(ToolNotFoundError):
        catalogue.delete("scribe", purge=True)
    system.close()


def test_who_may_not(catalogue: Catalogue) -> None:
    catalogue.publish({"name": "a", "description": "A."})
    catalogue.publish({"name": "b", "description": "B.", "replaced_by": "a"})
    publisher, admin = Principal("ada", ("publisher",)), Principal("root", ("admin",))
    with pytest.raises(DeniedError, match="'admin'"):
        catalogue.delete("a", purge=True, principal=publisher)
    with pytest.raises(ToolInUseError):
        catalogue.delete("a", purge=True, principal=admin)
    with pytest.raises(ConflictError):
        catalogue.delete("a", force=True, purge=True, expected="old", principal=admin)
    catalogue.delete("a", force=True, purge=True, principal=admin)
    assert "a" not in catalogue

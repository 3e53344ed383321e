"""Credentials at rest: sealed, bound to their place, and sealed again when the key changes."""

from __future__ import annotations

import base64
import stat
import threading
from pathlib import Path

import pytest

from toolcrib.adapters.sealing import AesGcmSeal, add_key, key_file, new_key
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.bootstrap import open_catalogue, open_seal
from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import MissingConfigError, SettingsError, StoreError
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Change
from toolcrib.settings import Settings


def tool(name: str = "weather", **credentials: object) -> ToolSpec:
    return ToolSpec(name=name, description="d", credentials=credentials)


def test_a_value_comes_back_and_is_not_readable() -> None:
    seal = AesGcmSeal([new_key()])
    sealed = seal.close({"user": "ünï", "n": 1}, "tool\0key")
    assert "user" not in sealed
    assert seal.open(sealed, "tool\0key") == {"user": "ünï", "n": 1}
    assert sealed != seal.close({"user": "ünï", "n": 1}, "tool\0key")


def test_a_sealed_value_opens_only_in_its_place() -> None:
    seal = AesGcmSeal([new_key()])
    sealed = seal.close("secret", "tool\0key")
    with pytest.raises(StoreError, match="'other'"):
        seal.open(sealed, "other\0key")
    with pytest.raises(StoreError):
        seal.open(sealed, "tool\0another")


@pytest.mark.parametrize(
    "damage", ["", "plain", "v1:zz", "v2:{id}:{data}", "v1:{id}:", "v1:{id}:!!", "v1:{id}:{other}"]
)
def test_a_damaged_value_is_told(damage: str) -> None:
    seal = AesGcmSeal([new_key()])
    _, key_id, data = seal.close("secret", "tool\0key").split(":")
    other = base64.b64encode(bytes(60)).decode()
    with pytest.raises(StoreError, match="'tool'"):
        seal.open(damage.format(id=key_id, data=data, other=other), "tool\0key")


def test_the_first_key_seals_and_all_of_them_open() -> None:
    old, new = new_key(), new_key()
    sealed = AesGcmSeal([old]).close("secret", "t\0k")
    assert AesGcmSeal([new, old]).open(sealed, "t\0k") == "secret"
    assert AesGcmSeal([new]).open(AesGcmSeal([new, old]).close("s", "t\0k"), "t\0k") == "s"
    with pytest.raises(SettingsError, match="TOOLCRIB_SEAL_KEYS lacks"):
        AesGcmSeal([new]).open(sealed, "t\0k")


@pytest.mark.parametrize(
    ("keys", "words"), [([], "no key"), (["?"], "not base64"), (["YQ=="], "1 bytes instead of 32")]
)
def test_a_wrong_key_is_refused_and_not_shown(keys: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        AesGcmSeal(keys)
    assert new_key() not in repr(AesGcmSeal([new_key()]))


def test_keys_are_rotated() -> None:
    store, old, new = MemoryStore(), new_key(), new_key()
    Catalogue(store, seal=AesGcmSeal([old])).publish_many([tool("a", key="1"), tool("b", key="2"), tool("c")])
    rotating = Catalogue(store, seal=AesGcmSeal([new, old]))
    assert rotating.reseal() == 2
    after = Catalogue(store, seal=AesGcmSeal([new]))
    assert (after.credentials("a"), after.credentials("b"), after.credentials("c")) == ({"key": "1"}, {"key": "2"}, {})
    assert after.get("a") == rotating.get("a")


def test_without_a_key_only_credentials_are_refused() -> None:
    catalogue = Catalogue(MemoryStore())
    catalogue.publish(tool())
    with pytest.raises(MissingConfigError, match="TOOLCRIB_SEAL_KEYS"):
        catalogue.publish(tool("other", key="x"))


def test_a_value_moved_to_another_tool_in_the_store_does_not_open(settings: Settings, tmp_path: Path) -> None:
    catalogue = open_catalogue(f"sqlite://{tmp_path}/tools.db", settings)
    catalogue.publish_many([tool("mine", key="secret"), tool("yours", key="other")])
    stolen = catalogue.store.get("mine")
    target = catalogue.store.get("yours")
    assert stolen is not None
    assert target is not None
    document = {**target.document, "credentials": stolen.document["credentials"]}
    catalogue.store.commit([Change("yours", document)])
    with pytest.raises(StoreError, match="'yours'"):
        catalogue.credentials("yours")
    catalogue.close()


def test_an_embedded_catalogue_makes_its_key_at_the_first_need(tmp_path: Path) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"), environ={})
    url, path = f"sqlite://{tmp_path}/tools.db", tmp_path / "data/keys/seal.key"
    catalogue = open_catalogue(url, settings)
    catalogue.publish(tool())
    assert not path.exists()
    catalogue.publish(tool("secretive", key="hunter2"))
    catalogue.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    again = open_catalogue(url, settings)
    assert again.credentials("secretive") == {"key": "hunter2"}
    again.close()
    for file in tmp_path.glob("tools*"):
        assert b"hunter2" not in file.read_bytes()


def test_a_shared_store_needs_a_configured_key() -> None:
    with pytest.raises(SettingsError, match="TOOLCRIB_SEAL_KEYS"):
        open_seal(Settings(environ={}), shared=True).close("x", "t\0k")


def test_two_that_need_the_key_file_at_once_get_the_same(tmp_path: Path) -> None:
    found: list[tuple[str, ...]] = []
    threads = [
        threading.Thread(target=lambda: found.append(key_file(tmp_path / "keys/seal.key"))) for _ in range(8)
    ]  # fmt: skip
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["seal.key"]


def test_a_key_is_added_before_the_others(tmp_path: Path) -> None:
    path = tmp_path / "seal.key"
    first = key_file(path)
    add_key(path)
    assert key_file(path)[1:] == first
    assert key_file(path)[0] != first[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in tmp_path.iterdir()] == ["seal.key"]


def test_a_key_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "seal.key").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"seal\.key"):
        key_file(tmp_path / "seal.key")

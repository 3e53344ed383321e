"""Credentials at rest: sealed, bound to their place, and sealed again when the key changes."""

from __future__ import annotations

import base64
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from shutil import copy
from typing import Any

import pytest

from toolcrib.adapters.sealing import AesGcmSeal, add_key, fingerprint, new_key, read_keys
from toolcrib.adapters.stores.memory import MemoryStore
from toolcrib.bootstrap import open_catalogue, open_system, rotate_seal
from toolcrib.catalogue import Catalogue
from toolcrib.core.errors import MissingConfigError, SettingsError, StoreError
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import SEAL_CLAIM, Change
from toolcrib.settings import Settings
from toolcrib.surfaces.service import application_of


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
    catalogue = open_catalogue(f"sqlite:///{tmp_path}/tools.db", settings)
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
    url, path = f"sqlite:///{tmp_path}/tools.db", tmp_path / "data/keys/seal.key"
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


def settings_of(folder: Path, **changes: Any) -> Settings:
    """Those of a process with a data folder of its own."""
    return Settings(data_dir=str(folder), environ={}, **changes)


@pytest.fixture(params=["json", "sqlite", "mongo"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "mongo":
        return str(request.getfixturevalue("mongo_database_url"))
    return f"{request.param}://{tmp_path}/tools.{request.param}"


def test_every_store_needs_one_setting_and_makes_its_key_at_the_first_need(url: str, tmp_path: Path) -> None:
    settings, path = settings_of(tmp_path / "one"), tmp_path / "one/keys/seal.key"
    with closing(open_catalogue(url, settings)) as catalogue:
        catalogue.publish(tool())
        assert not path.exists()
        catalogue.publish(tool("secretive", key="hunter2"))
        assert catalogue.credentials("secretive") == {"key": "hunter2"}
        assert catalogue.store.claimed(SEAL_CLAIM) == fingerprint(path.read_text().strip())


def start_service(url: str, settings: Settings) -> None:
    with open_system(settings.with_changes("test", store=url)) as system:
        application_of(system)


def test_a_process_with_another_key_does_not_start_nor_a_service_with_none(url: str, tmp_path: Path) -> None:
    one, two, key = settings_of(tmp_path / "one"), settings_of(tmp_path / "two"), new_key()
    given = settings_of(tmp_path / "three", seal_keys=(key,))
    with closing(open_catalogue(url, one)) as catalogue:
        catalogue.publish(tool("secretive", key="hunter2"))
    ours = fingerprint((tmp_path / "one/keys/seal.key").read_text().strip())
    with pytest.raises(SettingsError, match=f"key {ours}, and this process has only {fingerprint(key)};"):
        open_catalogue(url, given)
    without = f"key {ours}, and this process has no key; copy .*TOOLCRIB_SEAL_KEYS"
    with pytest.raises(SettingsError, match=without):
        start_service(url, two)
    with closing(open_catalogue(url, two)) as reader:  # who only reads needs no key
        assert [spec.name for spec in reader] == ["secretive"]
        with pytest.raises(SettingsError, match=without):
            reader.credentials("secretive")
    assert not (tmp_path / "two/keys/seal.key").exists()

    (tmp_path / "two/keys").mkdir(parents=True, exist_ok=True)
    copy(tmp_path / "one/keys/seal.key", tmp_path / "two/keys/seal.key")
    for settings in (one, two):  # the way out works
        with closing(open_catalogue(url, settings)) as catalogue:
            assert catalogue.credentials("secretive") == {"key": "hunter2"}


def test_the_first_service_on_a_shared_store_makes_its_key(mongo_database_url: str, tmp_path: Path) -> None:
    start_service(mongo_database_url, settings_of(tmp_path / "one"))
    made = fingerprint((tmp_path / "one/keys/seal.key").read_text().strip())
    with pytest.raises(SettingsError, match=f"key {made}, and this process has no key"):
        start_service(mongo_database_url, settings_of(tmp_path / "two"))


def test_a_shared_store_is_claimed_by_its_service_and_keeps_its_first_key(
    mongo_database_url: str, tmp_path: Path
) -> None:
    first, second = new_key(), new_key()
    start_service(mongo_database_url, settings_of(tmp_path, seal_keys=(first,)))
    with pytest.raises(SettingsError, match=fingerprint(second)):
        open_catalogue(mongo_database_url, settings_of(tmp_path, seal_keys=(second,)))
    # A replica that has the next key already goes on with the one that all have.
    with closing(open_catalogue(mongo_database_url, settings_of(tmp_path, seal_keys=(second, first)))) as catalogue:
        catalogue.publish(tool(key="hunter2"))
    with closing(open_catalogue(mongo_database_url, settings_of(tmp_path, seal_keys=(first,)))) as catalogue:
        assert catalogue.credentials("weather") == {"key": "hunter2"}


def test_of_processes_that_need_a_key_at_once_one_makes_it(mongo_database_url: str, tmp_path: Path) -> None:
    catalogues = [open_catalogue(mongo_database_url, settings_of(tmp_path / str(number))) for number in range(4)]

    def publish(number: int) -> bool:
        try:
            catalogues[number].publish(tool(f"tool-{number}", key="x"))
        except SettingsError:
            return False
        return True

    with ThreadPoolExecutor(4) as pool:
        won = list(pool.map(publish, range(4)))
    assert sum(won) == 1
    winner = catalogues[won.index(True)]
    assert winner.credentials(f"tool-{won.index(True)}") == {"key": "x"}
    for catalogue in catalogues:
        catalogue.close()


def test_rotating_names_the_new_key_in_the_store(url: str, tmp_path: Path) -> None:
    old, new = new_key(), new_key()
    before = settings_of(tmp_path / "one", seal_keys=(old,), store=url)
    after = settings_of(tmp_path / "one", seal_keys=(new, old), store=url)
    with closing(open_catalogue(settings=before)) as catalogue:
        catalogue.publish(tool(key="hunter2"))
    assert rotate_seal(after) == 1
    with pytest.raises(SettingsError, match=f"key {fingerprint(new)}"):
        open_catalogue(settings=before)
    only_new = settings_of(tmp_path / "one", seal_keys=(new,), store=url)
    with closing(open_catalogue(settings=only_new)) as catalogue:
        assert catalogue.credentials("weather") == {"key": "hunter2"}


def test_a_key_of_our_own_is_rotated_on_a_shared_store_too(mongo_database_url: str, tmp_path: Path) -> None:
    settings = settings_of(tmp_path / "one", store=mongo_database_url)
    with closing(open_catalogue(settings=settings)) as catalogue:
        catalogue.publish(tool(key="hunter2"))
    assert rotate_seal(settings) == 1
    keys = (tmp_path / "one/keys/seal.key").read_text().split()
    with closing(open_catalogue(settings=settings)) as catalogue:
        assert catalogue.credentials("weather") == {"key": "hunter2"}
        assert (len(keys), catalogue.store.claimed(SEAL_CLAIM)) == (2, fingerprint(keys[0]))


def test_a_lost_key_is_given_up_with_what_it_sealed(url: str, tmp_path: Path) -> None:
    with closing(open_catalogue(url, settings_of(tmp_path / "gone"))) as catalogue:
        catalogue.publish(tool(key="hunter2"))
    settings = settings_of(tmp_path / "one", store=url)
    with pytest.raises(SettingsError, match="keys rotate --lost"):
        rotate_seal(settings)
    assert rotate_seal(settings, lost=True) == 0
    with closing(open_catalogue(settings=settings)) as catalogue:
        catalogue.publish(tool("other", key="new"))
        assert catalogue.credentials("other") == {"key": "new"}
        with pytest.raises(SettingsError, match="'weather'"):
            catalogue.credentials("weather")


def test_a_catalogue_without_credentials_needs_no_key_and_no_cryptography(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    for seal_keys in ((), (new_key(),)):
        with closing(open_catalogue(url, settings_of(tmp_path / "data", seal_keys=seal_keys))) as catalogue:
            catalogue.publish(tool(), replace=True)
            assert "weather" in catalogue
    assert not (tmp_path / "data/keys").exists()


def test_two_that_need_the_key_file_at_once_get_the_same(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: add_key(tmp_path / "keys/seal.key", first=True), range(8)))
    assert len(set(found)) == 1


def test_a_key_is_added_before_the_others(tmp_path: Path) -> None:
    path = tmp_path / "seal.key"
    first = add_key(path, first=True)
    both = add_key(path)
    assert (read_keys(path), both[1:]) == (both, first)
    assert both[0] != first[0]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_key_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "seal.key").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"seal\.key"):
        read_keys(tmp_path / "seal.key")

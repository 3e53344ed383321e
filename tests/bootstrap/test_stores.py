"""Addresses of stores in files: three slashes from here, four from the root, and no folder that nobody asked for."""

import logging
from contextlib import closing
from pathlib import Path

import pytest

from toolcrib import open_catalogue
from toolcrib.bootstrap import open_audit, open_store, open_system
from toolcrib.bootstrap.stores import store_file
from toolcrib.core.errors import SettingsError
from toolcrib.settings import load_settings

KINDS = ["sqlite", "json", "brain"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of the test's own, with a folder in it where the program is."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for variable in ("XDG_DATA_HOME", "TOOLCRIB_DATA_DIR"):
        monkeypatch.delenv(variable, raising=False)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_three_slashes_are_from_here_and_four_from_the_root(home: Path, kind: str) -> None:
    (home / "here/in").mkdir()
    for address, path in {
        "relative.db": home / "here/relative.db",
        "in/a%20b.db": home / "here/in/a b.db",
        "./x.db": home / "here/x.db",
        "../x.db": home / "here/../x.db",
        "~/x.db": home / "x.db",
        f"{home}/x.db": home / "x.db",
        f"/{home}/x.db": home / "x.db",
    }.items():
        assert store_file(f"{kind}:///{address}") == path


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_is_where_its_address_says(home: Path, kind: str) -> None:
    tool = {"name": "t", "description": "A tool.", "tool_type": "parser", "package_name": "t", "execution_mode": "sync"}
    for url, file in (
        (f"{kind}:///relative.db", home / "here/relative.db"), (f"{kind}:///{home}/full.db", home / "full.db"),
    ):  # fmt: skip
        with closing(open_catalogue(url)) as catalogue:
            catalogue.publish(tool)
        assert file.is_file()
        assert file.with_suffix(".audit.db").is_file()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("folder", ["missing", "missing/deep", "{home}/missing"])
def test_no_folder_is_made_for_an_address(home: Path, kind: str, folder: str) -> None:
    folder = folder.format(home=home)
    told = f"the folder '{home / 'here' / folder}' of the store '{kind}:///{folder}/x.db' does not exist; make it first"
    for opening in (open_store, open_audit, open_catalogue):
        with pytest.raises(SettingsError) as refused:
            opening(f"{kind}:///{folder}/x.db")
        assert str(refused.value) == told
    assert [path.name for path in home.rglob("missing")] == []


def test_what_three_slashes_used_to_mean_is_read_and_told(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), closing(open_catalogue(f"sqlite://{home}/old.db")):
        assert (home / "old.db").is_file()
    [warning] = caplog.messages
    assert warning.endswith(f"it is read as sqlite:///{home}/old.db")
    assert f"sqlite:///{home}/old.db".startswith("sqlite:////")


def test_of_two_folders_the_one_from_here_is_meant(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Unless only the other one has the file: then nobody can tell, and nothing is opened."""
    below = home.relative_to("/")
    below_here = Path.cwd() / below
    below_here.mkdir(parents=True)
    assert store_file(f"sqlite:///{below}/tools.db") == below_here / "tools.db"
    (home / "tools.db").touch()
    with pytest.raises(SettingsError) as refused:
        open_store(f"sqlite:///{below}/tools.db")
    for way_out in (f"sqlite:///{home}/tools.db", f"sqlite:///./{below}/tools.db"):
        assert way_out in str(refused.value)
        assert store_file(way_out).parent in (home, below_here)
    (below_here / "tools.db").touch()
    assert store_file(f"sqlite:///{below}/tools.db") == below_here / "tools.db"
    assert caplog.messages == []


@pytest.mark.parametrize("store", ["", "brain:", "json:///{home}/.local/share/toolcrib/in/tools.json"])
def test_the_folders_that_the_settings_choose_are_made(home: Path, store: str) -> None:
    settings = load_settings().with_changes("test", store=store.format(home=home))
    with open_system(settings) as system:
        system.catalogue.publish({"name": "t", "description": "A tool.", "execution_mode": "sync"})
    assert store_file(settings.store_url).is_relative_to(home)
    assert store_file(settings.store_url).parent.is_dir()

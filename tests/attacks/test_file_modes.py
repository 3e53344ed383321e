"""Nothing that is kept can be opened by another user of the machine."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.attacks.conftest import Attacked
from tests.surfaces.http.bundles import bundle, code_zip

from toolcrib import open_catalogue
from toolcrib.adapters.files import narrow
from toolcrib.settings import Settings
from toolcrib.stacking.journal import Journal

PROGRAM = Path(sys.executable).with_name("toolcrib")


def modes(folder: Path) -> Iterator[tuple[Path, int]]:
    """Everything in the folder; what lies inside of one unpacked bundle is shown to whom it runs as."""
    yield folder, stat.S_IMODE(folder.stat().st_mode)
    for parent, folders, files in os.walk(folder):
        if Path(parent).name == "unpacked":
            folders.clear()
        for name in (*folders, *files):
            found = (Path(parent) / name).lstat()
            yield Path(parent) / name, stat.S_IMODE(found.st_mode)


def opened(folder: Path) -> list[tuple[str, str]]:
    return [(str(path.relative_to(folder)), oct(mode)) for path, mode in modes(folder) if mode & 0o077]


@pytest.fixture(autouse=True)
def wide_mask() -> Iterator[None]:
    """As on most machines: what nobody takes care of can be read by all."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def test_after_a_busy_life_nothing_is_open_to_others(attacked: Attacked) -> None:
    service = attacked.service
    data = service.folder / "data"
    admin = attacked.as_role("admin")
    service.start()
    code = code_zip(b"class ToolFunction:\n    def __init__(s, i, d): ...\n    def execute(s, data): return 1\n")
    assert admin.post("/tools/upload", files={"file": bundle(code=code)}).is_success
    admin.post("/tools/tool-123/run", json={"arguments": {"text": "x"}})
    secret = {"tool_id": "a", "default_tool_usage_credentials": {"key": "s"}}
    assert admin.post("/tools", json=secret).is_success
    saved = [str(PROGRAM), "backup", str(data / "saved.zip")]
    subprocess.run(saved, env=service.environment, cwd=service.folder, check=True, capture_output=True)
    service.kill()  # the logs beside the databases stay
    names = {path.name for path, _ in modes(data)}
    assert {"saved.zip", "blobs", "unpacked", "keys"} <= names
    assert opened(data) == []
    kept = list(service.folder.glob("tools.*"))
    assert [path.name for path in kept if stat.S_IMODE(path.stat().st_mode) & 0o077] == []

    (data / "saved.zip").unlink()
    for path, mode in [*modes(data), *((path, 0o600) for path in kept)]:
        path.chmod(mode | 0o044 | (0o011 if path.is_dir() else 0))
    service.start().stop()
    assert opened(data) == []
    assert [path.name for path in kept if path.exists() and stat.S_IMODE(path.stat().st_mode) & 0o077] == []
    assert "closed to other users what they could open" in service.log_text()


@pytest.mark.parametrize("store", ["sqlite:///{}/in/tools.db", "json:///{}/in/tools.json", "brain:///{}/in/tools.json"])
def test_a_library_leaves_nothing_open(tmp_path: Path, store: str) -> None:
    settings = Settings(data_dir=str(tmp_path / "data"), store=store.format(tmp_path))
    (tmp_path / "in").mkdir(mode=0o700)
    catalogue = open_catalogue(settings=settings)
    sealed = {} if "brain" in store else {"credentials": {"key": "s"}}
    catalogue.publish({"name": "a", "description": "A.", "execution_mode": "sync", **sealed})
    catalogue.update("a", description="B.")
    assert opened(tmp_path / "in") == []
    assert "brain" in store or opened(tmp_path / "data") == []
    catalogue.close()
    for path, mode in modes(tmp_path / "in"):
        path.chmod(mode | 0o044)
    open_catalogue(settings=settings).close()
    assert [name for name, _ in opened(tmp_path / "in")] == ["."], "the folder may hold what is not ours"


def test_the_journal_of_a_pipeline_is_its_owners_alone(tmp_path: Path) -> None:
    """It holds requests with their cookies, and pages that only a login shows."""
    journal = Journal(tmp_path / "in" / "run.db", "shop")
    assert {path.name for path, _ in modes(tmp_path / "in")} >= {"in", "run.db", "run.db-wal"}
    assert opened(tmp_path / "in") == []
    journal.close()


def test_what_is_closed_already_and_what_is_not_ours_stays(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("open", "open/inner", "closed", "kept"):
        (tmp_path / name).mkdir(mode=0o755)
        (tmp_path / name / "file").touch(mode=0o644)
    (tmp_path / "closed").chmod(0o700)
    (tmp_path / "elsewhere").touch(mode=0o644)
    (tmp_path / "open" / "link").symlink_to(tmp_path / "elsewhere")
    caplog.set_level("INFO")
    narrow(tmp_path / "open", tmp_path / "kept", tmp_path / "missing", but=tmp_path / "kept")
    assert len(caplog.messages) == 1 and "closed to other users" in caplog.messages[0]
    assert {str(path.relative_to(tmp_path)): oct(mode) for path, mode in modes(tmp_path) if mode & 0o077} == {
        "closed/file": "0o644", "elsewhere": "0o644", "kept/file": "0o644", "open/link": "0o777",
    }  # fmt: skip
    narrow(tmp_path / "open", tmp_path / "open" / "link")
    assert len(caplog.messages) == 1, "nor is what a link leads to"

"""Row 22: the folder that workers share for their metrics goes with the service, also with one that was killed."""

import os
import tempfile
from pathlib import Path

import pytest
from filelock import FileLock
from tests.surfaces.http.running import RunningService

from toolcrib.surfaces.http.metrics import shared_folder


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def left_by_somebody(folder: Path, name: str) -> Path:
    left = folder / f"toolcrib-metrics-{name}"
    left.mkdir()
    (left / "counter_1.db").write_bytes(b"x")
    (left / "owner.lock").touch()
    os.utime(left, (0, 0))
    return left


def test_the_folder_is_there_while_it_is_needed(temporary: Path) -> None:
    with shared_folder():
        [folder] = temporary.iterdir()
        assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(folder)
    assert not list(temporary.iterdir())
    assert "PROMETHEUS_MULTIPROC_DIR" not in os.environ


def test_what_a_killed_service_left_is_removed_and_what_is_used_stays(temporary: Path) -> None:
    dead, alive = left_by_somebody(temporary, "dead"), left_by_somebody(temporary, "alive")
    link = temporary / "toolcrib-metrics-link"
    link.symlink_to(alive, target_is_directory=True)
    with FileLock(alive / "owner.lock"):
        with shared_folder():
            assert not dead.exists()
        assert (alive / "counter_1.db").exists()
        assert link.is_symlink()


def test_nothing_is_left_after_sigterm(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    service = RunningService(tmp_path, workers=2)
    service.environment["TMPDIR"] = str(temporary)
    with service:
        assert len(list(temporary.glob("toolcrib-metrics-*"))) == 1
        assert service.stop() == 0
    assert not list(temporary.glob("toolcrib-metrics-*"))

"""Run tests again as an ordinary user, for what must hold without root."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HOST = Path(__file__).parents[2] / "src/toolcrib/adapters/runners/host"
_USER = 54_321
_REPOSITORY = Path(__file__).parents[2]


def run_as_ordinary_user(tests: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """The tests in a process of a user who owns nothing but ``folder``; skips if that cannot be had here."""
    if os.geteuid() != 0:
        pytest.skip("the tests run as an ordinary user anyway")
    command = [sys.executable, "-P", __file__, str(folder), *tests]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, cwd=_REPOSITORY, check=False)
    if done.returncode == 77:
        pytest.skip(f"cannot show the interpreter to an ordinary user: {done.stderr}")
    return done


def _open_up(paths: list[Path]) -> None:
    """In a mount namespace of our own: folders on the way to ``paths`` that others may not enter become passable."""
    sys.path.insert(0, str(HOST))
    from toolcrib_box import kernel

    kernel.unshare(kernel.NEWNS)
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    handles = {path: os.open(path, os.O_PATH) for path in paths}
    closed = {folder for path in paths for folder in path.parents if not folder.stat().st_mode & 0o001}
    for folder in (one for one in closed if not closed & set(one.parents)):
        kernel.mount("passage", str(folder), "tmpfs", 0, "mode=755,size=64k")
        for path in paths:
            if path.is_relative_to(folder):
                path.mkdir(parents=True)
                kernel.mount(f"/proc/self/fd/{handles[path]}", str(path), None, kernel.MS_BIND | kernel.MS_REC)


def _main(folder: str, *tests: str) -> None:
    try:
        _open_up([Path(sys.base_prefix), Path(sys.prefix), _REPOSITORY, Path(folder)])
    except OSError as error:
        sys.exit((print(error, file=sys.stderr), 77)[1])
    os.chown(folder, _USER, _USER)
    os.setgroups([])
    os.setresgid(_USER, _USER, _USER)
    os.setresuid(_USER, _USER, _USER)
    os.environ |= {"HOME": folder, "TMPDIR": folder, "PYTHONDONTWRITEBYTECODE": "1"}
    os.environ.pop("PYTEST_XDIST_WORKER", None)
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:xdist", f"--basetemp={folder}/pytest"]
    os.execv(sys.executable, [sys.executable, "-m", "pytest", *options, *tests])


if __name__ == "__main__":
    _main(*sys.argv[1:])

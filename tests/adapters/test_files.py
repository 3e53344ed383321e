"""The lock between programs, and files that are replaced whole."""

import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from toolcrib.adapters.files import locked, replace_file

ADD_ONE = """
import sys
from pathlib import Path
from toolcrib.adapters.files import locked
path = Path(sys.argv[1])
for _ in range(50):
    with locked(path):
        path.write_text(str(int(path.read_text()) + 1))
"""


def test_a_lock_holds_between_processes_and_threads(tmp_path: Path) -> None:
    counter = tmp_path / "counter"
    counter.write_text("0")

    def add_one(_: int) -> None:
        with locked(counter):
            counter.write_text(str(int(counter.read_text()) + 1))

    others = [subprocess.Popen([sys.executable, "-c", ADD_ONE, str(counter)]) for _ in range(2)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_one, range(100)))
    assert [other.wait(100) for other in others] == [0, 0]
    assert counter.read_text() == "200"


def test_a_new_file_gets_the_mode_and_an_old_one_keeps_its_own(tmp_path: Path) -> None:
    path = tmp_path / "secret"
    replace_file(path, b"1")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o640)
    replace_file(path, b"2")
    assert (stat.S_IMODE(path.stat().st_mode), path.read_bytes()) == (0o640, b"2")
    assert [found.name for found in tmp_path.iterdir()] == ["secret"]

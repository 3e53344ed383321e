"""The real service as a process of its own, and its worker with it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
from tests.support.newcomer import newcomer_environment
from tests.support.processes import free_port
from tests.support.waiting import PATIENCE, wait_until

_PROGRAM = Path(sys.executable).with_name("toolcrib")
_DIE_WITH_US = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class RunningService:
    """``kill`` is kill -9 for everything at once; ``stop`` asks it to end."""

    def __init__(self, folder: Path, *options: str, **settings: Any) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = folder / "service.log"
        self.options = options
        self.environment = {
            **newcomer_environment(folder),
            "TOOLCRIB_DATA_DIR": str(folder / "data"),
            "TOOLCRIB_LOG_FORMAT": "json",
            **{f"TOOLCRIB_{name.upper()}": str(value) for name, value in settings.items()},
        }
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *, ready: bool = True, limits: str = "") -> Self:
        command = [*_DIE_WITH_US, str(_PROGRAM), "serve", "--port", str(self.port), *self.options]
        if limits:
            command = ["sh", "-c", f'{limits}; exec "$@"', "sh", *command]
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=log, cwd=self.folder, start_new_session=True
            )
        if ready:
            self.wait_ready()
        return self

    def wait_ready(self, seconds: float = PATIENCE) -> None:
        try:
            wait_until(lambda: self.process.poll() is not None or self.answers("/readyz"), seconds)
            assert self.process.poll() is None
        except AssertionError:
            raise RuntimeError(f"the service did not start:\n{self.log_text()}") from None

    def client(self) -> httpx.Client:
        """A client that waits as long as a busy machine takes."""
        return httpx.Client(base_url=self.url, timeout=PATIENCE)

    def answers(self, path: str) -> bool:
        """Does a GET succeed?"""
        try:
            return httpx.get(f"{self.url}{path}", timeout=5).is_success
        except httpx.HTTPError:
            return False

    @property
    def process(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process

    def log_text(self) -> str:
        return self.log.read_text(errors="replace")

    def kill(self) -> None:
        """All of it is dead when this returns: a worker that lingers would hold the port."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        wait_until(self.ended)

    def stop(self, seconds: float = PATIENCE) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def ended(self) -> bool:
        """Whether none of its processes lives."""
        return not any(self._living())

    def memory(self) -> int:
        """Resident bytes of all its processes."""
        return sum(int(fields[21]) * os.sysconf("SC_PAGE_SIZE") for fields in self._living())

    def _living(self) -> Iterator[list[str]]:
        """What the system says of each of its processes; one that has ended and that nobody has asked about is dead."""
        for status in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = status.read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[2]) == self.process.pid and fields[0] not in "ZX":
                yield fields

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

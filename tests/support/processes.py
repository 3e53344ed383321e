"""Start a program, wait until it answers, and be sure that it ends."""

import os
import random
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

# The death signal comes when the *thread* that started the program ends, so one lasting thread starts them all.
_starter = ThreadPoolExecutor(1, thread_name_prefix="starter")
_die_with_us = ["setpriv", "--pdeathsig", "KILL"] if shutil.which("setpriv") else []


class Program:
    """A running program that cannot outlive the test process."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as output:
            self._process = _starter.submit(
                subprocess.Popen,
                [*_die_with_us, *command],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            ).result()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def explain(self) -> str:
        return f"see {self.log}:\n" + "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


def run(*command: str, timeout: float = 60) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    if done.returncode:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


_given: set[int] = set()


def free_port() -> int:
    """A port that nobody listens at, and that no other test is given.

    It lies below those that systems draw for outgoing connections: one of these could take it before the program binds.
    Each worker of the tests draws from ports of its own.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        port = random.SystemRandom().randrange(15_000 + worker, 32_000, workers)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in _given:
                _given.add(port)
                return port


def wait_for(
    probe: Callable[[], T], *programs: Program, timeout: float = 60, swallow: tuple[type[Exception], ...] = (OSError,)
) -> T:
    """Call `probe` until it answers something true; a program that ended meanwhile is an error at once."""
    deadline = time.monotonic() + timeout
    while True:
        late = time.monotonic() > deadline
        try:
            if answer := probe():
                return answer
        except swallow:
            pass
        for program in programs:
            if not program.alive:
                raise RuntimeError(f"a program ended too soon, {program.explain()}")
        if late:
            raise TimeoutError("\n".join(program.explain() for program in programs))
        time.sleep(0.05)


def running(words: str) -> list[str]:
    """The command lines of the living processes, whoever started them, that hold ``words``."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if words in command:
            found.append(command)
    return found


def accepts(port: int) -> bool:
    with socket.create_connection(("127.0.0.1", port), timeout=5):
        return True


def answers(url: str) -> bool:
    """Does a GET succeed?"""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as refusal:
        refusal.close()
        return False

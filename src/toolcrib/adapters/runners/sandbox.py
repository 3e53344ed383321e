"""A process for code that nobody vouches for.

It gets a folder of its own, an almost empty environment, limits on memory, files and processes, and it is killed at
its deadline with everything it started. If the kernel lets us, it also gets its own process namespace, out of which
nothing escapes, and on request no network. It is not a virtual machine: without a user of its own it can read what the
service can read.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolcrib.calling.blocking import HOUSEKEEPING, in_thread
from toolcrib.core.errors import SettingsError

_HOST = Path(__file__).with_name("bundle_host.py")
_OUTPUT = "work/output.json"
_MEBIBYTE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    memory_bytes: int = 1024 * _MEBIBYTE
    """Address space of each process."""
    file_bytes: int = 64 * _MEBIBYTE
    """Of each file it writes, its output and its messages among them."""
    processes: int = 64
    open_files: int = 256
    output_bytes: int = 10 * _MEBIBYTE
    """Of the result."""
    network: bool = True
    """False needs the right to make a network namespace."""
    user: str = ""
    """Whom to run as, if the service is root: strongly advised then."""


@dataclass(frozen=True, slots=True)
class Ended:
    """How a process ended: ``output`` is what it left in its output file, None if there is none."""

    status: int
    output: bytes | None
    messages: str
    timed_out: bool = False
    too_large: bool = False


class Sandbox:
    """Runs ``bundle_host.py`` under the limits. Raises SettingsError if the machine does not allow them."""

    def __init__(self, limits: SandboxLimits | None = None, *, scratch: Path | None = None) -> None:
        self.limits = limits or SandboxLimits()
        self._scratch = scratch
        self._ids = _ids_of(self.limits.user)
        self._prefix = _namespaces(self.limits.network)

    @property
    def contains_escapees(self) -> bool:
        """Whether a kill also reaches processes that left their group: if it has a process namespace of its own."""
        return bool(self._prefix)

    async def run(
        self, kind: str, code: Path, call: Mapping[str, Any], *, seconds: float, environment: Mapping[str, str]
    ) -> Ended:
        """Run until it ends or ``seconds`` have passed; then it is dead, and its folder is gone."""
        if self._ids is not None:
            _check_reachable(code, self.limits.user, self._ids)
        folder = await in_thread(HOUSEKEEPING, self._prepared, call)
        try:
            command = [*self._prefix, sys.executable, "-I", "-B", "-X", "utf8", str(_HOST), kind, str(code)]
            process = await self._started(command, folder, environment)
            timed_out = await _ended(process, seconds)
            content, too_large = _read_output(folder / _OUTPUT, self.limits.output_bytes)
            return Ended(process.returncode or 0, content, _tail(folder / "messages"), timed_out, too_large)
        finally:
            await in_thread(HOUSEKEEPING, shutil.rmtree, folder, ignore_errors=True)

    def _prepared(self, call: Mapping[str, Any]) -> Path:
        """A folder with the question for the process, and a folder in it where the process may write."""
        folder = Path(tempfile.mkdtemp(prefix="toolcrib-run-", dir=self._scratch))
        work = folder / "work"
        work.mkdir(mode=0o700)
        question = {"limits": asdict(self.limits), "ids": self._ids, "call": call, "output": str(folder / _OUTPUT)}
        with os.fdopen(os.open(folder / "question", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            json.dump(question, file)
        if self._ids is not None:
            folder.chmod(0o711)
            os.chown(work, *self._ids)
        return folder

    async def _started(
        self, command: Sequence[str], folder: Path, environment: Mapping[str, str]
    ) -> asyncio.subprocess.Process:
        work = folder / "work"
        # Files instead of pipes: the limit on files bounds them, and nobody has to read along.
        with (folder / "question").open("rb") as stdin, (folder / "messages").open("wb") as messages:
            return await asyncio.create_subprocess_exec(
                *command,
                stdin=stdin,
                stdout=messages,
                stderr=messages,
                cwd=work,
                env=_environment(work) | dict(environment),
                start_new_session=True,
            )


async def _ended(process: asyncio.subprocess.Process, seconds: float) -> bool:
    """Wait for it, or kill it: dead, with everything it started, when this returns. True past the deadline."""
    try:
        async with asyncio.timeout(seconds):
            await process.wait()
        return False
    except TimeoutError:
        return True
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await asyncio.shield(process.wait())


def _check_reachable(code: Path, user: str, ids: tuple[int, int]) -> None:
    """Raises SettingsError if a folder on the way to the code is closed to the user who is to run it."""
    for folder in code.parents:
        found = folder.stat()
        if not found.st_mode & 0o001 and found.st_uid != ids[0] and found.st_gid != ids[1]:
            raise SettingsError(
                f"bundles run as {user!r}, who cannot enter {str(folder)!r}; "
                "open that folder to others (chmod o+x) or keep the data elsewhere"
            )


def _environment(work: Path) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(work), "TMPDIR": str(work), "LANG": "C.UTF-8"}


def _read_output(path: Path, limit: int) -> tuple[bytes | None, bool]:
    """What is in the file, and whether it is too large. Not through a link, and not from a pipe."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None, False
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
        os.close(handle)
        return None, stat.S_ISREG(found.st_mode)
    with os.fdopen(handle, "rb") as file:
        return file.read(limit), False


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 2000))
        return file.read(2000).decode(errors="replace").strip()


def _ids_of(user: str) -> tuple[int, int] | None:
    if not user:
        return None
    import pwd

    try:
        found = pwd.getpwnam(user)
    except KeyError:
        raise SettingsError(f"there is no user {user!r} to run bundles as") from None
    if os.getuid() != 0:
        raise SettingsError(f"only root can run bundles as another user such as {user!r}")
    return found.pw_uid, found.pw_gid


@functools.cache
def _namespaces(network: bool) -> tuple[str, ...]:
    """The command that puts a process into namespaces of its own, empty if that is not allowed here."""
    who = () if os.getuid() == 0 else ("--user", "--map-current-user")
    prefix = ("unshare", *who, "--pid", "--fork", "--kill-child=KILL", *(() if network else ("--net",)), "--")
    if shutil.which(prefix[0]) and not subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        return prefix
    if not network:
        raise SettingsError(
            "cannot disable the network for bundles: 'unshare --net' is not permitted; set TOOLCRIB_BUNDLE_NETWORK=true"
        )
    return ()

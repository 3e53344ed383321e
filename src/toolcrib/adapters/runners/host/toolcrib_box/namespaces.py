"""The namespaces, and who a run is: a user of its own, outside and inside."""

import os
import secrets
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolcrib_box import kernel

INSIDE = 1000
"""The user and group id of the tool, as it sees itself."""
_FIRST, _MANY = 0x60000000, 0x0FFFFFFF
_FLAGS = {
    "mount": kernel.NEWNS,
    "process": kernel.NEWPID,
    "network": kernel.NEWNET,
    "ipc": kernel.NEWIPC | kernel.NEWUTS,
}


class WallError(Exception):
    """A wall that could not be built."""

    def __init__(self, wall: str, error: OSError) -> None:
        super().__init__(wall, error)
        self.wall = wall
        self.reason = f"{error.strerror or error} (errno {error.errno})"


@contextmanager
def building(wall: str) -> Iterator[None]:
    """What the kernel refuses in here is told as the wall's."""
    try:
        yield
    except OSError as error:
        raise WallError(wall, error) from None


def enter_namespaces(walls: list[str]) -> None:
    """Those of ``walls`` that are namespaces. The first child after this is the first process in them."""
    if "user" in walls:
        with building("user"):
            _enter_user_namespace()
    for wall, flags in _FLAGS.items():
        if wall in walls:
            with building(wall):
                kernel.unshare(flags)


def run_id() -> int:
    """A user id of a run's own, as likely as not never used before, out of those that there are here."""
    ranges = [tuple(map(int, line.split())) for line in Path("/proc/self/uid_map").read_text("ascii").splitlines()]
    start, _, count = max(ranges, key=lambda one: one[2])
    if start <= _FIRST and start + count > _FIRST + _MANY:
        return _FIRST + secrets.randbelow(_MANY)
    return start + count // 2 + secrets.randbelow(max(1, count // 2))


def _enter_user_namespace() -> None:
    uid, gid = os.getuid(), os.getgid()
    if uid != 0:
        kernel.unshare(kernel.NEWUSER)
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{INSIDE} {uid} 1")
        _write("/proc/self/gid_map", f"{INSIDE} {gid} 1")
        return
    # Root stays itself inside, so that it finds the folders to show; the tool becomes somebody whom nobody else is.
    other = run_id()
    with _mapped_by_helper(os.getpid(), f"0 0 1\n{INSIDE} {other} 1\n"):
        kernel.unshare(kernel.NEWUSER)


@contextmanager
def _mapped_by_helper(process: int, lines: str) -> Iterator[None]:
    """Only who is outside may write a map of several lines: a child that was born before."""
    ours, theirs = socket.socketpair()
    helper = os.fork()
    if helper == 0:
        ours.close()
        code = 1
        try:
            if theirs.recv(1):
                for name in ("uid_map", "gid_map"):
                    _write(f"/proc/{process}/{name}", lines)
                code = 0
        except OSError as error:
            code = error.errno or 1
        finally:
            os._exit(code)
    theirs.close()
    with ours:
        yield
        ours.sendall(b"!")
    code = os.waitstatus_to_exitcode(os.waitpid(helper, 0)[1])
    if code:
        raise OSError(code, os.strerror(code))


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:  # one write, and no seek
        file.write(text)

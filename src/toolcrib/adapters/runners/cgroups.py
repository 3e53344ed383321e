"""Control groups: where a part of their tree is delegated to the service, each box has a group of its own there.

Only version 2 has what is needed. Delegated is the group above the service's own, if whoever manages the tree has
marked it so, if we may write in it, and if no process is in it: the kernel divides memory only among the groups below
such a one. With systemd that is ``Delegate=`` and ``DelegateSubgroup=``. Nothing is moved but the boxes.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from toolcrib.adapters.runners.walls import WallDownError

_WALL = "cgroup"
_PREFIX = "toolcrib-run-"
_MARKS = ("user.delegate", "trusted.delegate")
_CONTROLLERS = ("memory", "pids")
_DYING_SECONDS = 1.0
_WAY = "with Delegate=memory pids and DelegateSubgroup=service in its unit, systemd does that"


class Group:
    """A group for one box. Whoever sweeps leaves it alone until ``end``, or until this process is gone."""

    def __init__(self, memory: int, processes: int) -> None:
        """With as much memory, and as many processes, as the kernel can keep an eye on here."""
        self._memory = memory
        with _building():
            above = delegated()
            _hand_down(above)
            with _locked(above, fcntl.LOCK_SH):
                self._path = above / f"{_PREFIX}{uuid.uuid4().hex}"
                self._path.mkdir()
                self._alive = contextlib.ExitStack()
                self._alive.enter_context(_locked(self._path, fcntl.LOCK_SH))
            limits = {"memory.max": memory, "memory.swap.max": 0, "memory.oom.group": 1, "pids.max": processes}
            try:
                for name, value in limits.items():
                    if (self._path / name).exists():
                        _write(self._path / name, value)
            except BaseException:
                self.end()
                raise

    def take(self, process: int) -> None:
        """From now on the process is in it, and so is what it starts."""
        with _building():
            _write(self._path / "cgroup.procs", process)

    @property
    def exceeded(self) -> int:
        """How many bytes of memory are too many, if the kernel has ended it for that; else 0."""
        with contextlib.suppress(OSError):
            counted = (self._path / "memory.events").read_text("ascii").splitlines()
            return 0 if "oom 0" in counted else self._memory
        return 0

    def end(self) -> None:
        """Kill everything in it, and remove it."""
        with self._alive, contextlib.suppress(OSError):
            _end(self._path)


def sweep() -> int:
    """End and remove the groups that nobody can end any more; how many there were."""
    swept = 0
    with contextlib.suppress(WallDownError, OSError):
        above = delegated()
        with _locked(above, fcntl.LOCK_EX):
            for path in above.glob(f"{_PREFIX}*"):
                with contextlib.suppress(OSError), _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB):
                    _end(path)
                    swept += 1
    return swept


def delegated() -> Path:
    """The group below which the service may make others. WallDownError if there is none."""
    own, top = own_group()
    if own == top or not _is_marked(own.parent):
        if _is_marked(own):
            raise WallDownError(_WALL, f"the service runs in the delegated group itself, not in one below; {_WAY}")
        raise WallDownError(_WALL, f"no group is delegated to the service; {_WAY}")
    if not (own / "cgroup.kill").exists():
        raise WallDownError(_WALL, "it needs Linux 5.14")
    if (own.parent / "cgroup.procs").read_text("ascii"):
        raise WallDownError(_WALL, f"there are processes in the delegated group {str(own.parent)!r} itself")
    return own.parent


def own_group() -> tuple[Path, Path]:
    """The folders of the service's own group, and of the uppermost one that can be seen."""
    with contextlib.suppress(OSError):
        lines = Path("/proc/self/cgroup").read_text("utf-8").splitlines()
        own = next((line[3:] for line in lines if line.startswith("0::")), "")
        for line in Path("/proc/self/mountinfo").read_text("utf-8").splitlines():
            mount, _, kind = line.partition(" - ")
            root, place = mount.split()[3:5]
            if kind.startswith("cgroup2 ") and Path(own).is_relative_to(root):
                return Path(place, Path(own).relative_to(root)), Path(place)
    raise WallDownError(_WALL, "there is no cgroup2 here")


def _is_marked(group: Path) -> bool:
    for name in _MARKS:
        with contextlib.suppress(OSError):
            if os.getxattr(group, name) == b"1":
                return True
    return False


def _hand_down(group: Path) -> None:
    """Have the groups below it limited in what it is limited in itself."""
    has = (group / "cgroup.controllers").read_text("ascii").split()
    gives = (group / "cgroup.subtree_control").read_text("ascii").split()
    if lacking := [f"+{name}" for name in _CONTROLLERS if name in has and name not in gives]:
        _write(group / "cgroup.subtree_control", " ".join(lacking))


def _end(group: Path) -> None:
    """Dead and removed when this returns; OSError if something in it does not die."""
    _write(group / "cgroup.kill", 1)
    deadline = time.monotonic() + _DYING_SECONDS
    with (group / "cgroup.events").open(encoding="ascii") as events:
        changed = select.poll()
        changed.register(events, select.POLLPRI)
        while "populated 1" in events.read() and (left := deadline - time.monotonic()) > 0:
            changed.poll(left * 1000)
            events.seek(0)
    group.rmdir()


@contextlib.contextmanager
def _locked(group: Path, how: int) -> Iterator[None]:
    handle = os.open(group, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


@contextlib.contextmanager
def _building() -> Iterator[None]:
    """What the kernel refuses in here is told as the wall's."""
    try:
        yield
    except OSError as error:
        raise WallDownError(_WALL, f"{error.strerror} (errno {error.errno})") from None


def _write(path: Path, value: object) -> None:
    with path.open("w", encoding="ascii") as file:
        file.write(str(value))

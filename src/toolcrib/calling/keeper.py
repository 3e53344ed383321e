"""The program around a process that must not outlive its deadline, nor leave anything behind. It stands alone.

    keeper.py LIFE PROGRAM WORD...    runs the Python file PROGRAM in a child, in a session of its own

LIFE is a descriptor whose other end only the caller holds. When the caller writes to it or closes it, or is gone
itself, the child and everything that it started are killed, also what left its group and its session: orphans come back
to the keeper, which reaps them. The same happens when the child ends by itself, and on SIGTERM. The keeper ends last,
with the child's status (128 + n for signal n), so to wait for the keeper is to know that nothing runs any more.

Only Linux brings orphans back, and kills the child of a keeper that was killed. Elsewhere a process that left its group
escapes.
"""

import contextlib
import ctypes
import os
import runpy
import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36


def main(life: int, program: str, words: list[str]) -> None:
    keeper = os.getpid()
    _control(_PR_SET_CHILD_SUBREAPER, 1)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        for descriptor in (life, wake, waker):
            os.close(descriptor)
        _control(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != keeper:
            os._exit(128 + signal.SIGKILL)
        os.setsid()
        sys.argv = [program, *words]
        runpy.run_path(program, run_name="__main__")
        sys.exit()
    status = _watched(child, life, wake)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    end_descendants()
    os._exit(status)


def _control(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _watched(child: int, life: int, wake: int) -> int:
    """The status of the child when it has ended, or 137 as soon as the caller has had enough."""
    heard = select.poll()  # select knows only the first 1,024 files, and LIFE has the number that it has at the caller
    heard.register(life, select.POLLIN)
    heard.register(wake, select.POLLIN)
    while True:
        if life in {handle for handle, _ in heard.poll()}:
            return 128 + signal.SIGKILL
        if signal.SIGTERM in os.read(wake, 512):
            return 128 + signal.SIGKILL
        for process, status in _ended():
            if process == child:
                code = os.waitstatus_to_exitcode(status)
                return code if code >= 0 else 128 - code


def end_descendants() -> None:
    """Kill everything below this process, in as many rounds as it takes: what is killed hands its children to us."""
    with contextlib.suppress(ChildProcessError):
        while True:
            for process in descendants(os.getpid()):
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            os.waitpid(-1, 0)
            for _ in _ended():
                pass


def descendants(root: int) -> list[int]:
    """The processes below ``root``, as the system knows them now."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            parent = int(entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found, todo = [], [root]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return found


def _ended() -> Iterator[tuple[int, int]]:
    """Every process that has ended and is ours to reap; ChildProcessError if there is none left at all."""
    while True:
        process, status = os.waitpid(-1, os.WNOHANG)
        if not process:
            return
        yield process, status


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])

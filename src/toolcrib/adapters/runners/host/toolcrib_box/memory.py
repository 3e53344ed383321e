"""How much of the machine's memory everything in here uses: the processes of this namespace, and their scratch."""

import contextlib
import os
import re
import time
from collections.abc import Iterable, Iterator

_OFTEN = 0.1
"""How long after a look the next one comes, in seconds; longer after one that took longer."""
_AGAIN = 0.01
"""How soon it is looked again if it seems to be too much: who is starting a program counts twice for a moment."""
_LINE = rb"(?m)^(\w+):\s+(\d+) kB$"
_HELD = ("status", "RssAnon", "VmSwap", "RssShmem")
_PART = ("smaps_rollup", "Pss_Anon", "SwapPss", "Pss_Shmem")


class Meter:
    """Finds out whether more than ``limit`` bytes are in use; ``scratch`` is its folder, if that is in memory."""

    def __init__(self, limit: int, scratch: int | None) -> None:
        self._limit = limit
        self._scratch = scratch
        self._next = time.monotonic() + _OFTEN
        self.found_over = False

    @property
    def pause(self) -> float:
        """Seconds until the next look."""
        return max(0.0, self._next - time.monotonic())

    def is_over(self) -> bool:
        begun = time.monotonic()
        if begun >= self._next:
            self.found_over = self._seems_over()
            if self.found_over:
                time.sleep(_AGAIN)
                self.found_over = self._seems_over()
            ended = time.monotonic()
            self._next = ended + max(_OFTEN, ended - begun)
        return self.found_over

    def _seems_over(self) -> bool:
        return in_use(others(), self._limit, self._scratch) > self._limit


def others() -> set[int]:
    """The processes of this namespace but the first one; none if it has none of its own, or no /proc to see them in."""
    try:
        if os.readlink("/proc/self") != "1":
            return set()
        return {int(name) for name in os.listdir("/proc") if name.isdigit()} - {1}
    except OSError:
        return set()


def in_use(processes: Iterable[int], limit: int, scratch: int | None = None) -> int:
    """Bytes in use, each page of them counted once; more, if even so it is within the limit.

    What a process holds is read at once, whatever the process does, but counts pages several times that several
    processes hold, as after a fork. Only if that is too much it is worth it to ask for each one's part of them. What
    the kernel can read again from a disk is no use, and what only a handle leads to is not seen.
    """
    files = 0
    if scratch is not None:
        found = os.fstatvfs(scratch)
        files = (found.f_blocks - found.f_bfree) * found.f_frsize
    held = {process: _told(process, *_HELD) for process in processes}
    if (most := _summed(held.values(), files)) <= limit:
        return most
    return _summed((_told(process, *_PART) or held[process] for process in held), files)


def _summed(told: Iterable[tuple[int, int] | None], files: int) -> int:
    """The pages of files in the scratch are shared ones too, as soon as a process maps them: they count once."""
    known = [one for one in told if one]
    return sum(own for own, _ in known) + max(files, sum(shared for _, shared in known))


def _told(process: int, name: str, own: str, swapped: str, shared: str) -> tuple[int, int] | None:
    """Bytes of its own, and shared ones, by a file of the kernel; None if nobody may read it, or nothing is held."""
    for place in _places(process):
        with contextlib.suppress(OSError), open(f"{place}/{name}", "rb") as file:
            lines = {key.decode(): 1024 * int(size) for key, size in re.findall(_LINE, file.read())}
            if own in lines:
                return lines[own] + lines.get(swapped, 0), lines.get(shared, 0)
    return None


def _places(process: int) -> Iterator[str]:
    """Where to read about it: who let its first thread end is told of with the others alone."""
    yield f"/proc/{process}"
    with contextlib.suppress(OSError):
        for thread in os.listdir(f"/proc/{process}/task"):
            yield f"/proc/{process}/task/{thread}"

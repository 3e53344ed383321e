"""Which processes are ours: everything that descends from this one."""

from __future__ import annotations

import os
from collections.abc import Container
from contextlib import suppress
from pathlib import Path

from tests.support.waiting import until


def descendants(root: int | None = None, *, beyond: Container[int] = ()) -> dict[int, str]:
    """Process ids and commands of the living descendants, from /proc, but for those ``beyond`` which and their own.

    A browser that runs already may start and end processes at any time: they are not the test's.
    """
    parents: dict[int, int] = {}
    commands: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            head, _, rest = (entry / "stat").read_text().rpartition(")")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        state, parent = rest.split()[:2]
        if state != "Z":
            parents[int(entry.name)] = int(parent)
            commands[int(entry.name)] = command or head
    found: dict[int, str] = {}
    todo = [root or os.getpid()]
    while todo:
        pid = todo.pop()
        for child, its_parent in parents.items():
            if its_parent == pid and child not in beyond:
                found[child] = commands[child]
                todo.append(child)
    return found


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


async def none_left(before: dict[int, str]) -> dict[int, str]:
    """What is still there beyond ``before`` after it had all the time it needs to go."""
    with suppress(AssertionError):  # a process by its name says more
        await until(lambda: not descendants(beyond=before))
    return descendants(beyond=before)

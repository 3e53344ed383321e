"""Where a control group is delegated to the service, each bundle is in one of its own, is limited and ends with it."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.support.bundles import FOREVER
from tests.support.processes import running
from tests.support.waiting import wait_until

from toolcrib.adapters.runners.cgroups import own_group
from toolcrib.adapters.runners.walls import WallDownError

ENTER = (
    "import json, sys\nfrom pathlib import Path\n"
    "delegated = Path(sys.argv[1])\n(delegated / 'service/cgroup.procs').write_text('0')\n"
)
"""How a program becomes the service that the group is delegated to."""
CALL = """
import asyncio, time
from tests.support.bundles import Bench
from tests.support.waiting import until
from toolcrib.adapters.runners.sandbox import SandboxLimits
from toolcrib.core.errors import SettingsError

def boxes():
    return [(box / "cgroup.procs").read_text().split() for box in delegated.glob("toolcrib-run-*")]

async def main(folder, body, many, limits, options):
    bench = Bench(Path(folder), SandboxLimits(**limits), **options)
    try:
        walls = await asyncio.to_thread(bench.sandbox.walls)
    except SettingsError as error:
        return {"skip": error.message}
    call = asyncio.create_task(bench.python(body).execute({}))
    await until(lambda: call.done() or any(len(processes) >= many for processes in boxes()))
    there, error = len(boxes()), str(call.exception()) if call.done() else ""
    call.cancel()
    await asyncio.wait([call])
    bench.runner.close()
    return {"missing": dict(walls.missing), "error": error, "there": there, "left": len(boxes())}

print(json.dumps(asyncio.run(main(*json.loads(sys.argv[2])))))
"""
"""Calls a bundle, waits until there are so many processes in its group, or it has failed, and ends it."""
HOLD = """
from toolcrib.adapters.runners.cgroups import Group
import subprocess
group = Group(int(sys.argv[2]), int(sys.argv[3]))
held = subprocess.Popen(["sh", "-c", sys.argv[4], sys.argv[5]], stdin=subprocess.PIPE)
group.take(held.pid)
"""
"""A process in a group of its own, which begins when its standard input is closed."""
SWEEP = "from toolcrib.adapters.runners import cgroups\nprint(cgroups.sweep())"
TOLD = (
    "from toolcrib.adapters.runners.cgroups import Group\nfrom toolcrib.adapters.runners.walls import WallDownError\n"
    "try:\n    Group(1, 1)\nexcept WallDownError as error:\n    print(json.dumps(error.message))\n"
)
DAY = "exec sleep 86400"


class Delegated:
    """A group in which no process is, and one below it, ``service``, for whom it is delegated to."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._started = ExitStack()

    def make(self) -> None:
        (self.path / "service").mkdir(parents=True)
        os.setxattr(self.path, "user.delegate", b"1")
        self.run("print(1)")

    def start(self, program: str, *words: object) -> subprocess.Popen[str]:
        return self._started.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", ENTER + program, str(self.path), *map(str, words)],
                cwd=Path(__file__).parents[2],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )

    def run(self, program: str, *words: object) -> Any:
        """What the program says in the end, as JSON."""
        started = self.start(program, *words)
        said = started.communicate()[0]
        if started.returncode:
            raise OSError(f"a program in the group ended with {started.returncode}")
        return json.loads(said)

    def boxes(self) -> list[Path]:
        return list(self.path.glob("toolcrib-run-*"))

    def needs(self, controller: str) -> None:
        if controller not in (self.path / "cgroup.controllers").read_text().split():
            pytest.skip(f"the kernel does not limit {controller} by groups of version 2 here")

    def remove(self) -> None:
        if self.path.exists():
            (self.path / "cgroup.kill").write_text("1")
            self._started.close()
            wait_until(lambda: "populated 0" in (self.path / "cgroup.events").read_text())
            for group in (*self.path.glob("*/"), self.path):
                group.rmdir()


@pytest.fixture
def delegated() -> Iterator[Delegated]:
    """Made at the top of the tree, where controllers are handed down and root may; else below our own group."""
    try:
        places = dict.fromkeys(reversed(own_group()))
    except WallDownError as error:
        pytest.skip(error.reason)
    reason = ""
    for place in places:
        group = Delegated(place / f"toolcrib-test-{uuid.uuid4().hex}")
        try:
            group.make()
        except OSError as error:
            reason = error.strerror or str(error)
            group.remove()
            continue
        yield group
        group.remove()
        return
    pytest.skip(f"no control group can be made here: {reason}")


def called(delegated: Delegated, body: str, many: int, limits: dict[str, int], options: dict[str, Any]) -> Any:
    with tempfile.TemporaryDirectory(prefix="toolcrib-test-") as folder:
        Path(folder).chmod(0o755)
        said = delegated.run(CALL, json.dumps([folder, body, many, limits, options]))
    if "skip" in said:
        pytest.skip(said["skip"])
    assert "cgroup" not in said["missing"], said
    assert said["left"] == 0
    return said


WEAK = {"isolation": "weak", "build": ["cgroup"]}
in_both = pytest.mark.parametrize("options", [{}, WEAK], ids=["all walls", "no other wall"])


@in_both
def test_each_run_has_a_group_of_its_own(delegated: Delegated, options: dict[str, Any]) -> None:
    """With all its processes, those around it too; it is dead and the group gone when the call is over."""
    mark = uuid.uuid4().hex
    said = called(delegated, FOREVER.format(mark=mark) + "time.sleep(600)", 5 if options else 4, {}, options)
    assert (said["error"], said["there"]) == ("", 1)
    assert not running(mark)


@in_both
def test_the_kernel_ends_a_run_that_takes_too_much_memory(delegated: Delegated, options: dict[str, Any]) -> None:
    delegated.needs("memory")
    body = (
        "for _ in range(4):\n    if os.fork() == 0:\n        held = b'x' * (60 << 20)\n        time.sleep(600)\n"
        "time.sleep(600)"
    )
    said = called(delegated, body, 1000, {"total_memory_bytes": 150 << 20}, options)
    assert "its process used more than 157,286,400 bytes of memory in all" in said["error"]


def test_what_a_crash_left_is_removed_and_what_others_use_is_not(delegated: Delegated) -> None:
    crashed, lives = uuid.uuid4().hex, uuid.uuid4().hex
    hold = HOLD + "print(json.dumps(1), flush=True)\nsys.stdin.read()"
    services = [delegated.start(hold, 1 << 30, 10, f"{DAY} {mark}", mark) for mark in (crashed, lives)]
    for service in services:
        assert service.stdout is not None
        assert service.stdout.readline() == "1\n"
    services[0].send_signal(signal.SIGKILL)
    services[0].wait()
    assert len(delegated.boxes()) == 2
    assert delegated.run(SWEEP) == 1
    assert len(delegated.boxes()) == 1
    assert running(lives)
    assert not running(crashed)


def test_where_no_group_can_be_had_it_is_told_why(delegated: Delegated) -> None:
    process = delegated.start("sys.stdin.read()")
    wait_until((delegated.path / "service/cgroup.procs").read_text)
    (delegated.path / "cgroup.procs").write_text(str(process.pid))
    assert "there are processes in the delegated group" in delegated.run(TOLD)
    (delegated.path / "service/cgroup.procs").write_text(str(process.pid))
    (delegated.path / "cgroup.max.descendants").write_text("1")
    assert "the cgroup wall cannot be built: Resource temporarily unavailable" in delegated.run(TOLD)
    os.removexattr(delegated.path, "user.delegate")
    assert "no group is delegated to the service; with Delegate=memory pids" in delegated.run(TOLD)
    os.setxattr(delegated.path / "service", "user.delegate", b"1")
    assert "the service runs in the delegated group itself" in delegated.run(TOLD)
    assert delegated.boxes() == []


def test_the_kernel_counts_the_processes(delegated: Delegated) -> None:
    delegated.needs("pids")
    many = "read _; for n in 1 2 3 4 5 6 7 8 9; do sleep 600 & done; wait"
    end = "held.stdin.close()\nsaid = held.wait()\ngroup.end()\nprint(json.dumps(said))"
    assert delegated.run(HOLD + end, 1 << 30, 5, many, "x") != 0


def test_the_kernel_counts_the_memory(delegated: Delegated) -> None:
    delegated.needs("memory")
    fill = f"read _; exec {sys.executable} -c 'held = b\"x\" * (200 << 20); import time; time.sleep(600)'"
    end = "held.stdin.close()\nheld.wait()\nprint(json.dumps(group.exceeded))\ngroup.end()"
    assert delegated.run(HOLD + end, 100 << 20, 10, fill, "x") == 100 << 20

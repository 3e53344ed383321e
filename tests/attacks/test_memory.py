"""A bundle that wants all the memory there is: its processes get so much together, and where there is none it ends."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.bundles import Bench

import toolcrib
from toolcrib.adapters.runners.sandbox import SandboxLimits
from toolcrib.adapters.runners.walls import WALLS
from toolcrib.core.errors import ToolFailedError

HOST = Path(toolcrib.__file__).parent / "adapters/runners/host"
MEBIBYTE = 1024 * 1024
SMALL = SandboxLimits(total_memory_bytes=150 * MEBIBYTE)
TOO_MUCH = r"its process used more than 157,286,400 bytes of memory in all"
FORKS = (
    "for _ in range(4):\n    if os.fork() == 0:\n        held = b'x' * (60 << 20)\n        time.sleep(600)\n"
    "time.sleep(600)\n"
)
WAYS = {
    "several processes": FORKS,
    "shared memory": (
        "import mmap\n"
        "for _ in range(2):\n    if os.fork() == 0:\n"
        "        held = mmap.mmap(-1, 100 << 20)\n        held.write(b'x' * (100 << 20))\n        time.sleep(600)\n"
        "time.sleep(600)\n"
    ),
    "the scratch": (
        "for name in 'ab':\n    with open(name, 'wb') as file:\n        file.write(b'x' * (50 << 20))\n"
        "held = b'x' * (80 << 20)\ntime.sleep(600)\n"
    ),
    "a process whose first thread has ended": (
        "import ctypes, platform, threading\n"
        "def fill():\n    held = b'x' * (200 << 20)\n    time.sleep(600)\n"
        "threading.Thread(target=fill).start()\n"
        "ctypes.CDLL(None).syscall(60 if platform.machine() == 'x86_64' else 93, 0)\n"
    ),
    "a process that nobody may look into": (
        "import ctypes\nctypes.CDLL(None).prctl(4, 0)\nheld = b'x' * (200 << 20)\ntime.sleep(600)\n"
    ),
}


pytestmark = pytest.mark.usefixtures("namespaces")


@pytest.fixture
def small(make_bench: Callable[..., Bench]) -> Bench:
    """Whose bundles have little memory in all, far less than each of their processes may have."""
    return make_bench(SMALL)


@pytest.mark.parametrize("way", WAYS)
async def test_who_takes_too_much_in_all_is_ended_and_told_so(small: Bench, way: str) -> None:
    with pytest.raises(ToolFailedError, match=TOO_MUCH):
        await small.python(WAYS[way]).execute({})


async def test_a_program_is_told_so_too(small: Bench) -> None:
    with pytest.raises(ToolFailedError, match=TOO_MUCH):
        await small.program(f"#!{sys.executable}\nimport os, time\n{FORKS}").execute({})


async def test_a_kept_process_is_watched_in_its_next_call_too(small: Bench) -> None:
    tool = small.python(f"if not input_data:\n    sys.kept = 1\n    return sys.kept\nsys.kept += 1\n{FORKS}")
    assert await tool.execute({}) == 1
    with pytest.raises(ToolFailedError, match=TOO_MUCH):
        await tool.execute({"fill": True})


def test_what_processes_share_counts_once() -> None:
    """One with much in its memory, and three that it made: the kernel tells of each that it holds all of it."""
    program = (
        "import os, signal, sys\n"
        f"sys.path.insert(0, {str(HOST)!r})\n"
        "from toolcrib_box.memory import in_use\n"
        "held, processes = b'x' * (60 << 20), [os.getpid()]\n"
        "for _ in range(3):\n"
        "    child = os.fork()\n"
        "    if not child:\n        signal.pause()\n"
        "    processes.append(child)\n"
        "print(in_use(processes, 1 << 40), in_use(processes, 0))\n"
        "for child in processes[1:]:\n    os.kill(child, 9)\n"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    most, exact = map(int, said.split())
    assert 60 * MEBIBYTE < exact < 120 * MEBIBYTE < 240 * MEBIBYTE < most


@pytest.mark.parametrize("without", ["nothing", "landlock"])
async def test_where_memory_runs_out_a_bundle_dies_first(make_bench: Callable[..., Bench], without: str) -> None:
    """The kernel ends who has the largest number first, and no bundle can make its own smaller."""
    bench = make_bench(build=[wall for wall in WALLS if wall != without])
    body = (
        "said = []\n"
        "for process in (1, os.getpid()):\n"
        "    path = f'/proc/{process}/oom_score_adj'\n    said.append(open(path).read())\n"
        "    try:\n        open(path, 'w').write('0')\n"
        "    except OSError:\n        said.append('refused')\n"
        "return [*said, open('/proc/self/oom_score_adj').read()]"
    )
    assert await bench.python(body).execute({}) == ["1000\n", "refused", "1000\n", "refused", "1000\n"]

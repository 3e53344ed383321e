"""A bundle that would go on: it ends, with all that it has started, leaves nothing, and takes no more than its share.

So does one that runs where the walls cannot be built.
"""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.support.bundles import FOREVER, LIMITS, Bench, needs_wall
from tests.support.processes import running
from tests.support.waiting import PATIENCE, until, wait_until

from toolcrib import ToolContext
from toolcrib.adapters.runners import sandbox
from toolcrib.adapters.runners.box import Box
from toolcrib.adapters.runners.sandbox import SandboxLimits
from toolcrib.adapters.runners.scratch import Scratch, sweep
from toolcrib.adapters.runners.unpacking import Unpacked
from toolcrib.adapters.runners.walls import NEEDED
from toolcrib.core.errors import DeniedError, SettingsError, ToolFailedError

pytestmark = pytest.mark.usefixtures("namespaces")

NESTED = (
    "for _ in range(1200): os.mkdir('d'); os.chdir('d')\nopen('last', 'w').close()\nos.chmod('.', 0)\nreturn 'deep'"
)


async def test_a_daemon_ends_with_its_call(bench: Bench) -> None:
    mark = uuid.uuid4().hex
    body = (
        "if os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n        os.setsid()\n"
        f"        os.execv('/bin/sh', ['sh', '-c', 'while :; do sleep 0.02; done', {mark!r}])\n    os._exit(0)\n"
        f"begun = lambda pid: {mark!r} in open(f'/proc/{{pid}}/cmdline').read()\n"
        "while not any(begun(pid) for pid in os.listdir('/proc') if pid.isdigit()):\n    time.sleep(0.01)\n"
        "return 'gone'"
    )
    assert await bench.python(body).execute({}) == "gone"
    assert not running(mark)


async def test_a_service_that_stands_still_lets_nothing_run_beyond_its_deadline(bench: Bench) -> None:
    """The keeper inside has the deadline too: here nobody else looks at it."""
    mark = uuid.uuid4().hex
    folder = bench.cache_folder / "endless"
    folder.mkdir(parents=True)
    (folder / "function.py").write_text(
        "import time\nclass AgentSpaceV1Tool:\n    def __init__(self, i, d): ...\n    def execute(self, data):\n"
        + "".join(f"        {line}\n" for line in (FOREVER.format(mark=mark) + "time.sleep(600)").splitlines())
    )
    await asyncio.to_thread(bench.sandbox.walls)
    deadline = time.monotonic() + 3
    box = await bench.sandbox.started(Unpacked("python", folder), deadline)
    await box.tell(b'{"tool_id": "", "tool_data": {}, "command": "", "input": {}}', deadline)
    await until(lambda: running(mark) or box.is_dead)
    await until(lambda: not running(mark))
    await until(lambda: box.is_dead)
    assert time.monotonic() >= deadline
    await box.end()


def test_nothing_outlives_a_service_that_is_killed(bench: Bench, tmp_path: Path) -> None:
    mark = uuid.uuid4().hex
    program = (
        "import asyncio\nfrom pathlib import Path\nfrom tests.support.bundles import FOREVER, Bench\n"
        f"tool = Bench(Path({str(tmp_path)!r})).python(FOREVER.format(mark={mark!r}) + 'time.sleep(600)')\n"
        "asyncio.run(tool.execute({}))\n"
    )
    service = subprocess.Popen([sys.executable, "-c", program], cwd=Path(__file__).parents[2], start_new_session=True)
    try:
        wait_until(lambda: len(running(mark)) > 1 or service.poll() is not None)  # itself, and what the bundle started
    finally:
        service.send_signal(signal.SIGKILL)
        service.wait()
    wait_until(lambda: not running(mark))


async def test_the_scratch_has_a_quota(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(SandboxLimits(scratch_bytes=1024 * 1024, scratch_files=100))
    body = "for n in range(200):\n    open(str(n), 'wb').write(b'x' * 65536)"
    with pytest.raises(ToolFailedError, match="No space left"):
        await bench.python(body).execute({})
    with pytest.raises(ToolFailedError, match="No space left"):
        await bench.python("for n in range(200): os.mkdir(str(n))").execute({})


async def test_nested_folders_are_no_trouble(bench: Bench) -> None:
    assert await bench.python(NESTED).execute({}) == "deep"
    assert await bench.python("return os.listdir('.')").execute({}) == []


async def test_memory_of_an_output_is_bounded(bench: Bench) -> None:
    """A result that is announced as endless, one that is never finished, one that is no JSON."""
    for said in ("(2**60).to_bytes(8, 'big')", "(9).to_bytes(8, 'big') + b'[' * 9", "b''"):
        body = (
            "import socket\nfor fd in range(3, 20):\n"
            f"    try:\n        socket.socket(fileno=fd).sendall({said})\n    except OSError:\n        continue\n"
            "os._exit(0)"
        )
        with pytest.raises(ToolFailedError):
            await bench.python(body).execute({})


async def test_who_waits_for_a_turn_takes_none_of_the_tools_places(make_bench: Callable[..., Bench]) -> None:
    """One caller has one of four places, and one tool two: the caller's other calls wait, and nobody for them."""
    bench, mark = make_bench(max_running=4), uuid.uuid4().hex
    tool = bench.python(FOREVER.format(mark=mark) + "time.sleep(input_data['seconds'])")
    endless = [asyncio.create_task(tool.execute({"seconds": 600}, context=ToolContext("eve"))) for _ in range(4)]
    await until(lambda: running(mark))
    assert await tool.execute({"seconds": 0}, context=ToolContext("ada")) is None
    assert not any(run.done() for run in endless)
    for run in endless:
        run.cancel()
    await asyncio.wait(endless)


async def test_what_a_bundle_says_of_its_failure_is_bounded(bench: Bench) -> None:
    """Also if it writes the answer itself: it is told in errors, which nobody expects to be as large as a result."""
    body = (
        "import json, socket\nlong = 'x' * 20_000\n"
        "error = {'type': long, 'message': long, 'trace': long, 'missing': input_data['missing'] and long}\n"
        "said = json.dumps({'error': error}).encode()\nfor fd in range(3, 256):\n"
        "    try:\n        socket.socket(fileno=fd).sendall(len(said).to_bytes(8, 'big') + said)\n"
        "    except OSError:\n        continue\n"
        "os._exit(0)"
    )
    for missing in (False, True):
        with pytest.raises(ToolFailedError) as failed:
            await bench.python(body).execute({"missing": missing})
        assert 100 < len(str(failed.value)) + sum(map(len, failed.value.__notes__)) < 10_000


async def test_a_bundle_that_computes_stands_behind_the_service(bench: Bench) -> None:
    body = (
        "refused = []\n"
        "for act, words in ((os.nice, (-1,)), (os.sched_setscheduler, (0, os.SCHED_FIFO, os.sched_param(1)))):\n"
        "    try:\n        act(*words)\n    except PermissionError:\n        refused.append(act.__name__)\n"
        "return [os.nice(0), refused]"
    )
    behind = min(19, os.nice(0) + 10)
    assert await bench.python(body).execute({}) == [behind, ["nice", "sched_setscheduler"]]


def used(bench: Bench) -> list[str]:
    """The code that a box holds, as each does until it has ended and is buried."""
    return [path.name for path in bench.cache_folder.iterdir() if not bench.cache.forget(path.name)]


async def test_who_goes_away_twice_while_a_box_is_built_leaves_none(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, go_on, built = threading.Event(), threading.Event(), []

    def build(*words: Any, **options: Any) -> Box:
        asked.set()
        assert go_on.wait(PATIENCE)
        built.append(Box(*words, **options))  # it is held, so that only who ends it gives back what it holds
        return built[0]

    await asyncio.to_thread(bench.sandbox.walls)
    monkeypatch.setattr(sandbox, "Box", build)
    call = asyncio.create_task(bench.python("return 1").execute({}))
    await until(asked.is_set)
    for _ in range(2):
        call.cancel()
        await asyncio.sleep(0)
    await asyncio.wait([call])
    go_on.set()
    await until(lambda: built and not used(bench))


async def test_a_box_whose_way_out_cannot_be_opened_ends(make_bench: Callable[..., Bench]) -> None:
    class Closed:
        async def start(self, listening: socket.socket) -> None:
            listening.close()
            raise OSError("too many open files")

        async def close(self) -> None: ...

    bench = make_bench(proxies=lambda _: Closed())
    with pytest.raises(OSError, match="too many open files") as failed:
        await bench.python("return 1", metadata={"network": True}).execute({})
    assert failed.value.__traceback__
    assert used(bench) == []


# Where walls are missing


async def test_too_few_walls_are_a_refusal_that_says_so(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(build=[wall for wall in NEEDED if wall != "network"])
    with pytest.raises(DeniedError, match=r"the network wall cannot be built: not asked for.*BUNDLE_ISOLATION=weak"):
        await bench.python("return 1").execute({})
    assert bench.sandbox.told()[0] is False


KERNEL = ["landlock", "seccomp"]


@pytest.fixture(params=[[], KERNEL], ids=["no walls", "walls in the kernel alone"])
def weak_bench(request: pytest.FixtureRequest, make_bench: Callable[..., Bench]) -> Iterator[Bench]:
    """Without any namespace. Root runs bundles as somebody else, who may have no access to our interpreter.

    For anybody else the kernel counts all processes of that user, those of the tests beside this one too.
    """
    with tempfile.TemporaryDirectory(prefix="toolcrib-test-") as folder:
        Path(folder).chmod(0o755)
        bench = make_bench(replace(LIMITS, processes=1000), isolation="weak", build=request.param, scratch=Path(folder))
        try:
            bench.sandbox.walls()
        except SettingsError as error:
            pytest.skip(str(error))
        yield bench
        bench.runner.close()
        assert list(Path(folder).iterdir()) == []


async def test_a_weak_run_is_still_a_run(weak_bench: Bench) -> None:
    assert await weak_bench.python("return [input_data, os.listdir('.')]").execute({"a": 1}) == [{"a": 1}, []]
    assert await weak_bench.program('#!/bin/sh\nprintf 1 > "$2"\n').execute({}) == 1
    assert "these walls alone" in weak_bench.sandbox.told()[1]


@pytest.mark.parametrize("weak_bench", [KERNEL], indirect=True)
async def test_landlock_holds_where_there_are_no_namespaces(weak_bench: Bench, tmp_path: Path) -> None:
    await needs_wall(weak_bench, "landlock")
    (tmp_path / "tokens.db").write_text("secret")
    body = (
        "import socket\nsaid = []\n"
        "def told(act, *words):\n"
        "    try:\n        act(*words)\n        said.append('done')\n"
        "    except OSError as error:\n        said.append(type(error).__name__)\n"
        "for path in (input_data['path'], '/etc/passwd', f'/proc/{os.getppid()}/environ'):\n    told(open, path)\n"
        "told(open, '/tmp/written', 'w')\n"
        "told(socket.create_connection, ('127.0.0.1', input_data['port']), 5)\n"
        "told(os.kill, input_data['pid'], 0)\n"
        "return said"
    )
    with socket.create_server(("127.0.0.1", 0)) as server:
        question = {"path": str(tmp_path / "tokens.db"), "port": server.getsockname()[1], "pid": os.getpid()}
        assert await weak_bench.python(body).execute(question) == ["PermissionError"] * 6


async def test_a_weak_run_ends_with_what_it_started(weak_bench: Bench) -> None:
    mark = uuid.uuid4().hex
    assert await weak_bench.python(FOREVER.format(mark=mark) + "return 1").execute({}) == 1
    assert not running(mark)


async def test_a_weak_run_leaves_no_folder_however_deep(weak_bench: Bench) -> None:
    assert await weak_bench.python(NESTED).execute({}) == "deep"


def test_what_a_crash_left_is_swept(tmp_path: Path) -> None:
    left, used = tmp_path / "toolcrib-run-left", Scratch(tmp_path)
    (left / "work").mkdir(parents=True)
    (left / "work/link").symlink_to(tmp_path)
    (left / "work").chmod(0)
    (tmp_path / "toolcrib-run-link").symlink_to(tmp_path)
    assert sweep(tmp_path) == 1
    assert used.work.is_dir()
    assert not left.exists()
    used.remove()

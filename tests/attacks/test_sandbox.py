"""A bundle that wants out: whatever it tries, it finds the system, its own code, an empty folder, and nobody."""

import asyncio
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.support.bundles import FOREVER, Bench
from tests.support.processes import running
from tests.support.waiting import until, wait_until

import toolcrib
from toolcrib.adapters.runners.sandbox import Sandbox, SandboxLimits
from toolcrib.adapters.runners.scratch import Scratch, remove_tree, sweep
from toolcrib.adapters.runners.unpacking import Unpacked
from toolcrib.adapters.runners.walls import NEEDED
from toolcrib.bootstrap.sandboxes import open_proxies
from toolcrib.core.errors import DeniedError, SettingsError, ToolFailedError, ToolValidationError
from toolcrib.settings import load_settings

HOST = Path(toolcrib.__file__).parent / "adapters/runners/host"
NESTED = (
    "for _ in range(1200): os.mkdir('d'); os.chdir('d')\nopen('last', 'w').close()\nos.chmod('.', 0)\nreturn 'deep'"
)


async def _needs(bench: Bench, wall: str) -> None:
    walls = await asyncio.to_thread(bench.sandbox.walls)
    if wall not in walls.standing:
        pytest.skip(f"{wall}: {walls.missing[wall]}")


@pytest.fixture(autouse=True, scope="module")
def _namespaces() -> None:
    walls = Sandbox().walls()
    if walls.lacking:
        pytest.skip(f"the walls cannot be built here: {walls}")


async def test_nothing_of_the_service_is_to_be_found(bench: Bench, tmp_path: Path) -> None:
    """Neither its data, nor another tool's code, nor what belongs to anybody on this machine."""
    for name in ("tokens.db", "audit.db", "keys/seal"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("secret")
    other = bench.python("return 'honest'", description="Another.")
    assert await other.execute({}) == "honest"
    body = (
        "found = [os.path.join(folder, name) for folder, _, names in os.walk('/') for name in names\n"
        "         if folder.split('/')[1] not in ('usr', 'proc')]\n"
        "return [path for path in found if path.endswith(('.db', 'seal', '/function.py', 'shadow', 'history'))]"
    )
    seen = [path for path in await bench.python(body).execute({}) if "/site-packages/" not in path]
    assert seen == ["/run/bundle/code/function.py"]
    for path in (tmp_path, bench.cache_folder, Path.home()):
        assert await bench.python("return os.path.exists(input_data['path'])").execute({"path": str(path)}) is False
    assert await other.execute({}) == "honest"


async def test_data_in_a_folder_that_every_bundle_sees_is_covered(bench: Bench, tmp_path: Path) -> None:
    folder = Path(sys.prefix, "lib", f"data-{uuid.uuid4().hex}")
    try:
        folder.mkdir()
    except PermissionError:
        pytest.skip("not our interpreter's folder")
    try:
        (folder / "tokens.db").write_text("secret")
        sandbox = Sandbox(hidden=[folder / "tokens.db", folder.with_name("no-such"), folder])
        bench.runner.sandbox = sandbox
        body = "folder = input_data['folder']\nreturn os.path.isdir(folder) and os.listdir(folder)"
        assert await bench.python(body).execute({"folder": str(folder)}) == []
    finally:
        remove_tree(folder)


async def test_no_process_but_its_own_is_there(bench: Bench) -> None:
    body = (
        "pids = sorted(int(name) for name in os.listdir('/proc') if name.isdigit())\n"
        "def tried(act, *words):\n"
        "    try:\n        return act(*words)\n    except OSError as error:\n        return type(error).__name__\n"
        "reads = [tried(lambda: open(f'/proc/{pid}/environ').read()) for pid in pids]\n"
        "killed = [tried(os.kill, pid, 9) for pid in range(3, 40000)]\n"
        "every = tried(os.kill, -1, 9)\n"
        "fds = tried(os.listdir, '/proc/1/fd')\n"
        "return [pids, reads, sorted(set(map(str, killed))), os.getppid(), fds]"
    )
    pids, environments, killed, parent, handles = await bench.python(body).execute({})
    assert (pids, killed, parent) == ([1, 2], ["ProcessLookupError"], 1)
    assert environments[0] == handles == "PermissionError"
    assert "TOOLCRIB" not in environments[1]


@pytest.fixture
def loopback() -> Iterator[tuple[int, str]]:
    """The port of a server on loopback, and a socket in the abstract namespace."""
    name = f"\0toolcrib-{uuid.uuid4().hex}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(name)
        abstract.listen()
        yield server.getsockname()[1], name[1:]


async def test_no_server_of_this_machine_is_reached(bench: Bench, loopback: tuple[int, str]) -> None:
    port, name = loopback
    body = (
        "import socket\nrefused = []\n"
        "for family, address in ((socket.AF_INET, ('127.0.0.1', input_data['port'])),\n"
        "                        (socket.AF_INET6, ('::1', input_data['port'])),\n"
        "                        (socket.AF_INET, ('169.254.169.254', 80)),\n"
        "                        (socket.AF_UNIX, '\\0' + input_data['name'])):\n"
        "    try:\n        socket.socket(family).connect(address)\n"
        "    except OSError as error:\n        refused.append(error.errno)\n"
        "return refused"
    )
    refused = await bench.python(body).execute({"port": port, "name": name})
    assert len(refused) == 4


async def test_one_run_cannot_write_what_another_answers(bench: Bench) -> None:
    """Both at once, of one caller; one of them waits with its answer until the other has tried."""
    victim = bench.program('#!/bin/sh\nsleep 1\nprintf \'"honest"\' > "$2"\n')
    thief = bench.python(
        "made = []\nend = time.monotonic() + 1.5\n"
        "while time.monotonic() < end:\n"
        "    for folder, folders, names in os.walk('/'):\n"
        "        folders[:] = [name for name in folders if name not in ('usr', 'lib', 'proc')]\n"
        "        made += [os.path.join(folder, name) for name in names if name in ('output.json', 'question')]\n"
        "    time.sleep(0.05)\n"
        "return made",
        name="thief",
    )
    honest, made = await asyncio.gather(victim.execute({}), thief.execute({}))
    assert (honest, made) == ("honest", [])


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


async def test_calls_that_no_tool_needs_are_not_there(bench: Bench) -> None:
    await _needs(bench, "seccomp")
    body = (
        "import ctypes, errno, fcntl, socket\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def told(name, *words):\n"
        "    ctypes.set_errno(0)\n    getattr(libc, name)(*words)\n    return errno.errorcode.get(ctypes.get_errno())\n"
        "said = {name: told(name, *words) for name, words in {\n"
        "    'unshare': (0x10000000,), 'setns': (0, 0), 'ptrace': (0, 0, 0, 0),\n"
        "    'mount': (b'x', b'/', b'tmpfs', 0, None),\n"
        "    'chroot': (b'/',), 'umount2': (b'/proc', 2), 'process_vm_readv': (1, 0, 0, 0, 0, 0),\n"
        "    'swapon': (b'/', 0), 'acct': (b'/',), 'sethostname': (b'x', 1)}.items()}\n"
        "for number in (425, 428, 435, 438):\n    said[number] = told('syscall', number, 0, 0, 0, 0)\n"
        "for family in (38, 17, 40, 44):\n"
        "    try:\n        socket.socket(family, socket.SOCK_RAW)\n"
        "    except OSError as error:\n        said[f'family {family}'] = errno.errorcode[error.errno]\n"
        "try:\n    fcntl.ioctl(0, 0x5412, b'x')\n"
        "except OSError as error:\n    said['TIOCSTI'] = errno.errorcode[error.errno]\n"
        "return said"
    )
    said = await bench.python(body).execute({})
    families = {f"family {number}": "EAFNOSUPPORT" for number in (38, 17, 40, 44)}
    assert {"435": "ENOSYS", **families}.items() <= said.items()
    assert {answer for name, answer in said.items() if name not in {"435", *families}} == {"EPERM"}


def test_the_filter_is_known_for_two_kinds_of_machine() -> None:
    sys.path.insert(0, str(HOST))
    try:
        from toolcrib_box import seccomp
    finally:
        sys.path.remove(str(HOST))
    for machine in ("x86_64", "aarch64"):
        steps = list(struct.iter_unpack("HBBI", seccomp.program(machine)))
        assert all(at + 1 + max(true, false) < len(steps) for at, (_, true, false, _) in enumerate(steps[:-1]))
        assert steps[-1] == (6, 0, 0, 0x7FFF0000)
    with pytest.raises(OSError, match="not known"):
        seccomp.program("vax")


# The network of those who ask


FETCH = (
    "import urllib.request, urllib.error\n"
    "try:\n    return urllib.request.urlopen(input_data['url'], timeout=30).read().decode()\n"
    "except urllib.error.HTTPError as error:\n    return [error.code, error.read().decode()]\n"
    "except OSError as error:\n    return str(error)"
)


@pytest.fixture
def website() -> Iterator[str]:
    """On loopback, which the rules of some tests allow."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Length", "5")
            self.end_headers()
            self.wfile.write(b"hello")

        def log_message(self, *_: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def proxies(**settings: Any) -> Any:
    return open_proxies(load_settings({}).with_changes("test", **settings))


async def test_who_asks_reaches_what_the_rules_allow(make_bench: Callable[..., Bench], website: str) -> None:
    bench = make_bench(proxies=proxies(allowed_addresses=["127.0.0.1"]))
    assert await bench.python(FETCH, metadata={"network": True}).execute({"url": website}) == "hello"
    assert await bench.python(FETCH, metadata={"network": ["127.0.0.1"]}).execute({"url": website}) == "hello"
    status, reason = await bench.python(FETCH, metadata={"network": ["example.org"]}).execute({"url": website})
    assert (status, "is not among the allowed addresses" in reason) == (403, True)
    refused = await bench.python(FETCH).execute({"url": website})
    assert "unreachable" in refused or "Permission denied" in refused


async def test_who_asks_reaches_nothing_internal(make_bench: Callable[..., Bench], website: str) -> None:
    bench = make_bench(proxies=proxies())
    status, reason = await bench.python(FETCH, metadata={"network": True}).execute({"url": website})
    assert (status, "is not a public address" in reason) == (403, True)
    straight = "import socket\nsocket.create_connection(('127.0.0.1', input_data['port']), 5)"
    with pytest.raises(ToolFailedError, match="ConnectionRefusedError"):
        await bench.python(straight, metadata={"network": True}).execute({"port": urlsplit(website).port})


async def test_the_service_itself_is_never_reached(make_bench: Callable[..., Bench], website: str) -> None:
    port = urlsplit(website).port
    bench = make_bench(proxies=proxies(allowed_addresses=["*"], port=port))
    tool = bench.python(FETCH, metadata={"network": True})
    for host in ("127.0.0.1", "127.1", "localhost", "[::1]", "0.0.0.0", "[::ffff:127.0.0.1]"):
        status, reason = await tool.execute({"url": f"http://{host}:{port}/"})
        assert (status, "is denied by the rule" in reason) == (403, True)


async def test_who_asks_where_nobody_gets_it_is_told(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(proxies=proxies(bundle_network=False))
    with pytest.raises(DeniedError, match="asks for the network, which bundles do not get here"):
        await bench.python("return 1", metadata={"network": True}).execute({})
    with pytest.raises(ToolValidationError, match="must be true or a list of hosts"):
        await make_bench(proxies=proxies()).python("return 1", metadata={"network": 1}).execute({})


# Where walls are missing


async def test_too_few_walls_are_a_refusal_that_says_so(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(build=[wall for wall in NEEDED if wall != "network"])
    with pytest.raises(DeniedError, match=r"the network wall cannot be built: not asked for.*BUNDLE_ISOLATION=weak"):
        await bench.python("return 1").execute({})
    assert bench.sandbox.told()[0] is False


KERNEL = ["landlock", "seccomp"]


@pytest.fixture(params=[[], KERNEL], ids=["no walls", "walls in the kernel alone"])
def weak_bench(request: pytest.FixtureRequest, make_bench: Callable[..., Bench]) -> Iterator[Bench]:
    """Without any namespace. Root runs bundles as somebody else, who may have no access to our interpreter."""
    with tempfile.TemporaryDirectory(prefix="toolcrib-test-") as folder:
        Path(folder).chmod(0o755)
        bench = make_bench(isolation="weak", build=request.param, scratch=Path(folder))
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
async def test_landlock_holds_where_there_are_no_namespaces(
    weak_bench: Bench, tmp_path: Path, loopback: tuple[int, str]
) -> None:
    await _needs(weak_bench, "landlock")
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
    question = {"path": str(tmp_path / "tokens.db"), "port": loopback[0], "pid": os.getpid()}
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

"""A bundle that wants out: whatever it tries, it finds the system, its own code, an empty folder, and nobody."""

import asyncio
import os
import resource
import socket
import struct
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from tests.attacks.conftest import SlowNames
from tests.support.bundles import Bench, needs_wall
from tests.support.waiting import until

import toolcrib
from toolcrib import AddressRules
from toolcrib.adapters.runners.sandbox import Sandbox
from toolcrib.adapters.runners.scratch import remove_tree
from toolcrib.bootstrap.sandboxes import open_proxies
from toolcrib.calling.places import CALLER
from toolcrib.core.errors import DeniedError, ToolFailedError, ToolValidationError
from toolcrib.settings import load_settings
from toolcrib.toolsets.browser.guard import GuardProxy

pytestmark = pytest.mark.usefixtures("namespaces")

HOST = Path(toolcrib.__file__).parent / "adapters/runners/host"


async def test_nothing_of_the_service_is_to_be_found(bench: Bench, tmp_path: Path) -> None:
    """Neither its data, nor another tool's code, nor what belongs to anybody on this machine."""
    mark = uuid.uuid4().hex
    for name in (f"{mark}.db", f"keys/{mark}"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("secret")
    other = bench.python("return 'honest'", description="Another.")
    assert await other.execute({}) == "honest"
    body = (
        "found = [os.path.join(folder, name) for folder, _, names in os.walk('/') for name in names\n"
        "         if folder.split('/')[1] not in ('usr', 'proc')]\n"
        "return [path for path in found\n"
        "        if input_data['mark'] in path or path.endswith(('/function.py', 'shadow', 'history'))]"
    )
    asked = await bench.python(body).execute({"mark": mark})
    seen = [path for path in asked if "/site-packages/" not in path]
    assert seen == ["/run/bundle/code/function.py"]
    for path in (tmp_path, bench.cache_folder, Path.home()):
        assert await bench.python("return os.path.exists(input_data['path'])").execute({"path": str(path)}) is False
    assert await other.execute({}) == "honest"


async def test_the_mask_of_a_careful_service_closes_nothing_to_the_bundle(bench: Bench) -> None:
    before = os.umask(0o077)
    try:
        assert await bench.python("open('written', 'w').close()\nreturn os.listdir('.')").execute({}) == ["written"]
    finally:
        os.umask(before)


async def test_data_in_a_folder_that_every_bundle_sees_is_covered(bench: Bench, tmp_path: Path) -> None:
    folder, kept = Path(sys.prefix, "lib", f"data-{uuid.uuid4().hex}"), uuid.uuid4().hex
    try:
        folder.mkdir()
    except PermissionError:
        pytest.skip("not our interpreter's folder")
    try:
        (folder / kept).write_text("secret")
        sandbox = Sandbox(hidden=[folder / kept, folder.with_name("no-such"), folder])
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


async def test_calls_that_no_tool_needs_are_not_there(bench: Bench) -> None:
    await needs_wall(bench, "seccomp")
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
        "for number in (425, 428, 435, 438, 447, 467):\n    said[number] = told('syscall', number, 0, 0, 0, 0)\n"
        "for family in (38, 17, 40, 44):\n"
        "    try:\n        socket.socket(family, socket.SOCK_RAW)\n"
        "    except OSError as error:\n        said[f'family {family}'] = errno.errorcode[error.errno]\n"
        "    try:\n        socket.socketpair(family, socket.SOCK_DGRAM)\n"
        "    except OSError as error:\n        said[f'pair of {family}'] = errno.errorcode[error.errno]\n"
        "try:\n    fcntl.ioctl(0, 0x5412, b'x')\n"
        "except OSError as error:\n    said['TIOCSTI'] = errno.errorcode[error.errno]\n"
        "return said"
    )
    said = await bench.python(body).execute({})
    families = {f"{what} {number}": "EAFNOSUPPORT" for number in (38, 17, 40, 44) for what in ("family", "pair of")}
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


async def test_a_crash_shows_nobody_what_was_in_memory(bench: Bench) -> None:
    """A limit of 0 keeps a core from files alone: a program that the machine has set for them would get it, as root."""
    hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
    body = "import resource\nreturn resource.getrlimit(resource.RLIMIT_CORE)"
    assert await bench.python(body).execute({}) == ([0, 0] if hard == 0 else [1, 1])


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


async def test_nor_by_an_address_that_its_name_does_not_tell(
    make_bench: Callable[..., Bench], website: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The name of a machine often leads to loopback alone, and its other addresses may be allowed, or public."""
    monkeypatch.setattr(socket, "gethostname", lambda: "localhost")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as route:
        try:
            route.connect(("192.0.2.1", 9))  # says nothing to anybody
        except OSError as error:
            pytest.skip(f"this machine has no address but loopback: {error}")
        own = route.getsockname()[0]
    port = urlsplit(website).port
    bench = make_bench(proxies=proxies(allowed_addresses=["*"], port=port))
    status, reason = await bench.python(FETCH, metadata={"network": True}).execute({"url": f"http://{own}:{port}/"})
    assert (status, "is denied by the rule" in reason) == (403, True)


async def test_names_that_take_long_keep_nobody_else_from_the_network(
    make_bench: Callable[..., Bench], website: str, slow_names: SlowNames
) -> None:
    bench = make_bench(proxies=proxies(allowed_addresses=["localhost", "*.slow.example"]))
    many = (
        "import socket\nfrom urllib.parse import urlsplit\n"
        "where = urlsplit(os.environ['http_proxy'])\n"
        "asked = [socket.create_connection((where.hostname, where.port)) for _ in range(32)]\n"
        "for n, one in enumerate(asked):\n"
        "    one.sendall(f'CONNECT {n}.slow.example:443 HTTP/1.1\\r\\n\\r\\n'.encode())\n"
        "time.sleep(600)"
    )
    CALLER.set("eve")
    endless = asyncio.create_task(bench.python(many, metadata={"network": True}).execute({}))
    CALLER.set("ada")
    try:
        await until(lambda: slow_names.fill_the_loop or endless.done())
        honest = bench.python(FETCH, metadata={"network": True})
        assert await honest.execute({"url": website.replace("127.0.0.1", "localhost")}) == "hello"
    finally:
        slow_names.answer()
        endless.cancel()
        await asyncio.wait([endless])


async def test_who_goes_away_while_a_way_out_opens_leaves_none() -> None:
    listening, guard = socket.create_server(("127.0.0.1", 0)), GuardProxy(AddressRules())
    opening = asyncio.create_task(guard.start(listening))
    await asyncio.sleep(0)
    opening.cancel()
    await asyncio.wait([opening])
    await guard.close()
    assert listening.fileno() == -1


async def test_who_asks_where_nobody_gets_it_is_told(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(proxies=proxies(bundle_network=False))
    with pytest.raises(DeniedError, match="asks for the network, which bundles do not get here"):
        await bench.python("return 1", metadata={"network": True}).execute({})
    with pytest.raises(ToolValidationError, match="must be true or a list of hosts"):
        await make_bench(proxies=proxies()).python("return 1", metadata={"network": 1}).execute({})

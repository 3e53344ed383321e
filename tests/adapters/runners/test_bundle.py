"""Uploaded code: it runs, its errors are told, and what it does badly stays in its own process."""

import asyncio
import hashlib
import io
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.support.archives import zipped
from tests.support.processes import running
from tests.support.waiting import until

from toolcrib import Tool, ToolContext, ToolSpec
from toolcrib.adapters.blobs import open_blobs
from toolcrib.adapters.runners.bound import bound_tool
from toolcrib.adapters.runners.bundle import BundleRunner
from toolcrib.adapters.runners.sandbox import Sandbox, SandboxLimits
from toolcrib.adapters.runners.unpacking import BundleCache
from toolcrib.core.errors import (
    DeniedError,
    InvalidArgumentsError,
    SettingsError,
    ToolBusyError,
    ToolFailedError,
    ToolTimeoutError,
    ToolValidationError,
)
from toolcrib.formats.bundle import blob_key, bundle_link

LIMITS = SandboxLimits(memory_bytes=600 * 1024 * 1024, file_bytes=2 * 1024 * 1024, processes=20, output_bytes=100_000)


class Bench:
    """A place where bundles are run, with nothing of the machine it stands on."""

    def __init__(self, folder: Path, limits: SandboxLimits = LIMITS, **options: Any) -> None:
        self.blobs = open_blobs(f"file://{folder}/blobs")
        self.scratch = folder / "scratch"
        self.scratch.mkdir(exist_ok=True)
        self.cache_folder = folder / "cache"
        self.cache = BundleCache(self.blobs, self.cache_folder)
        self.sandbox = Sandbox(limits, scratch=self.scratch)
        self.runner = BundleRunner(self.cache, self.sandbox, **options)

    def tool(self, code: bytes, credentials: Mapping[str, Any] | None = None, **fields: Any) -> Tool:
        digest = hashlib.sha256(code).hexdigest()
        self.blobs.put(blob_key(digest), io.BytesIO(code))
        spec = ToolSpec(
            **{
                "name": "scribe",
                "description": "Writes.",
                "timeout_seconds": 60,
                "binding": {"source_code_link": bundle_link("https://tools.example.org", digest)},
                "parameters": {"type": "object"},
                "manual": "m" * 200_000,
                "credentials": dict.fromkeys(credentials or {}, "********"),
                **fields,
            }
        )
        return bound_tool(spec, self.runner, lambda: credentials or {})

    def python(self, body: str, **fields: Any) -> Tool:
        lines = "\n".join(f"        {line}" for line in body.splitlines())
        source = (
            "import os, sys, time\n\n\nclass AgentSpaceV1Tool:\n"
            "    def __init__(self, tool_id, tool_data):\n        self.id, self.data = tool_id, tool_data\n\n"
            f"    def execute(self, input_data):\n{lines}\n\n"
            "    def execute_command(self, name, data):\n        return {'command': name, 'data': data}\n"
        )
        return self.tool(
            zipped({"code/function.py": source, "code/requirements.txt": "no-such-package>=2\n# x\n"}), **fields
        )

    def program(self, text: str, **fields: Any) -> Tool:
        return self.tool(zipped({"code/run": text}), **fields)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


async def test_a_python_bundle(bench: Bench) -> None:
    tool = bench.python("return {'id': self.id, 'type': self.data['tool_type'], 'got': input_data}", tool_type="writer")
    assert await tool.execute({"diff": "+é"}) == {"id": "scribe", "type": "writer", "got": {"diff": "+é"}}
    assert list(bench.scratch.iterdir()) == []


async def test_a_python_bundle_with_modules_and_an_async_execute(bench: Bench) -> None:
    code = zipped({
        "code/function.py": "from helpers.words import WORD\nclass AgentSpaceV1Tool:\n"
        "    def __init__(self, i, d): ...\n    async def execute(self, data):\n        return [WORD, data]\n",
        "code/helpers/words.py": "WORD = 'hello'\n",
    })  # fmt: skip
    assert await bench.tool(code).execute({"a": 1}) == ["hello", {"a": 1}]


async def test_a_command_reaches_execute_command(bench: Bench) -> None:
    tool = bench.python("return {}")
    context = ToolContext(values={"command": "generate_commit"})
    assert await tool.execute({"x": 1}, context=context) == {"command": "generate_commit", "data": {"x": 1}}


async def test_a_program_bundle(bench: Bench) -> None:
    tool = bench.program('#!/bin/sh\nprintf \'{"call": %s, "said": "ok"}\' "$1" > "$2"\necho noise\n')
    answer = await tool.execute({"n": 3})
    assert answer["said"] == "ok"
    assert answer["call"]["tool_id"] == "scribe"
    assert (answer["call"]["mode"], answer["call"]["input"]) == ("execute", {"n": 3})
    assert "tool_man_page_doc" not in answer["call"]["tool_data"]


async def test_plain_text_is_a_result_of_a_program(bench: Bench) -> None:
    assert await bench.program('#!/bin/sh\necho hello > "$2"\n').execute({}) == "hello\n"


async def test_credentials_reach_a_python_bundle_in_its_data(bench: Bench) -> None:
    tool = bench.python("return self.data['default_tool_usage_credentials']", credentials={"api_key": "k3y"})
    assert await tool.execute({}) == {"api_key": "k3y"}


async def test_credentials_reach_a_program_in_its_environment_and_not_on_its_command_line(bench: Bench) -> None:
    script = '#!/bin/sh\ncase "$1" in *k3y*) exit 9;; esac\nprintf %s "$TOOLCRIB_CREDENTIALS" > "$2"\n'
    assert await bench.program(script, credentials={"api_key": "k3y"}).execute({}) == {"api_key": "k3y"}


async def test_the_environment_is_almost_empty(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOLCRIB_SECRET_OF_THE_SERVICE", "s")
    answer = await bench.python("return [dict(os.environ), os.getcwd(), os.listdir('.'), sys.path[0]]").execute({})
    environment, folder, files, _ = answer
    assert set(environment) <= {"PATH", "HOME", "TMPDIR", "LANG", "LC_CTYPE"}
    assert environment["HOME"] == folder
    assert files == []


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("raise ValueError('bad nail')", "ValueError: bad nail"),
        ("sys.exit(3)", "SystemExit: 3"),
        ("return {1, 2}", "TypeError: Object of type set is not JSON serializable"),
        ("return float('nan')", "Out of range float values"),
        ("import no_such_package", "the module 'no_such_package' is not installed for the service; its requirements"),
        ("import no_such_package", "are: no-such-package>=2"),
        ("print('last words', flush=True); os._exit(7)", "its process ended with status 7: last words"),
        ("import ctypes; ctypes.string_at(0)", "its process was ended by SIGSEGV"),
        ("return 'x' * 200_000", "larger than 100,000 bytes"),
        ("return 'x' * 3_000_000", "larger than 100,000 bytes"),
        ("return [0] * 10**9", "MemoryError"),
        ("open('big', 'wb').write(b'x' * 9_000_000)", "OSError: [Errno 27] File too large"),
        ("self.x = [open('/dev/null') for _ in range(1000)]", "Too many open files"),
    ],
)  # fmt: skip
async def test_what_goes_wrong_is_told(bench: Bench, body: str, reason: str) -> None:
    with pytest.raises(ToolFailedError) as caught:
        await bench.python(body).execute({})
    assert reason in str(caught.value)
    assert list(bench.scratch.iterdir()) == []


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("#!/bin/sh\nexit 3\n", "ended with status 3"),
        ("#!/bin/sh\nexit 0\n", "left no result"),
        ("#!/bin/sh\nkill -9 $$\nsleep 5\n", "was ended by SIGKILL"),
        ("#!/no/such/interpreter\n", "No such file or directory"),
        ("\0\1\2", "Exec format error"),
        ('#!/bin/sh\nln -s /etc/passwd "$2"\n', "left no result"),
        ('#!/bin/sh\nmkfifo "$2"\n', "left no result"),
        ('#!/bin/sh\nmkdir "$2"\n', "left no result"),
    ],
)
async def test_a_program_that_fails_is_told(bench: Bench, script: str, reason: str) -> None:
    with pytest.raises(ToolFailedError) as caught:
        await bench.program(script).execute({})
    assert reason in str(caught.value)


async def test_a_bundle_is_killed_at_its_deadline_with_what_it_started(bench: Bench, tmp_path: Path) -> None:
    """A child in a session of its own is out of reach of a signal to the group."""
    mark = tmp_path / "alive"
    body = (
        "import subprocess\n"
        f"forever = 'while :; do date +%s.%N > {mark}; sleep 0.02; done'\n"
        "subprocess.Popen(['sh', '-c', forever], start_new_session=True)\n"
        "time.sleep(600)"
    )
    for deadline in (1, 4, 16, 32):  # until there is time enough for the bundle to have begun
        began = time.monotonic()
        with pytest.raises(ToolTimeoutError, match="it was stopped"):
            await bench.python(body, timeout_seconds=deadline).execute({})
        assert time.monotonic() - began >= deadline
        if mark.exists():
            break
    assert mark.exists()
    if bench.sandbox.contains_escapees:
        await until(lambda: not running(str(mark)))
    assert list(bench.scratch.iterdir()) == []


async def test_what_a_bundle_leaves_running_ends_with_it(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "alive"
    body = f"import subprocess\nsubprocess.Popen(['sh', '-c', 'while :; do date > {mark}; sleep 0.02; done'])\nreturn 1"
    assert await bench.python(body).execute({}) == 1
    await until(lambda: not running(str(mark)))


async def test_a_cancelled_call_kills_its_process(bench: Bench, tmp_path: Path) -> None:
    mark = tmp_path / "begun"
    body = f"import subprocess\nsubprocess.run(['sh', '-c', 'echo > {mark}; sleep 60'])"
    task = asyncio.ensure_future(bench.python(body, timeout_seconds=60).execute({}))
    await until(mark.exists)
    assert running(str(mark))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until(lambda: not running(str(mark)))
    assert list(bench.scratch.iterdir()) == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that other users may enter; pytest keeps its own closed to them."""
    with tempfile.TemporaryDirectory(prefix="toolcrib-test-") as name:
        Path(name).chmod(0o755)
        (Path(name) / "cache").mkdir(mode=0o755)
        yield Path(name)


async def test_a_fork_bomb_goes_off_alone(open_folder: Path) -> None:
    """As root the kernel counts no processes, so root has to run bundles as somebody else."""
    # The kernel counts those of a user, so it is one whom no other test runs as: what ends elsewhere leaves room here.
    bench = Bench(open_folder, SandboxLimits(processes=20, user="daemon" if os.getuid() == 0 else ""))
    body = (
        "made = 0\ntry:\n    while made < 500:\n        if os.fork() == 0:\n            time.sleep(600)\n"
        "        made += 1\nexcept BlockingIOError:\n    pass\nreturn made"
    )
    made = await bench.python(body).execute({})
    assert 1 <= made <= (20 if os.getuid() == 0 else 499)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_bundles_run_as_another_user(open_folder: Path) -> None:
    secret = open_folder / "secret"
    secret.write_text("s")
    secret.chmod(0o600)
    bench = Bench(open_folder, SandboxLimits(user="nobody"))
    assert await bench.python("return [os.getuid(), os.getgid(), os.getgroups()]").execute({}) == [65534, 65534, []]
    with pytest.raises(ToolFailedError, match="PermissionError"):
        await bench.python(f"return open({str(secret)!r}).read()").execute({})
    with pytest.raises(ToolFailedError, match="PermissionError"):
        await bench.python("open(__file__, 'a').write('x')").execute({})


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else")
async def test_a_folder_that_the_other_user_cannot_enter_is_named(open_folder: Path) -> None:
    bench = Bench(open_folder, SandboxLimits(user="nobody"))
    open_folder.chmod(0o700)
    with pytest.raises(SettingsError, match=f"who cannot enter '{open_folder}'"):
        await bench.python("return 1").execute({})


def test_an_unknown_user_is_a_settings_error() -> None:
    with pytest.raises(SettingsError, match="there is no user"):
        Sandbox(SandboxLimits(user="no-such-user"))


async def test_a_bundle_can_be_kept_off_the_network(tmp_path: Path) -> None:
    try:
        bench = Bench(tmp_path, SandboxLimits(network=False))
    except SettingsError as error:
        pytest.skip(str(error))
    body = (
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 80), 1)\n"
        "except OSError as error:\n    return error.errno\nreturn 'connected'"
    )
    assert await bench.python(body).execute({}) == 101  # the network is unreachable


async def test_it_is_unpacked_once_and_again_when_the_cache_is_gone(bench: Bench) -> None:
    tool = bench.python("return os.stat(__file__).st_ino")
    first = await tool.execute({})
    assert await tool.execute({}) == first
    for path in bench.cache_folder.iterdir():
        bench.cache.forget(path.name)
    assert isinstance(await tool.execute({}), int)
    assert len(list(bench.cache_folder.iterdir())) == 1


async def test_many_first_calls_at_once_unpack_in_peace(bench: Bench) -> None:
    tool = bench.python("return input_data['n']")
    answers = await asyncio.gather(*(tool.execute({"n": n}) for n in range(8)))
    assert answers == list(range(8))
    assert [path.name[:1] for path in bench.cache_folder.iterdir()] != ["."]
    assert len(list(bench.cache_folder.iterdir())) == 1


async def test_a_stored_bundle_that_was_tampered_with_does_not_run(bench: Bench) -> None:
    tool = bench.python("return 1")
    (stored,) = (path for path in (bench.cache_folder.parent / "blobs").rglob("*") if path.is_file())
    stored.write_bytes(zipped({"code/function.py": "evil = 1\n"}))
    with pytest.raises(ToolFailedError, match="not what was uploaded"):
        await tool.execute({})
    assert list(bench.cache_folder.iterdir()) == []


@pytest.mark.parametrize(
    ("members", "reason"),
    [
        ({"readme.txt": "x"}, "needs 'code/function.py', or one program"),
        ({"code/a": "x", "code/b": "y"}, "needs 'code/function.py', or one program"),
        ({"code/function.py": "x = 1"}, "has no attribute 'AgentSpaceV1Tool'"),
        ({"code/function.py": "def broken(:"}, "SyntaxError"),
    ],
)
async def test_what_cannot_be_run_says_why(bench: Bench, members: dict[str, str], reason: str) -> None:
    with pytest.raises(ToolFailedError, match=reason):
        await bench.tool(zipped(members)).execute({})


async def test_code_that_is_elsewhere_is_not_fetched(bench: Bench) -> None:
    tool = bench.tool(b"", binding={"source_code_link": "http://169.254.169.254/tool.zip"})
    with pytest.raises(DeniedError, match="upload it as a bundle"):
        await tool.execute({})


async def test_a_missing_blob_is_a_failure(bench: Bench) -> None:
    tool = bench.tool(b"", binding={"source_code_link": bundle_link("", "0" * 64)})
    with pytest.raises(ToolFailedError):
        await tool.execute({})


async def test_too_many_at_once_are_refused(tmp_path: Path) -> None:
    bench = Bench(tmp_path, max_running=1)
    begun, free = tmp_path / "begun", tmp_path / "free"
    body = f"open({str(begun)!r}, 'w').close()\nwhile not os.path.exists({str(free)!r}): time.sleep(0.01)\nreturn 1"
    tool = bench.python(body)
    first = asyncio.ensure_future(tool.execute({}))
    await until(begun.exists)
    with pytest.raises(ToolBusyError):
        await tool.execute({})
    free.touch()
    assert await first == 1
    assert await tool.execute({}) == 1


async def test_arguments_that_no_command_line_takes_are_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentsError, match="too large for a program"):
        await bench.program("#!/bin/sh\n").execute({"x": "y" * 200_000})
    assert await bench.python("return len(input_data['x'])").execute({"x": "y" * 200_000}) == 200_000


def test_there_is_no_function_to_call_here(bench: Bench) -> None:
    with pytest.raises(ToolValidationError, match="not in this process"):
        bench.python("return 1")()

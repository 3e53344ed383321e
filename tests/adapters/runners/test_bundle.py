"""Uploaded code: it runs, its errors are told, and what it does badly stays in its own process."""

import asyncio
import errno
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import pytest
from tests.support.archives import zipped
from tests.support.bundles import FOREVER, Bench
from tests.support.processes import running
from tests.support.waiting import until

from toolcrib import ToolContext, ToolRegistry
from toolcrib.adapters.runners import bundle
from toolcrib.adapters.runners.kept import KeptBoxes
from toolcrib.adapters.runners.sandbox import SandboxLimits
from toolcrib.adapters.runners.walls import NEEDED
from toolcrib.calling.places import CALLER
from toolcrib.core.errors import (
    DeniedError,
    InvalidArgumentsError,
    ToolBusyError,
    ToolFailedError,
    ToolTimeoutError,
    ToolValidationError,
)
from toolcrib.formats.bundle import bundle_link


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


async def test_an_image_is_a_result_of_a_program(bench: Bench) -> None:
    assert await bench.program("#!/bin/sh\nprintf '\\211PNG' > \"$2\"\n").execute({}) == b"\x89PNG"


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


async def test_a_bundle_is_killed_at_its_deadline_with_what_it_started(bench: Bench) -> None:
    """A child in a session of its own is out of reach of a signal to the group."""
    mark = uuid.uuid4().hex
    tool = bench.python(FOREVER.format(mark=mark) + "time.sleep(600)", timeout_seconds=4)
    began = time.monotonic()
    call = asyncio.ensure_future(tool.execute({}))
    await until(lambda: running(mark) or call.done())
    with pytest.raises(ToolTimeoutError, match="it was stopped"):
        await call
    assert time.monotonic() - began >= 4
    assert not running(mark)


async def test_what_a_bundle_leaves_running_ends_with_it(bench: Bench) -> None:
    mark = uuid.uuid4().hex
    assert await bench.python(FOREVER.format(mark=mark) + "return 1").execute({}) == 1
    assert not running(mark)


async def test_a_cancelled_call_kills_its_process(bench: Bench) -> None:
    mark = uuid.uuid4().hex
    task = asyncio.ensure_future(bench.python(FOREVER.format(mark=mark) + "time.sleep(60)").execute({}))
    await until(lambda: running(mark))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not running(mark)


async def test_a_call_cancelled_while_its_process_starts_leaves_none(bench: Bench) -> None:
    await asyncio.to_thread(bench.sandbox.walls)
    tool = bench.python("return 1")
    for wait in (0.0, 0.001, 0.01, 0.03):
        task = asyncio.ensure_future(tool.execute({}))
        await asyncio.sleep(wait)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert await tool.execute({}) == 1


async def test_a_fork_bomb_goes_off_alone(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(SandboxLimits(processes=20))
    body = (
        "made = 0\ntry:\n    while made < 500:\n        if os.fork() == 0:\n            time.sleep(600)\n"
        "        made += 1\nexcept BlockingIOError:\n    pass\nreturn made"
    )
    tool = bench.python(body)
    assert await asyncio.gather(*(tool.execute({}) for _ in range(3))) == [19, 19, 19]  # and itself; each run alone


async def test_bundles_run_as_nobody_else(bench: Bench) -> None:
    tool = bench.python("return [os.getresuid(), os.getresgid(), open('/proc/self/status').read()]")
    users, groups, status = await tool.execute({})
    assert (users, groups) == ([1000] * 3, [1000] * 3)
    said = dict(line.split(":\t", 1) for line in status.splitlines())
    assert {said[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == {"0" * 16}
    assert said["NoNewPrivs"] == "1"


async def test_its_code_cannot_be_changed(bench: Bench) -> None:
    with pytest.raises(ToolFailedError, match="PermissionError|Read-only file system"):
        await bench.python("open(__file__, 'a').write('x')").execute({})


async def test_there_is_no_network(bench: Bench) -> None:
    body = (
        "import socket\ntry:\n    socket.create_connection(('127.0.0.1', 80), 1)\n"
        "except OSError as error:\n    return error.errno\nreturn 'connected'"
    )
    assert await bench.python(body).execute({}) in {errno.ENETUNREACH, errno.EACCES}  # Landlock says the other


@pytest.mark.parametrize(
    "reached", ["socket.create_connection(('203.0.113.1', 80), 1)", "socket.getaddrinfo('example.com', 80)"]
)
async def test_who_misses_the_network_is_told_how_to_ask_for_it(bench: Bench, reached: str) -> None:
    """Bundles of the first release had one without asking."""
    with pytest.raises(ToolFailedError, match=r'a bundle has a network only if .* \{"network": true\}'):
        await bench.python(f"import socket\nreturn {reached}").execute({})


async def test_who_may_not_read_a_file_is_told_nothing_of_the_network(bench: Bench) -> None:
    with pytest.raises(ToolFailedError) as raised:
        await bench.python("raise PermissionError(13, 'Permission denied', '/etc/shadow')").execute({})
    assert "network" not in str(raised.value)


async def test_a_process_is_kept_for_the_same_caller_alone(bench: Bench) -> None:
    body = "global calls\ncalls = globals().get('calls', 0) + 1\nreturn calls"
    tool = bench.python(body)
    ada, bob = ToolContext("ada"), ToolContext("bob")
    assert [await tool.execute({}, context=who) for who in (ada, ada, bob, ada, bob)] == [1, 2, 1, 3, 2]
    assert await bench.python(body, description="Another.").execute({}, context=ada) == 1
    assert await bench.python(body, credentials={"key": "1"}).execute({}, context=ada) == 1
    assert await bench.python(body, credentials={"key": "2"}).execute({}, context=ada) == 1


async def test_two_callers_of_one_name_share_no_process(bench: Bench) -> None:
    """A token and somebody with a JWT, or two addresses without either, may be called the same."""
    tool = bench.python("global calls\ncalls = globals().get('calls', 0) + 1\nreturn calls")
    answers = []
    for caller in ("token:1", "jwt:ada", "token:1"):
        CALLER.set(caller)
        answers.append(await tool.execute({}, context=ToolContext("ada")))
    assert answers == [1, 1, 2]


@pytest.mark.parametrize(
    "trace",
    [
        "open('left', 'w').close()",
        "import threading\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()",
        "import subprocess\nsubprocess.Popen(['sleep', '600'])",
        "if not os.fork():\n    os.fork() or time.sleep(600)\n    os._exit(0)\nos.wait()",
    ],
)
async def test_a_process_that_keeps_anything_of_a_call_is_not_kept(bench: Bench, trace: str) -> None:
    tool = bench.python(f"global calls\ncalls = globals().get('calls', 0) + 1\n{trace}\nreturn calls")
    assert [await tool.execute({}) for _ in range(2)] == [1, 1]


async def test_a_process_whose_rest_is_over_is_not_asked_again(
    make_bench: Callable[..., Bench], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It lives for half a second more, and would end in the middle of the next call."""
    monkeypatch.setattr(bundle, "KeptBoxes", partial(KeptBoxes, idle_seconds=0))
    tool = make_bench().python("global calls\ncalls = globals().get('calls', 0) + 1\nreturn calls")
    assert [await tool.execute({}) for _ in range(2)] == [1, 1]


async def test_what_is_said_unasked_is_no_answer_to_the_next_question(bench: Bench) -> None:
    body = (
        "import json, socket\n"
        "said = json.dumps({'value': input_data['n'], 'alone': True}).encode()\n"
        "for fd in range(3, 20):\n"
        "    try:\n        channel = socket.socket(fileno=os.dup(fd))\n    except OSError:\n        continue\n"
        "    channel.sendall((len(said).to_bytes(8, 'big') + said) * input_data['times'])\n"
        "return input_data['n']"
    )
    tool = bench.python(body)
    for n in range(6):
        with suppress(ToolFailedError):
            assert await tool.execute({"n": n, "times": n}) == n


async def test_results_say_which_walls_stand(bench: Bench) -> None:
    registry = ToolRegistry([bench.python("return 1 / input_data['x']")])
    assert (await registry.execute("scribe", {"x": 1})).metadata["walls"][:5] == list(NEEDED)
    failed = await registry.execute("scribe", {"x": 0})
    assert failed.error_code == "tool_failed"
    assert failed.metadata["walls"][:5] == list(NEEDED)


async def test_it_is_unpacked_once_and_again_when_the_cache_is_gone(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(kept=0)
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


async def test_who_finds_no_place_waits_until_the_deadline(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_running=1)
    mark = uuid.uuid4().hex
    first = asyncio.ensure_future(bench.python(FOREVER.format(mark=mark) + "time.sleep(600)").execute({}))
    await until(lambda: running(mark))
    with pytest.raises(ToolBusyError, match="no turn before its deadline"):
        await bench.python("return 1", timeout_seconds=0.2).execute({})
    waiting = asyncio.ensure_future(bench.python("return 1").execute({}))
    await asyncio.sleep(0)
    first.cancel()
    assert await waiting == 1


async def test_one_caller_and_one_tool_leave_places_to_others(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(max_running=4)
    marks = [uuid.uuid4().hex for _ in range(4)]
    endless = [
        bench.python(FOREVER.format(mark=mark) + "time.sleep(600)", name=f"endless{n}") for n, mark in enumerate(marks)
    ]
    runs = [asyncio.ensure_future(tool.execute({}, context=ToolContext("eve"))) for tool in endless]
    await until(lambda: any(running(mark) for mark in marks))
    assert await bench.python("return 1").execute({}, context=ToolContext("ada")) == 1
    assert sum(bool(running(mark)) for mark in marks) == 1
    for run in runs:
        run.cancel()
    await asyncio.gather(*runs, return_exceptions=True)


async def test_no_deadline_is_longer_than_the_ceiling(make_bench: Callable[..., Bench]) -> None:
    bench = make_bench(most_seconds=0.5)
    with pytest.raises(ToolTimeoutError, match=r"its deadline of 0\.5 s"):
        await bench.python("time.sleep(600)", timeout_seconds=86_400).execute({})


async def test_many_lines_of_requirements_are_read_in_linear_time(bench: Bench) -> None:
    code = {"code/function.py": "import no_such_package", "code/requirements.txt": "\n" * 40_000 + "x>=1\n" * 40_000}
    with pytest.raises(ToolFailedError, match="its requirements are: x>=1, x>=1"):
        await bench.tool(zipped(code)).execute({})


async def test_arguments_that_no_command_line_takes_are_refused(bench: Bench) -> None:
    with pytest.raises(InvalidArgumentsError, match="too large for a program"):
        await bench.program("#!/bin/sh\n").execute({"x": "y" * 200_000})
    assert await bench.python("return len(input_data['x'])").execute({"x": "y" * 200_000}) == 200_000


def test_there_is_no_function_to_call_here(bench: Bench) -> None:
    with pytest.raises(ToolValidationError, match="not in this process"):
        bench.python("return 1")()

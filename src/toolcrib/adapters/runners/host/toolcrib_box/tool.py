"""The tool: the process that gives up every right, and only then loads a stranger's code."""

import importlib
import json
import os
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from toolcrib_box import kernel
from toolcrib_box.frames import read_frame, tell, write_frame
from toolcrib_box.landlock import restrict
from toolcrib_box.namespaces import WallError, building
from toolcrib_box.network import variables
from toolcrib_box.seccomp import filter_calls
from toolcrib_box.view import CODE, OUTPUT, View

Question = dict[str, Any]
_BEHIND = 10
"""How much nicer it is than the service: whatever it computes, in however many processes, the service goes first."""
_written = json.JSONEncoder(allow_nan=False).encode


def become_tool(order: dict[str, Any], own: int, view: View, scratch: str, calls: socket.socket) -> NoReturn:
    code = CODE if "mount" in order["walls"] else view.code
    try:
        _keep_only(calls)
        os.chdir(scratch)
        os.environ |= {"HOME": scratch, "TMPDIR": scratch}
        if order["network"]:
            os.environ |= variables(order["proxy"])
        limit(order["limits"], order["walls"])
        step_down(own)
        if "landlock" in order["walls"]:
            with building("landlock"):
                restrict(view, scratch, mounted="mount" in order["walls"], network=order["network"])
        if "seccomp" in order["walls"]:
            with building("seccomp"):
                filter_calls()
    except WallError as error:
        tell(calls, wall=error.wall, reason=error.reason)
        os._exit(1)
    tell(calls, walls=order["walls"])
    if order["kind"] == "program":
        become_program(f"{code}/{order['program']}", f"{scratch}/{OUTPUT}", calls)
    sys.path[0] = code
    sys.dont_write_bytecode = True
    for name in [name for name in sys.modules if name.partition(".")[0] == __package__]:
        del sys.modules[name]
    try:
        answer_calls(calls, scratch)
    except EOFError:
        os._exit(0)


def become_program(path: str, output: str, calls: socket.socket) -> NoReturn:
    question = json.loads(read_frame(calls))
    calls.close()
    for name in (signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(name, signal.SIG_DFL)  # Python ignores them, and a program would take that over
    try:
        os.execve(path, [path, question["call"], output], os.environ | question["environment"])  # noqa: S606
    except OSError as error:
        print(f"{error.strerror}: {os.path.basename(path)}", file=sys.stderr, flush=True)
        os._exit(126)


def answer_calls(calls: socket.socket, scratch: str) -> NoReturn:
    """The first question brings the tool's data; the next ones, of the same caller, only what to do."""
    empty, wait = os.stat(scratch).st_size, os.waitpid
    question = json.loads(read_frame(calls))
    name, text = question["tool_id"], json.dumps(question["tool_data"])
    data = json.loads(text)
    while True:
        try:
            value = run(name, data, question)
            alone = _is_alone(wait) and os.stat(scratch).st_size == empty
            answer = _written({"alone": alone, "value": value})
        except BaseException as error:  # noqa: BLE001 - whatever the bundle raises, SystemExit too, is its answer
            answer = json.dumps({"error": described(error)})
        write_frame(calls, answer.encode("utf-8", "surrogatepass"))
        data = json.loads(text)  # here nobody waits for it
        question = json.loads(read_frame(calls))


def run(name: str, data: dict[str, Any], question: Question) -> object:
    function = sys.modules.get("function") or importlib.import_module("function")
    tool = function.AgentSpaceV1Tool(name, data)
    command = question["command"]
    value = tool.execute_command(command, question["input"]) if command else tool.execute(question["input"])
    if hasattr(value, "__await__"):
        import asyncio  # slow to import, and most bundles do not need it

        value = asyncio.run(awaited(value))
    return value


async def awaited(value: Any) -> object:
    return await value


def described(error: BaseException) -> dict[str, Any]:
    return {
        "type": type(error).__name__,
        "message": str(error)[:2000],
        "missing": error.name or "" if isinstance(error, ModuleNotFoundError) else "",
        "trace": "".join(traceback.format_exception(error))[-4000:],
    }


def _is_alone(wait: Callable[[int, int], Any]) -> bool:
    """Whether no process and no thread of the call is left. Then, if its scratch is empty, there may be another."""
    try:
        wait(-1, os.WNOHANG)
        return False
    except ChildProcessError:
        threads = sys.modules.get("threading")
        return threads is None or threads.active_count() == 1


def limit(limits: dict[str, Any], walls: list[str]) -> None:
    os.nice(_BEHIND)
    wanted = {
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_CORE: 1,  # none to a file, as with 0, nor to a program of the machine's, which 0 lets run
    }
    if sys.platform == "linux":  # elsewhere the kernel refuses the one and cannot be asked for the other
        wanted[resource.RLIMIT_AS] = limits["memory_bytes"]
        wanted[resource.RLIMIT_NPROC] = limits["processes"] + running_tasks(walls)
        wanted[resource.RLIMIT_NICE] = wanted[resource.RLIMIT_RTPRIO] = 0  # nobody comes to the front again
    for name, value in wanted.items():
        hard = resource.getrlimit(name)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (most, most))


def running_tasks(walls: list[str]) -> int:
    """Those that the kernel counts beside the tool's own: all of its user, in its user namespace if it has one."""
    if os.getuid() == 0:
        return 0  # it becomes somebody who runs nothing yet
    if "user" in walls:
        return 2  # the launcher and the keeper
    uid, count = os.getuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == uid:
                count += sum(1 for _ in (process / "task").iterdir())
        except OSError:
            continue  # it has ended meanwhile
    return count


def step_down(own: int) -> None:
    """Become a user who owns nothing and may do nothing, for good."""
    linux = sys.platform == "linux"
    if linux:
        kernel.drop_bounding_set()
    if os.getuid() == 0:
        os.setgroups([])
        os.setresgid(own, own, own)
        os.setresuid(own, own, own)
    if linux:
        kernel.give_up_capabilities()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)  # what a call leaves behind comes back to us, and is noticed
        kernel.prctl(kernel.PR_SET_DUMPABLE, 1)


def _keep_only(calls: socket.socket) -> None:
    """Of what the service and the keeper hold open: standard input and output, and the calls."""
    signal.set_wakeup_fd(-1)
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(name, signal.SIG_DFL)
    os.setsid()
    os.closerange(3, calls.fileno())
    os.closerange(calls.fileno() + 1, resource.getrlimit(resource.RLIMIT_NOFILE)[0])

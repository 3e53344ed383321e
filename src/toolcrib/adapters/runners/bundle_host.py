"""The program inside a sandboxed process. It stands alone: standard library only, run by its path.

    bundle_host.py python FOLDER    loads FOLDER/function.py and calls its AgentSpaceV1Tool
    bundle_host.py program FILE     becomes FILE, with the call as argv[1] and the output file as argv[2]

Standard input holds a JSON object: limits, ids, call, output. What goes wrong is written to the output file as
``{"error": {...}}``, what the tool returned as ``{"value": ...}``.
"""

import importlib
import json
import os
import resource
import sys
import traceback
from pathlib import Path
from typing import Any


def main(kind: str, path: str) -> None:
    question = json.load(sys.stdin)
    if question["ids"]:
        uid, gid = question["ids"]
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)
    limit(question["limits"])
    step_down()
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    call, output = question["call"], question["output"]
    if kind == "program":
        os.execv(path, [path, json.dumps(call), output])  # noqa: S606 - no shell is the point
    try:
        answer = {"value": run(path, call)}
        text = json.dumps(answer, allow_nan=False)
    except BaseException as error:  # noqa: BLE001 - whatever the bundle raises, SystemExit too, is its answer
        text = json.dumps({"error": described(error)})
    Path(output).write_text(text, encoding="utf-8")


def limit(limits: dict[str, Any]) -> None:
    wanted = {
        resource.RLIMIT_FSIZE: limits["file_bytes"],
        resource.RLIMIT_NOFILE: limits["open_files"],
        resource.RLIMIT_CORE: 0,
    }
    if sys.platform == "linux":  # elsewhere the kernel refuses the one and cannot be asked for the other
        wanted[resource.RLIMIT_AS] = limits["memory_bytes"]
        # The kernel counts all processes of a user, not those of this one.
        wanted[resource.RLIMIT_NPROC] = running_tasks() + limits["processes"]
    for name, value in wanted.items():
        hard = resource.getrlimit(name)[1]
        most = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(name, (most, most))


def step_down() -> None:
    """The first process of a namespace cannot be killed from inside, so the tool becomes the second.

    The first waits for it and takes the whole namespace along when it ends.
    """
    if os.getpid() != 1 or not (tool := os.fork()):
        return
    while True:
        ended, status = os.wait()
        if ended == tool:
            code = os.waitstatus_to_exitcode(status)
            os._exit(code if code >= 0 else 128 - code)


def running_tasks() -> int:
    uid, count = os.getuid(), 0
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if process.stat().st_uid == uid:
                count += sum(1 for _ in (process / "task").iterdir())
        except OSError:
            continue  # it has ended meanwhile
    return count


def run(folder: str, call: dict[str, Any]) -> object:
    sys.path.insert(0, folder)
    function = importlib.import_module("function")
    tool = function.AgentSpaceV1Tool(call["tool_id"], call["tool_data"])
    command = call.get("command")
    value = tool.execute_command(command, call["input"]) if command else tool.execute(call["input"])
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


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

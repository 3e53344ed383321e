"""The keeper: the first process of the namespace, out of the tool's reach, with which everything inside ends."""

import contextlib
import json
import mmap
import os
import select
import signal
import socket
import stat
import struct
import sys
import time
from typing import Any, NoReturn

from toolcrib_box import kernel
from toolcrib_box.frames import tell, write_frame
from toolcrib_box.memory import Meter, others
from toolcrib_box.mounts import make_file_system
from toolcrib_box.namespaces import INSIDE, WallError, building, run_id
from toolcrib_box.tool import become_tool
from toolcrib_box.view import OUTPUT, SCRATCH, view_of

CLOCK = struct.Struct("=dQ")
"""What the service writes into the clock: when everything must be over, and a number that is odd during a call."""
_LOOK = 1.0
"""How often the clock is looked at between calls, in seconds: the service may have set it anew."""
_PATIENCE = 5


def keep(order: dict[str, Any], control: socket.socket, calls: socket.socket, clock: int) -> NoReturn:
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)  # the tool may send these to us
    scratch = order["scratch"] or SCRATCH
    own = INSIDE if "user" in order["walls"] or os.getuid() != 0 else run_id()
    try:
        view = view_of(order["code"], order["hidden"])
        if "mount" in order["walls"]:
            with building("mount"):
                make_file_system(view, order["limits"], own)
        elif os.getuid() == 0:
            os.chown(scratch, own, own)
    except WallError as error:
        tell(calls, wall=error.wall, reason=error.reason)
        os._exit(1)
    if sys.platform == "linux":
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # so the tool can neither look into this process nor hold it up
    wake = _woken_by_children()
    folder = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY)
    tool = os.fork()
    if tool == 0:
        become_tool(order, own, view, scratch, calls)
    calls.close()
    os.close(1)
    os.close(2)
    limit = order["limits"]["total_memory_bytes"]
    meter = Meter(limit, folder if "mount" in order["walls"] else None)
    status = _watch(tool, wake, control, mmap.mmap(clock, CLOCK.size, prot=mmap.PROT_READ), meter)
    _end_all()
    control.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", _PATIENCE, 0))
    with contextlib.suppress(OSError):
        output, large = _read_output(folder, order["limits"]["output_bytes"])
        over = limit if meter.found_over else 0
        head = json.dumps({"status": status, "output": output is not None, "large": large, "over": over})
        write_frame(control, head.encode() + b"\n" + (output or b""))
    os._exit(0)


def _woken_by_children() -> int:
    wake, waker = os.pipe()
    os.set_blocking(wake, False)
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return wake


def _watch(tool: int, wake: int, control: socket.socket, clock: mmap.mmap, meter: Meter) -> int:
    """The status of the tool, once it has ended, or must end because too much memory is in use.

    Ends everything when the service is gone, or the time is over.
    """
    poll = select.poll()
    poll.register(control, select.POLLIN)
    poll.register(wake, select.POLLIN)
    while True:
        deadline, number = CLOCK.unpack_from(clock)
        left = deadline - time.monotonic()
        if left <= 0 or (number % 2 == 0 and _left_behind(tool) and CLOCK.unpack_from(clock)[1] == number):
            os._exit(1)
        called = number % 2 == 1
        if called and meter.is_over():
            return -signal.SIGKILL
        ready = {fd for fd, _ in poll.poll(min(left, meter.pause if called else _LOOK) * 1000)}
        if control.fileno() in ready:
            os._exit(1)
        if wake in ready:
            os.read(wake, 512)
            if (status := _reap(tool)) is not None:
                return status


def _left_behind(tool: int) -> bool:
    """Whether between two calls anything lives here but the tool itself."""
    return bool(others() - {tool})


def _reap(tool: int) -> int | None:
    """Bury who has died; the tool's status if it is among them."""
    status = None
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, found = os.waitpid(-1, os.WNOHANG)
            if ended == tool:
                status = os.waitstatus_to_exitcode(found)
            elif not ended:
                break
    return status


def _end_all() -> None:
    """Whatever runs in the namespace is dead and buried when this returns."""
    if os.getpid() != 1:  # who has no namespace is a child of calling/keeper.py, which does this
        return
    with contextlib.suppress(ChildProcessError):
        while True:
            with contextlib.suppress(ProcessLookupError):
                os.kill(-1, signal.SIGKILL)
            os.waitpid(-1, 0)


def _read_output(folder: int, limit: int) -> tuple[bytes | None, bool]:
    """What a program left, and whether it is too large. Not through a link, and not from a pipe."""
    try:
        handle = os.open(OUTPUT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:
        return None, False
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > limit:
        return None, stat.S_ISREG(found.st_mode)
    with os.fdopen(handle, "rb") as file:
        return file.read(limit), False

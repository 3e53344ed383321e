"""The launcher: the namespaces, then the keeper in them, whose end is its own."""

import contextlib
import json
import os
import socket
import sys
from typing import Any

from toolcrib_box import kernel
from toolcrib_box.frames import read_frame, tell
from toolcrib_box.keeper import keep
from toolcrib_box.namespaces import WallError, building, enter_namespaces
from toolcrib_box.network import open_way_out


def launch(control_fd: int, calls_fd: int, clock: int) -> None:
    _die_first()
    os.umask(0o022)  # the service's own keeps its files to itself; what is made here is for the tool to see
    control, calls = socket.socket(fileno=control_fd), socket.socket(fileno=calls_fd)
    order: dict[str, Any] = json.loads(read_frame(control))
    try:
        enter_namespaces(order["walls"])
        if order["network"]:
            with building("network"):
                order["proxy"] = open_way_out(control)
    except WallError as error:
        tell(calls, wall=error.wall, reason=error.reason)
        os._exit(1)
    keeper = os.fork()
    if keeper == 0:
        if sys.platform == "linux":
            kernel.prctl(kernel.PR_SET_PDEATHSIG, 9)
        keep(order, control, calls, clock)
    calls.close()
    os.close(1)
    os.close(2)
    os.waitpid(keeper, 0)
    os._exit(0)


def _die_first() -> None:
    """Where the machine runs out of memory, this process and all that it starts end before anybody else does."""
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("1000")

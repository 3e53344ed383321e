"""Tools that do what a tool should not. A worker imports this file, so it needs nothing but the standard library."""

import os
import signal
import sys
import threading
from pathlib import Path


def keeper() -> int:
    """Say below which process this runs."""
    return os.getppid()


def write_and_wait(text: str) -> None:
    """Write into the channel of the worker's answers, then never end."""
    os.write(int(sys.argv[1]), text.encode())
    threading.Event().wait()


def write_and_end(text: str) -> str:
    """Write into the channel of the worker's answers, then answer."""
    os.write(int(sys.argv[1]), text.encode())
    return "done"


def fill(size: int) -> bytes:
    """Answer so many bytes."""
    return bytes(size)


def die_in_the_middle() -> None:
    """Send half of an answer and be gone."""
    os.write(int(sys.argv[1]), bytes(9))
    os.kill(os.getpid(), signal.SIGKILL)


def start_a_daemon(note: str, *, wait: bool = False) -> str:
    """Start a process that leaves the group and the session of this one, twice removed."""
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            half = Path(f"{note}.half")
            half.write_text(str(os.getpid()), encoding="utf-8")
            half.rename(note)
            threading.Event().wait()
        os._exit(0)
    os.wait()
    if wait:
        threading.Event().wait()
    return "started"


def come_back_twice() -> int:
    """Return in two processes."""
    os.fork()
    return os.getppid()

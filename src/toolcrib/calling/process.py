"""Run in another process, which is killed at the deadline.

Workers are started when needed, kept for the next call, and lead a process group of their own: a kill takes what they
started with them. A killed worker is replaced at once, so the next call does not wait for a start.

This protects from code that hangs, crashes or leaks, not from malice: functions, arguments and answers travel as
pickles. Code from strangers comes as a bundle, and a bundle's process speaks JSON.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from importlib.machinery import PathFinder
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from toolcrib.calling.failures import as_failure
from toolcrib.calling.threads import Job
from toolcrib.core.addresses import AddressRules
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolFailedError, ToolTimeoutError
from toolcrib.core.tool import Tool

MAX_WORKERS = 4 * (os.cpu_count() or 1)
"""How many processes work at once; further calls wait for one of them."""

_WORKER = Path(__file__).with_name("worker.py")
_CANCEL_CHECK = 0.1


class Worker:
    """One process that answers one call at a time."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair()
        life_end, self._life = os.pipe()
        os.set_inheritable(life_end, True)
        command = [sys.executable, "-P", str(_WORKER), str(theirs.fileno()), str(life_end)]
        try:
            self._process = subprocess.Popen(
                command,
                pass_fds=(theirs.fileno(), life_end),
                stdin=subprocess.DEVNULL,
                stdout=2,  # a tool's prints must not mix with a protocol on our standard output
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(life_end)
        self._calls = Connection(ours.detach())
        self._path = list(sys.path)
        self._calls.send(self._path)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def usable(self) -> bool:
        """Whether it lives, and finds the modules that this process finds."""
        return self._process.poll() is None and self._path == sys.path

    def send(self, message: bytes) -> None:
        self._calls.send_bytes(message)

    def ready(self, seconds: float) -> bool:
        """Whether an answer, or the end of the process, comes within so many seconds."""
        return self._calls.poll(seconds)

    def receive(self) -> tuple[Any, ...]:
        answer: tuple[Any, ...] = pickle.loads(self._calls.recv_bytes())
        return answer

    def kill(self) -> None:
        """Dead when this returns, with everything it started."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self._process.wait()
        self._calls.close()
        os.close(self._life)


class ProcessRunner:
    """A pool of workers, of which at most ``max_idle`` are kept waiting for the next call."""

    def __init__(self, max_workers: int = MAX_WORKERS, max_idle: int = max(2, os.cpu_count() or 1)) -> None:
        self._slots = threading.BoundedSemaphore(max_workers)
        self._idle: deque[Worker] = deque()
        self._max_idle = max_idle
        self._lock = threading.Lock()
        self._closed = False
        self._busy: set[Worker] = set()

    async def __call__(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        message = self._message(tool, tool.keywords(arguments, context))
        cancelled = threading.Event()
        job = Job(partial(self._run, tool, message, cancelled))
        try:
            succeeded, value = await job.outcome
        except asyncio.CancelledError:
            cancelled.set()
            raise
        if succeeded:
            return value
        raise as_failure(tool.name, value)

    def _run(self, tool: Tool, message: bytes, cancelled: threading.Event) -> Any:
        with self._slots:
            worker = self._take()
            try:
                answer = _ask(worker, message, tool.spec.timeout_seconds, cancelled)
            except (EOFError, OSError):
                self._replace(worker)
                raise ToolFailedError(tool.name, "its process ended before it answered") from None
            except BaseException:
                self._replace(worker)
                raise
            if answer is None:
                self._replace(worker)
                raise ToolTimeoutError(tool.name, tool.spec.timeout_seconds or 0.0)
            self._give_back(worker)
        if answer[0] == "value":
            return answer[1]
        raise _raised(tool.name, *answer[1:])

    def _message(self, tool: Tool, keywords: dict[str, Any]) -> bytes:
        try:
            return pickle.dumps((_reference(tool.function), keywords, AddressRules.in_force() or None))
        except Exception as error:  # pickling runs arbitrary __reduce__ methods
            raise InvalidArgumentsError(
                f"the call of {tool.name!r} cannot be sent to another process: {error}", tool=tool.name
            ) from None

    def _take(self) -> Worker:
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.usable:
                    self._busy.add(worker)
                    return worker
                worker.kill()
        worker = Worker()
        with self._lock:
            self._busy.add(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            self._busy.discard(worker)
            if not self._closed and len(self._idle) < self._max_idle:
                self._idle.append(worker)
                return
        worker.kill()

    def _replace(self, worker: Worker) -> None:
        worker.kill()
        with self._lock:
            self._busy.discard(worker)
            if not self._closed and len(self._idle) < self._max_idle:
                self._idle.append(Worker())

    def workers(self) -> list[int]:
        """The process ids of the workers, idle and busy."""
        with self._lock:
            return [worker.pid for worker in (*self._idle, *self._busy)]

    def __reduce__(self) -> str:
        return "run_in_process"

    def close(self) -> None:
        with self._lock:
            self._closed = True
            workers = (*self._idle, *self._busy)
            self._idle.clear()
        for worker in workers:
            worker.kill()


def _ask(worker: Worker, message: bytes, seconds: float | None, cancelled: threading.Event) -> tuple[Any, ...] | None:
    """The worker's answer, or None past the deadline or when nobody waits for it any more."""
    worker.send(message)
    deadline = math.inf if seconds is None else time.monotonic() + seconds
    while True:
        left = deadline - time.monotonic()
        if worker.ready(max(0.0, min(left, _CANCEL_CHECK))):
            return worker.receive()
        if left <= 0 or cancelled.is_set():
            return None


def _raised(name: str, pickled: bytes | None, kind: str, text: str, trace: str) -> BaseException:
    """What the tool raised over there, or an error that says it if that does not survive the trip."""
    error: BaseException = ToolFailedError(name, f"{kind}: {text}" if text else kind, cause_type=kind)
    if pickled is not None:
        try:
            error = pickle.loads(pickled)
        except Exception:  # an exception class of its own may not be willing to be made again
            pass
    error.add_note(f"In the tool's process:\n{trace}")
    return error


def _reference(function: Callable[..., Any]) -> tuple[str, ...] | tuple[str, bytes]:
    """How a worker finds the function: by name if a module holds it or the tool made of it, otherwise by value."""
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if "<" not in name and _importable(module):
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part, None)
        if target is function or getattr(target, "function", None) is function:
            return ("name", module, name)
    import cloudpickle

    if module in sys.modules and not _importable(module):
        cloudpickle.register_pickle_by_value(sys.modules[module])
    return ("pickle", cloudpickle.dumps(function))


@cache
def _importable(module: str) -> bool:
    """Whether another process finds the module: not if it was loaded from a plugin folder, or typed in."""
    root = module.partition(".")[0]
    return bool(root) and root != "__main__" and PathFinder.find_spec(root) is not None


run_in_process = ProcessRunner()
atexit.register(run_in_process.close)

"""Run in another process, which is killed at the deadline with everything it started, wherever that went.

Workers are started when needed, below a keeper (:mod:`toolcrib.calling.keeper`), and kept for the next call. A worker
whose tool left something running is ended with it. A worker that is ended is replaced at once, so the next call does
not wait for a start.

This protects from code that hangs, crashes or leaks, not from malice: functions, arguments and answers travel as
pickles. Code from strangers comes as a bundle, and a bundle's process speaks JSON.
"""

from __future__ import annotations

import asyncio
import atexit
import importlib
import inspect
import itertools
import logging
import math
import os
import pickle
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import cache, partial
from importlib.machinery import PathFinder
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from toolcrib.calling.failures import as_failure
from toolcrib.calling.forks import in_forked_child
from toolcrib.calling.forwarding import emit
from toolcrib.calling.observing import trace_headers
from toolcrib.calling.places import CALLER, Places
from toolcrib.calling.threads import Job
from toolcrib.calling.wire import GarbledError, GaveUpError, Patience, Wire
from toolcrib.core.addresses import AddressRules
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolFailedError, ToolTimeoutError
from toolcrib.core.logs import logger_of
from toolcrib.core.positions import own_function
from toolcrib.core.progress import Listener, ToolEvent
from toolcrib.core.tool import Tool

MAX_WORKERS = 4 * (os.cpu_count() or 1)
"""How many processes work at once, half of them for one caller; further calls wait, caller by caller in turn."""
MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""What a tool may return, as a pickle."""

_KEEPER = Path(__file__).with_name("keeper.py")
_WORKER = Path(__file__).with_name("worker.py")
_KEEPER_SECONDS = 5.0
_START_SECONDS = 60.0

_log = logging.getLogger("toolcrib")
_unnamed = itertools.count()
"""Where no caller is named there is nobody to share with: each call stands for itself."""


class Worker:
    """One process that answers one call at a time, below a keeper that ends with it."""

    def __init__(self, max_bytes: int = MAX_ANSWER_BYTES) -> None:
        ours, theirs = socket.socketpair()
        life_end, self._life = os.pipe()
        words = (_KEEPER, life_end, _WORKER, theirs.fileno())
        self._wire = Wire(ours, max_bytes)
        self._killing = threading.Lock()
        self._dead = False
        try:
            self._keeper = subprocess.Popen(
                [sys.executable, "-P", *map(str, words)],
                pass_fds=(theirs.fileno(), life_end),
                stdin=subprocess.DEVNULL,
                stdout=2,  # a tool's prints must not mix with a protocol on our standard output
                start_new_session=True,
            )
        except BaseException:
            self._wire.close()
            os.close(self._life)
            raise
        finally:
            theirs.close()
            os.close(life_end)
        self._path = list(sys.path)
        self._wire.tell(pickle.dumps(self._path), Patience.of(_START_SECONDS, threading.Event()))

    @property
    def pid(self) -> int:
        """Of its keeper, which is the parent of the process that runs the tool and ends last."""
        return self._keeper.pid

    @property
    def usable(self) -> bool:
        """Whether it lives and waits for a call, and finds the modules that this process finds."""
        return self._wire.quiet and self._path == sys.path

    def ask(self, message: bytes, patience: Patience, listener: Listener | None) -> tuple[tuple[Any, ...], bool]:
        """What the tool came to, and whether the worker may be asked again: it left nothing running."""
        answer, alone = self._wire.ask(message, patience, partial(_hear, listener))
        kind, *rest = _read(answer)
        return (kind, *rest), alone

    def disown(self) -> None:
        """In a forked child, which must not speak to it, nor keep it alive, nor end it."""
        self._wire.close()
        os.close(self._life)
        self._keeper.returncode = 0  # not a child of this process: there is nothing to wait for

    def kill(self) -> None:
        """Nothing of it runs any more when this returns, nor of what it started."""
        with self._killing:
            if self._dead:
                return
            self._dead = True
            try:
                os.write(self._life, b".")  # closing would not be enough: a fork of this process holds the pipe too
            except OSError:
                pass  # it has ended by itself
            os.close(self._life)
            if not self._wire.ended(_KEEPER_SECONDS):
                _log.warning("the keeper %d of a tool's process had to be killed; what it started may run on", self.pid)
                self._keeper.kill()
            self._keeper.wait()
            self._wire.close()


class ProcessRunner:
    """A pool of workers, of which at most ``max_idle`` are kept waiting for the next call."""

    def __init__(
        self,
        max_workers: int = MAX_WORKERS,
        max_idle: int = max(2, os.cpu_count() or 1),
        max_bytes: int = MAX_ANSWER_BYTES,
    ) -> None:
        self._max_idle = max_idle
        self._max_bytes = max_bytes
        self._begin(max_workers)

    def _begin(self, max_workers: int) -> None:
        self._places = Places("worker processes", max_workers, each=max_workers // 2)
        self._lock = threading.Lock()
        self._closed = False
        self._idle: deque[Worker] = deque()
        self._busy: set[Worker] = set()

    def forget(self) -> None:
        """Begin anew in a forked child: the workers are its parent's."""
        for worker in (*self._idle, *self._busy):
            worker.disown()
        self._begin(self._places.most)

    async def __call__(self, tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        given = context.timeout_seconds
        until = math.inf if given is None else time.monotonic() + given
        message = self._message(tool, tool.keywords(arguments, context.heard_by(None)), context.listener is not None)
        caller = CALLER.get() or f"call {next(_unnamed)}"
        await self._places.take_within(caller, context.seconds_for(tool.spec.timeout_seconds))
        cancelled = threading.Event()
        job = Job(partial(self._run, tool, message, context, until, cancelled))
        job.when_done(partial(self._places.give_back, caller))
        try:
            succeeded, value = await job.outcome
        except asyncio.CancelledError:
            cancelled.set()
            raise
        if succeeded:
            return value
        raise as_failure(tool.name, value)

    def _run(self, tool: Tool, message: bytes, context: ToolContext, until: float, cancelled: threading.Event) -> Any:
        """The tool's own deadline counts from when a worker begins; the caller's, ``until``, from when they asked."""
        worker = self._take()
        seconds = context.seconds_for(tool.spec.timeout_seconds)
        try:
            answer, alone = worker.ask(message, Patience.of(seconds, cancelled, until), context.listener)
        except BaseException as error:
            self._replace(worker)
            raise _reason(tool, seconds, error) from None
        if alone:
            self._give_back(worker)
        else:
            self._replace(worker)
        if answer[0] == "value":
            return answer[1]
        raise _raised(tool.name, *answer[1:])

    def _message(self, tool: Tool, keywords: dict[str, Any], is_heard: bool) -> bytes:
        rules = AddressRules.in_force() or None
        try:
            level = logger_of(tool.name).getEffectiveLevel() if tool.context_parameter else 0
            how = (tool.context_parameter, is_heard, rules, level, dict(trace_headers()))
            return pickle.dumps((_reference(tool.function), keywords, *how))
        except Exception as error:  # pickling runs arbitrary __reduce__ methods
            raise InvalidArgumentsError(
                f"the call of {tool.name!r} cannot be sent to another process: {error}", tool=tool.name
            ) from None

    def _take(self) -> Worker:
        worker = self._from_idle() or Worker(self._max_bytes)
        with self._lock:
            self._busy.add(worker)
        return worker

    def _from_idle(self) -> Worker | None:
        while True:
            with self._lock:
                if not self._idle:
                    return None
                worker = self._idle.pop()
            if worker.usable:
                return worker
            worker.kill()

    def _give_back(self, worker: Worker) -> None:
        if not self._keep(worker, instead_of=worker):
            worker.kill()

    def _replace(self, worker: Worker) -> None:
        worker.kill()
        try:
            fresh = Worker(self._max_bytes)
        except OSError:  # no processes or descriptors are left: the next call will say so
            with self._lock:
                self._busy.discard(worker)
            return
        if not self._keep(fresh, instead_of=worker):
            fresh.kill()

    def _keep(self, worker: Worker, instead_of: Worker) -> bool:
        """Whether there is room for it among the idle ones. ``instead_of`` is busy no longer."""
        with self._lock:
            self._busy.discard(instead_of)
            room = not self._closed and len(self._idle) < self._max_idle
            if room:
                self._idle.append(worker)
            return room

    def workers(self) -> list[int]:
        """The process ids of the workers' keepers, idle and busy: a worker has ended when its keeper has."""
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


def _read(message: memoryview) -> Any:
    try:
        return pickle.loads(message)
    except Exception as error:  # unpickling runs what the classes of the value say
        raise GarbledError(f"its answer cannot be read: {type(error).__name__}: {error}") from None


def _hear(listener: Listener | None, message: memoryview) -> None:
    event = _read(message)
    if isinstance(event, logging.LogRecord):
        emit(event)
        return
    if listener is None or not isinstance(event, ToolEvent):
        raise GarbledError("something else than the answer came from its process")
    listener(event)


def _reason(tool: Tool, seconds: float | None, error: BaseException) -> BaseException:
    """What the caller is told when no answer came."""
    if isinstance(error, GaveUpError):
        return ToolTimeoutError(tool.name, seconds or 0.0)
    if isinstance(error, GarbledError):
        return ToolFailedError(tool.name, str(error))
    if isinstance(error, EOFError | OSError):
        return ToolFailedError(tool.name, "its process ended before it answered")
    return error


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
    module, name = getattr(function, "__module__", None) or "", getattr(function, "__qualname__", "")
    if "<" not in name and _importable(module):
        target: Any = importlib.import_module(module)
        for part in name.split("."):
            target = getattr(target, part, None)
        if target is function or getattr(target, "function", None) is function:
            return ("name", module, name)
    if (pickled := _bound_method(function)) is not None:
        return ("pickle", pickled)
    import cloudpickle

    for loaded in _only_here(module):
        cloudpickle.register_pickle_by_value(loaded)
    return ("pickle", cloudpickle.dumps(function))


def _bound_method(function: Callable[..., Any]) -> bytes | None:
    """A method as its instance and its name, if they can travel so: what its module holds does not go along then."""
    method = own_function(function)
    owner = getattr(method, "__self__", None)
    if not inspect.ismethod(method) or isinstance(owner, type) or not _importable(type(owner).__module__):
        return None
    try:
        return pickle.dumps(function)
    except Exception:  # pickling runs arbitrary __reduce__ methods
        return None


def _only_here(module: str) -> list[ModuleType]:
    """A module that no other process finds, and those like it that it has something of: they go along by value."""
    names, found = [module], dict[str, ModuleType]()
    while names:
        name = names.pop()
        if name not in found and name in sys.modules and not _importable(name):
            found[name] = sys.modules[name]
            names += filter(None, map(_module_of, vars(found[name]).values()))
    return list(found.values())


def _module_of(value: object) -> str | None:
    """Where a module's value comes from, if it is itself a module, or a class or a function of one."""
    if isinstance(value, ModuleType):
        return value.__name__
    return value.__module__ if isinstance(value, type | FunctionType) else None


@cache
def _importable(module: str) -> bool:
    """Whether another process finds the module: not if it was loaded from a plugin folder, or typed in."""
    root = module.partition(".")[0]
    if root in sys.stdlib_module_names:  # some of them, such as builtins, are on no path
        return True
    return bool(root) and root != "__main__" and PathFinder.find_spec(root) is not None


run_in_process = ProcessRunner()
atexit.register(run_in_process.close)
in_forked_child(run_in_process.forget)

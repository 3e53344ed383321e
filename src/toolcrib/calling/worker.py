"""The program inside a worker process. It stands alone: it runs by its path, so that a worker starts without pydantic.

It runs below a keeper (:mod:`toolcrib.calling.keeper`), which ends it and everything that it started. Messages are
frames over one socket, a header and then pickles of plain tuples; the first frame is the parent's ``sys.path``:

    parent -> worker   (function, keywords, name of the keyword that is the context or None, whether anybody listens,
                        address rules in force or None, least level of log records, headers of the trace)
                       function: ("name", module, qualified name) or ("pickle", bytes)
    worker -> parent   any number of log records, and of events if anybody listens, marked TOLD in the header; then
                       ("value", value) | ("error", pickle of the exception or None, type name, text, traceback)
"""

from __future__ import annotations

import ctypes
import importlib
import inspect
import io
import os
import pickle
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

Functions = dict[tuple[Any, ...], Callable[..., Any]]

HEADER = struct.Struct("!QQB")
"""Of a frame: the number of the call, the bytes that follow, and what they are."""
ANSWER, LAST_ANSWER, TOLD = 0, 1, 2
"""LAST_ANSWER says that the worker is alone (see :func:`_alone`), TOLD that the answer is still to come."""
_PR_SET_CHILD_SUBREAPER = 36


def main(channel: int) -> None:
    if sys.platform == "linux":  # what a tool's child leaves behind becomes our child, so that we know of it
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    me = os.getpid()
    sys.path[:] = pickle.loads(_received(channel)[1])
    functions: Functions = {}
    while True:
        try:
            number, message = _received(channel)
        except EOFError:
            return
        teller = _Teller(channel, number)
        answer = _answered(functions, message, teller)
        if os.getpid() != me:
            os._exit(0)  # a tool has forked and come back twice: only one of the two may answer
        teller.close()
        _write(channel, HEADER.pack(number, len(answer), LAST_ANSWER if _alone() else ANSWER) + answer)


class _Teller:
    """Tells the parent what happens during one call, from any thread, until its answer is sent."""

    def __init__(self, channel: int, number: int) -> None:
        self._channel = channel
        self._number = number
        self._lock = threading.Lock()
        self._open = True

    def __call__(self, event: object) -> None:
        told = _dumped(event)
        with self._lock:
            if self._open:
                _write(self._channel, HEADER.pack(self._number, len(told), TOLD) + told)

    def close(self) -> None:
        with self._lock:
            self._open = False


def _received(channel: int) -> tuple[int, bytes]:
    number, size, _ = HEADER.unpack(_read(channel, HEADER.size))
    return number, _read(channel, size)


def _read(channel: int, size: int) -> bytes:
    pieces, left = [], size
    while left:
        piece = os.read(channel, min(left, 1 << 20))
        if not piece:
            raise EOFError
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)


def _write(channel: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(channel, rest) :]


def _alone() -> bool:
    """Whether this process has no children: nothing runs any more that a call has started."""
    if not hasattr(os, "waitid"):
        return True
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return False


def _answered(functions: Functions, message: bytes, teller: _Teller) -> bytes:
    try:
        function, keywords, context, is_heard, rules, level, trace = pickle.loads(message)
        listener = teller if is_heard else None
        if context is not None:
            keywords[context] = keywords[context].heard_by(listener)
            _send_logs(teller, keywords[context].tool, level)
        if function not in functions:
            functions[function] = _load(function)
        with nullcontext() if rules is None else _fence(rules), _within(trace) if trace else nullcontext():
            return _dumped(("value", _called(functions[function], keywords, listener)))
    except BaseException as error:
        return _failure(error)


def _fence(rules: Any) -> AbstractContextManager[None]:
    from toolcrib.core.addresses import fence  # as the rules themselves, only if there are any

    return fence(rules)


def _send_logs(teller: _Teller, tool: str, level: int) -> None:
    from toolcrib.calling.forwarding import send_logs  # the context has brought what this needs

    send_logs(teller, tool, level)


@contextmanager
def _within(trace: dict[str, str]) -> Iterator[None]:
    """Spans that the tool makes belong to the span of its call."""
    try:
        from opentelemetry import context, propagate
    except ImportError:
        yield
        return
    token = context.attach(propagate.extract(trace))
    try:
        yield
    finally:
        context.detach(token)


def _called(function: Callable[..., Any], keywords: dict[str, Any], listener: _Teller | None) -> Any:
    value = function(**keywords)
    if hasattr(type(value), "__next__"):
        from toolcrib.calling.items import collected  # as below: most tools here are plain functions

        return collected(value, listener)
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        import asyncio

        from toolcrib.calling.items import awaited

        return asyncio.run(awaited(value, listener))
    return value


def _load(function: tuple[Any, ...]) -> Callable[..., Any]:
    target: Any
    if function[0] == "pickle":
        target = pickle.loads(function[1])
    else:
        target = importlib.import_module(function[1])
        for part in function[2].split("."):
            target = getattr(target, part)
    found: Callable[..., Any] = getattr(target, "function", target)  # a tool stands under its function's name
    return found


def _failure(error: BaseException) -> bytes:
    trace = "".join(traceback.format_exception(error))
    try:
        pickled = _dumped(error)
    except Exception:
        pickled = None
    return _dumped(("error", pickled, type(error).__name__, str(error), trace))


def _dumped(message: object) -> bytes:
    """By value if the value's class is not importable on the other side."""
    try:
        return pickle.dumps(message)
    except Exception:
        import cloudpickle

        buffer = io.BytesIO()
        cloudpickle.dump(message, buffer)
        return buffer.getvalue()


if __name__ == "__main__":
    main(int(sys.argv[1]))

"""The program inside a worker process. It stands alone: it runs by its path, so that a worker starts without pydantic.

It runs below a keeper (:mod:`toolcrib.calling.keeper`), which ends it and everything that it started. Messages are
frames over one socket, a header and then pickles of plain tuples; the first frame is the parent's ``sys.path``:

    parent -> worker   (function, keywords, address rules in force or None)
                       function: ("name", module, qualified name) or ("pickle", bytes)
    worker -> parent   ("value", value) | ("error", pickle of the exception or None, type name, text, traceback)
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
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

Functions = dict[tuple[Any, ...], Callable[..., Any]]

HEADER = struct.Struct("!QQ?")
"""Of a frame: the number of the call, the bytes that follow, and whether the worker is alone (see :func:`_alone`)."""
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
        answer = _answered(functions, message)
        if os.getpid() != me:
            os._exit(0)  # a tool has forked and come back twice: only one of the two may answer
        _write(channel, HEADER.pack(number, len(answer), _alone()) + answer)


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


def _answered(functions: Functions, message: bytes) -> bytes:
    try:
        function, keywords, rules = pickle.loads(message)
    except Exception as error:
        return _failure(error)
    return _answer(functions, function, keywords, rules)


def _answer(functions: Functions, function: tuple[Any, ...], keywords: dict[str, Any], rules: Any) -> bytes:
    try:
        if function not in functions:
            functions[function] = _load(function)
        with nullcontext() if rules is None else _fence(rules):
            return _dumped(("value", _called(functions[function], keywords)))
    except BaseException as error:
        return _failure(error)


def _fence(rules: Any) -> AbstractContextManager[None]:
    from toolcrib.core.addresses import fence  # as the rules themselves, only if there are any

    return fence(rules)


def _called(function: Callable[..., Any], keywords: dict[str, Any]) -> Any:
    value = function(**keywords)
    if inspect.isawaitable(value):
        import asyncio  # slow to import, and most tools here are plain functions

        return asyncio.run(_awaited(value))
    return value


async def _awaited(value: Any) -> Any:
    return await value


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

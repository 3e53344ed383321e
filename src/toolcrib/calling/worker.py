"""The program inside a worker process. It stands alone: it runs by its path, so that a worker starts without pydantic.

Messages are pickles of plain tuples over one socket:

    parent -> worker   (function, keywords, address rules in force or None)
                       function: ("name", module, qualified name) or ("pickle", bytes)
    worker -> parent   ("value", value) | ("error", pickle of the exception or None, type name, text, traceback)
"""

from __future__ import annotations

import importlib
import inspect
import io
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from multiprocessing.connection import Connection
from typing import Any

Functions = dict[tuple[Any, ...], Callable[..., Any]]


def main(call_fd: int, life_fd: int) -> None:
    threading.Thread(target=_die_with_parent, args=(life_fd,), daemon=True).start()
    calls = Connection(call_fd)
    sys.path[:] = calls.recv()
    functions: Functions = {}
    while True:
        try:
            function, keywords, rules = pickle.loads(calls.recv_bytes())
        except EOFError:
            return
        except Exception as error:
            calls.send_bytes(_failure(error))
            continue
        calls.send_bytes(_answer(functions, function, keywords, rules))


def _die_with_parent(fd: int) -> None:
    """The parent holds the other end and never writes: a read returns when the parent is gone."""
    os.read(fd, 1)
    os._exit(1)


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
    main(int(sys.argv[1]), int(sys.argv[2]))

"""What a bundle says of its result: bytes on the socket to the service, and what every door makes of them.

The other end writes the bytes and hangs up. What begins as JSON is put into a frame, so that it is read.
"""

import asyncio
import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.attacks.fuzz.target import Attack, Fault, Target

from toolcrib.adapters.runners.box import Ended
from toolcrib.adapters.runners.bundle_calls import program_answer, python_answer
from toolcrib.adapters.runners.wire import TooLargeError, frame, receive
from toolcrib.core.errors import ToolcribError
from toolcrib.core.json import as_json
from toolcrib.core.result import ToolResult
from toolcrib.formats import render_result
from toolcrib.surfaces.http.problems import json_bytes, problem_answer

_MOST = 100_000
_SECONDS = 60.0
_PROVIDERS = ("openai", "openrouter", "anthropic", "gemini", "mcp")


async def _received(content: bytes) -> bytes:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        with suppress(BlockingIOError):
            theirs.sendall(content)
        theirs.shutdown(socket.SHUT_WR)
        return await receive(ours, _MOST, asyncio.get_running_loop().time() + _SECONDS)


def _told(answer: Callable[[], Any]) -> None:
    """As every door sends it, whether it is a result or a failure."""
    try:
        result = ToolResult.success_result(answer())
    except ToolcribError as error:
        problem_answer(error)
        result = ToolResult.of_error(error)
    json.loads(json_bytes(as_json(result.to_dict())))
    for name in _PROVIDERS:
        json.dumps(render_result(name, "c", result), allow_nan=False).encode()


@contextmanager
def _opened(_folder: Path) -> Iterator[Attack]:
    with asyncio.Runner() as runner:

        def attack(content: bytes) -> None:
            try:
                said = runner.run(_received(frame(content) if content.startswith(b"{") else content))
            except TimeoutError:
                raise Fault("a bundle that has hung up is waited for") from None
            except (EOFError, ConnectionError, TooLargeError):
                return
            _told(lambda: python_answer("a", said, "requests\n").value)
            _told(lambda: program_answer("a", Ended(0, said, "")))
            _told(lambda: program_answer("a", Ended(-6, said, said.decode(errors="replace"))))

        yield attack


_VALUES = (
    b'{"value": {"a": [1, 2.5, null, "x"]}, "alone": true}', b'{"value": NaN}', b'{"value": "\\ud800"}',
    b'{"value": ' + b"[" * 900 + b"]" * 900 + b"}", b'{"value": 1e999, "alone": 1}',
    b'{"error": {"type": "KeyError", "message": "x", "missing": "", "trace": "t"}}',
    b'{"error": {"type": "ModuleNotFoundError", "message": "x", "missing": "numpy", "trace": "t"}}',
    b'{"error": {"type": "\\ud800", "message": "\\udfff", "missing": "\\ud800", "trace": "\\ud800"}}',
)  # fmt: skip

TARGET = Target(
    "answers",
    (*_VALUES, *map(frame, _VALUES[:3]), frame(b"plain text of a program\n")),
    (
        bytes(8), b"\xff" * 8, bytes(7) + b"\1", b"NaN", b"-Infinity", b'"\\ud800"', b"9" * 400, b'"value"', b'"error"',
        b'"missing"', b"1e400", b"\\u0000", b"[" * 500, b'{"a":' * 500, b"\xed\xa0\x80",
    ),
    _opened,
    1200,
)  # fmt: skip

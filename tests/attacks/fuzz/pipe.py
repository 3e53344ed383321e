"""Frames that a tool's process writes to the parent of its worker.

The other end writes the bytes and hangs up. ``@NUMBER@`` in an input is replaced by the number of the question, which
no tool can know, so that answers arrive which are good but for one thing. What is in an answer is not fuzzed: it is a
pickle, and decision 0124 says why.
"""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.attacks.fuzz.target import Attack, Fault, Target

from toolcrib.calling.wire import GarbledError, GaveUpError, Patience, Wire
from toolcrib.calling.worker import HEADER

_MOST = 10_000
_SECONDS = 60.0
_NUMBER = b"@NUMBER@"


def _attack(content: bytes) -> None:
    """Nothing but the answer to the question is handed out, and nothing is waited for that cannot come."""
    ours, theirs = socket.socketpair()
    wire = Wire(ours, _MOST)
    with theirs:
        wire.tell(b"?", Patience.of(_SECONDS, threading.Event()))
        number = HEADER.unpack(theirs.recv(HEADER.size))[0] + 1
        theirs.setblocking(False)
        with suppress(BlockingIOError):
            theirs.sendall(content.replace(_NUMBER, number.to_bytes(8)))
        theirs.shutdown(socket.SHUT_WR)
        with suppress(GarbledError, EOFError, OSError):
            _asked(wire, content)
    wire.close()


def _asked(wire: Wire, content: bytes) -> None:
    try:
        answer, _ = wire.ask(b"?", Patience.of(_SECONDS, threading.Event()))
    except GaveUpError:
        raise Fault("the parent of a worker that has hung up waits until the deadline") from None
    if len(answer) > _MOST or not content.startswith(_NUMBER):
        raise Fault(f"taken for the answer: {bytes(answer[:100])!r}")


@contextmanager
def _opened(_folder: Path) -> Iterator[Attack]:
    yield _attack


def _answered(content: bytes, *, alone: bool = True) -> bytes:
    return _NUMBER + HEADER.pack(0, len(content), alone)[8:] + content


TARGET = Target(
    "pipe",
    (_answered(b"x"), _answered(b"x", alone=False), _answered(b""), _answered(b"x" * _MOST), _answered(b"x") * 2),
    (_NUMBER, bytes(8), b"\xff" * 8, bytes(7) + b"\1", bytes(6) + b"\x27\x10", b"\2", b"\0\0\1"),
    _opened,
    40_000,
)

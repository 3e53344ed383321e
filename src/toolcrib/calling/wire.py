"""The parent's end of the socket to a worker process, which may hang, die half way or write what it likes.

Nothing here waits longer than the caller's patience or takes more than its limit: neither for the bytes of a frame
nor for room to send one. What is not the answer to the question just asked is never handed out.
"""

from __future__ import annotations

import math
import os
import select
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

from toolcrib.calling.worker import HEADER, LAST_ANSWER, TOLD

_CANCEL_CHECK = 0.1
_PIECE = 1 << 16


class GaveUpError(Exception):
    """The deadline passed, or nobody waits for the answer any more."""


class GarbledError(Exception):
    """What came is no answer; the text says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Patience:
    """Until a deadline by the monotonic clock, or until the caller is gone."""

    deadline: float
    cancelled: threading.Event

    @classmethod
    def of(cls, seconds: float | None, cancelled: threading.Event, until: float = math.inf) -> Self:
        """For so many ``seconds`` from now, and not beyond ``until``."""
        return cls(until if seconds is None else min(until, time.monotonic() + seconds), cancelled)

    def next_wait(self) -> float:
        """How long to wait before asking again; raises GaveUpError if there is no more waiting."""
        left = min(self.deadline - time.monotonic(), _CANCEL_CHECK)
        if left <= 0 or self.cancelled.is_set():
            raise GaveUpError
        return left


class Wire:
    """Asks one question at a time. An answer, and what is told before it, has at most ``max_bytes``."""

    def __init__(self, connected: socket.socket, max_bytes: int) -> None:
        connected.setblocking(False)
        self._socket = connected
        self._max_bytes = max_bytes
        self._number = int.from_bytes(os.urandom(6))
        self._readable = _poll_of(connected, select.POLLIN)

    @property
    def quiet(self) -> bool:
        """Whether the other side lives and has said nothing without being asked."""
        return not self._readable.poll(0)

    def tell(self, message: bytes, patience: Patience) -> None:
        self._number += 1
        self._send(HEADER.pack(self._number, len(message), 0) + message, patience)

    def ask(
        self, message: bytes, patience: Patience, heard: Callable[[memoryview], object] | None = None
    ) -> tuple[memoryview, bool]:
        """The answer, and whether the worker is alone after it. ``heard`` gets what is told before it.

        Raises GaveUpError, GarbledError, or OSError or EOFError if the other side is gone.
        """
        patience.next_wait()  # nothing is begun for who has gone already
        self.tell(message, patience)
        data = bytearray()
        told = 0
        while True:
            end, kind = self._frame(data, patience, self._max_bytes - told)
            if kind != TOLD:
                break
            told += end
            if heard is None:
                raise GarbledError("something else than the answer came from its process")
            heard(memoryview(bytes(data[HEADER.size : end])))
            del data[:end]
        if len(data) > end:
            raise GarbledError("more than the answer came from its process")
        return memoryview(data)[HEADER.size :], kind == LAST_ANSWER

    def _frame(self, data: bytearray, patience: Patience, most: int) -> tuple[int, int]:
        """Where the next frame ends, once ``data`` holds it, and its kind."""
        self._receive(data, HEADER.size, patience)
        number, size, kind = HEADER.unpack_from(data)
        if number != self._number:
            raise GarbledError("something else than the answer came from its process")
        if size > most:
            raise GarbledError(f"its answer has {size:,} bytes, and {most:,} are allowed")
        self._receive(data, HEADER.size + size, patience)
        return HEADER.size + size, kind

    def ended(self, seconds: float) -> bool:
        """Whether nobody holds the other end any more, at the latest after so many seconds."""
        end = _poll_of(self._socket, 0)  # the end is always told, and nothing else
        return bool(end.poll(seconds * 1000))

    def close(self) -> None:
        self._socket.close()

    def _send(self, data: bytes, patience: Patience) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except BlockingIOError:
                _poll_of(self._socket, select.POLLOUT).poll(patience.next_wait() * 1000)

    def _receive(self, data: bytearray, size: int, patience: Patience) -> None:
        """Until ``data`` has at least so many bytes."""
        while len(data) < size:
            if not self._readable.poll(patience.next_wait() * 1000):
                continue
            piece = self._socket.recv(_PIECE)
            if not piece:
                raise EOFError
            data += piece


def _poll_of(connected: socket.socket, events: int) -> select.poll:
    poll = select.poll()
    poll.register(connected, events)
    return poll

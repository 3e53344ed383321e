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
from dataclasses import dataclass
from typing import Self

from toolcrib.calling.worker import HEADER

_CANCEL_CHECK = 0.1
_PIECE = 1 << 20


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
    def of(cls, seconds: float | None, cancelled: threading.Event) -> Self:
        return cls(math.inf if seconds is None else time.monotonic() + seconds, cancelled)

    def next_wait(self) -> float:
        """How long to wait before asking again; raises GaveUpError if there is no more waiting."""
        left = min(self.deadline - time.monotonic(), _CANCEL_CHECK)
        if left <= 0 or self.cancelled.is_set():
            raise GaveUpError
        return left


class Wire:
    """Asks one question at a time. An answer has at most ``max_bytes``."""

    def __init__(self, connected: socket.socket, max_bytes: int) -> None:
        self._socket = connected
        self._max_bytes = max_bytes
        self._number = int.from_bytes(os.urandom(6))
        self._poll = select.poll()
        self._poll.register(connected, select.POLLIN)

    @property
    def quiet(self) -> bool:
        """Whether the other side lives and has said nothing without being asked."""
        return not self._poll.poll(0)

    def tell(self, message: bytes, patience: Patience) -> None:
        self._number += 1
        self._send(HEADER.pack(self._number, len(message), False) + message, patience)

    def ask(self, message: bytes, patience: Patience) -> tuple[bytearray, bool]:
        """The answer, and whether the worker is alone after it.

        Raises GaveUpError, GarbledError, or OSError or EOFError if the other side is gone.
        """
        self.tell(message, patience)
        number, size, alone = HEADER.unpack(self._receive(HEADER.size, patience))
        if number != self._number:
            raise GarbledError("something else than the answer came from its process")
        if size > self._max_bytes:
            raise GarbledError(f"its answer has {size:,} bytes, and {self._max_bytes:,} are allowed")
        return self._receive(size, patience), alone

    def ended(self, seconds: float) -> bool:
        """Whether nobody holds the other end any more, at the latest after so many seconds."""
        poll = select.poll()
        poll.register(self._socket, 0)  # the end is always told, and nothing else
        return bool(poll.poll(seconds * 1000))

    def close(self) -> None:
        self._socket.close()

    def _send(self, data: bytes, patience: Patience) -> None:
        rest = memoryview(data)
        while rest:
            self._socket.settimeout(patience.next_wait())
            try:
                rest = rest[self._socket.send(rest) :]
            except TimeoutError:
                continue

    def _receive(self, size: int, patience: Patience) -> bytearray:
        data = bytearray()
        while len(data) < size:
            self._socket.settimeout(patience.next_wait())
            try:
                piece = self._socket.recv(min(size - len(data), _PIECE))
            except TimeoutError:
                continue
            if not piece:
                raise EOFError
            data += piece
        return data

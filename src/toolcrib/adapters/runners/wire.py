"""Messages of a sandbox as the event loop reads them: eight bytes of length, then as many of content."""

from __future__ import annotations

import asyncio
import socket

from toolcrib.core.errors import ToolcribError

_HEAD = 8
_FIRST, _PIECE = 4096, 64 * 1024


class TooLargeError(ToolcribError):
    """What comes is announced as larger than what may come."""


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(_HEAD, "big") + content


async def send(channel: socket.socket, content: bytes, deadline: float) -> None:
    """Past the deadline it is a TimeoutError: who does not read keeps nobody waiting."""
    left = memoryview(frame(content))
    while True:
        try:
            left = left[channel.send(left) :]
        except BlockingIOError:
            pass
        if not left:
            return
        await _ready(channel, deadline, to_write=True)


async def receive(channel: socket.socket, limit: int, deadline: float) -> bytes:
    """The next message. EOFError if the other end is closed, TimeoutError past the deadline."""
    try:
        found = channel.recv(_FIRST)
    except BlockingIOError:
        await _ready(channel, deadline)
        found = channel.recv(_FIRST)
    if not found:
        raise EOFError
    while len(found) < _HEAD:
        found += await _piece(channel, deadline)
    wanted = _HEAD + int.from_bytes(found[:_HEAD], "big")
    if wanted > _HEAD + limit:
        raise TooLargeError(f"more than {limit:,} bytes")
    if len(found) < wanted:
        pieces = bytearray(found)
        while len(pieces) < wanted:
            pieces += await _piece(channel, deadline)
        found = bytes(pieces)
    if len(found) > wanted:
        raise EOFError  # it says more than one thing at a time: what is left would be taken for the next answer
    return found[_HEAD:]


async def _piece(channel: socket.socket, deadline: float) -> bytes:
    await _ready(channel, deadline)
    piece = channel.recv(_PIECE)
    if not piece:
        raise EOFError
    return piece


async def _ready(channel: socket.socket, deadline: float, *, to_write: bool = False) -> None:
    """Return when the channel can be read, or written to. Past the deadline it is a TimeoutError."""
    loop = asyncio.get_running_loop()
    add, remove = (loop.add_writer, loop.remove_writer) if to_write else (loop.add_reader, loop.remove_reader)
    ready: asyncio.Future[bool] = loop.create_future()
    handle = channel.fileno()
    add(handle, _settle, ready, True)
    timer = loop.call_at(deadline, _settle, ready, False)
    try:
        if not await ready:
            raise TimeoutError
    finally:
        timer.cancel()
        remove(handle)


def _settle(ready: asyncio.Future[bool], answer: bool) -> None:
    if not ready.done():
        ready.set_result(answer)

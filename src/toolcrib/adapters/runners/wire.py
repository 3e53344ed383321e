"""Messages of a sandbox as the event loop reads them: eight bytes of length, then as many of content."""

from __future__ import annotations

import asyncio
import select
import socket

from toolcrib.core.errors import ToolcribError

_HEAD = 8
_PIECE = 64 * 1024


class TooLargeError(ToolcribError):
    """What comes is announced as larger than what may come."""


def frame(content: bytes) -> bytes:
    return len(content).to_bytes(_HEAD, "big") + content


async def send(channel: socket.socket, content: bytes, deadline: float) -> None:
    """Past the deadline it is a TimeoutError: who does not read keeps nobody waiting."""
    message = frame(content)
    try:
        sent = channel.send(message)
    except BlockingIOError:
        sent = 0
    if sent < len(message):
        async with asyncio.timeout_at(deadline):
            await asyncio.get_running_loop().sock_sendall(channel, memoryview(message)[sent:])


async def receive(channel: socket.socket, limit: int, deadline: float, patience: float = 0.0) -> bytes:
    """The next message. EOFError if the other end is closed, TimeoutError past the deadline.

    For so many seconds, ``patience``, it is waited for here and now: a way through the event loop takes longer than
    what answers at once.
    """
    if not patience or not select.select((channel,), (), (), patience)[0]:
        await _readable(channel, deadline)
    found = channel.recv(_PIECE)
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
    await _readable(channel, deadline)
    piece = channel.recv(_PIECE)
    if not piece:
        raise EOFError
    return piece


def is_quiet(channel: socket.socket) -> bool:
    """Whether there is nothing to read, not even an end."""
    try:
        channel.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


async def _readable(channel: socket.socket, deadline: float) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bool] = loop.create_future()
    handle = channel.fileno()
    loop.add_reader(handle, _settle, ready, True)
    timer = loop.call_at(deadline, _settle, ready, False)
    try:
        if not await ready:
            raise TimeoutError
    finally:
        timer.cancel()
        loop.remove_reader(handle)


def _settle(ready: asyncio.Future[bool], answer: bool) -> None:
    if not ready.done():
        ready.set_result(answer)

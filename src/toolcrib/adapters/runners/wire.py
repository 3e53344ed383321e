"""Messages of a sandbox as the event loop reads them: eight bytes of length, then as many of content."""

from __future__ import annotations

import asyncio
import socket

from toolcrib.core.errors import ToolcribError

_HEAD = 8
_PIECE = 256 * 1024


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


async def receive(channel: socket.socket, limit: int, deadline: float) -> bytes:
    """The next message. EOFError if the other end is closed, TimeoutError past the deadline."""
    found = bytearray()
    wanted = _HEAD
    while len(found) < wanted:
        await _readable(channel, deadline)
        piece = channel.recv(_PIECE)
        if not piece:
            raise EOFError
        found += piece
        if wanted == _HEAD and len(found) >= _HEAD:
            wanted += int.from_bytes(found[:_HEAD], "big")
            if wanted > _HEAD + limit:
                raise TooLargeError(f"more than {limit:,} bytes")
    if len(found) > wanted:
        raise EOFError  # it says more than one thing at a time: what is left would be taken for the next answer
    return bytes(found[_HEAD:])


def is_quiet(channel: socket.socket) -> bool:
    """Whether there is nothing to read, not even an end."""
    try:
        channel.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return True
    return False


async def _readable(channel: socket.socket, deadline: float) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[bool] = loop.create_future()
    loop.add_reader(channel, _settle, ready, True)
    timer = loop.call_at(deadline, _settle, ready, False)
    try:
        if not await ready:
            raise TimeoutError
    finally:
        timer.cancel()
        loop.remove_reader(channel)


def _settle(ready: asyncio.Future[bool], answer: bool) -> None:
    if not ready.done():
        ready.set_result(answer)

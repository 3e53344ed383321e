"""Messages over a socket: eight bytes of length, then as many of content."""

import json
import socket
from typing import Any

HEAD = 8


def read_frame(channel: socket.socket) -> bytes:
    """The next frame; EOFError if the other end is closed."""
    return _read(channel, int.from_bytes(_read(channel, HEAD), "big"))


def write_frame(channel: socket.socket, content: bytes) -> None:
    channel.sendall(len(content).to_bytes(HEAD, "big") + content)


def tell(channel: socket.socket, **words: Any) -> None:
    write_frame(channel, json.dumps(words).encode())


def _read(channel: socket.socket, size: int) -> bytes:
    content = channel.recv(size, socket.MSG_WAITALL) if size else b""
    while len(content) < size:
        piece = channel.recv(size - len(content))
        if not piece:
            raise EOFError
        content += piece
    return content

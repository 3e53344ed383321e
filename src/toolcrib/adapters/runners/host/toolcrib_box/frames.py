"""Messages over a socket: eight bytes of length, then as many of content."""

import json
import socket
from typing import Any

HEAD = 8
_FIRST, _PIECE = 4096, 256 * 1024


def read_frame(channel: socket.socket) -> bytes:
    """The next frame, behind which nothing may follow; EOFError if the other end is closed."""
    content = channel.recv(_FIRST)
    while len(content) < HEAD:
        content += _piece(channel, HEAD)
    wanted = HEAD + int.from_bytes(content[:HEAD], "big")
    if len(content) < wanted:
        pieces, missing = [content], wanted - len(content)
        while missing:
            pieces.append(_piece(channel, missing))
            missing -= len(pieces[-1])
        content = b"".join(pieces)
    return content[HEAD:]


def write_frame(channel: socket.socket, content: bytes) -> None:
    channel.sendall(len(content).to_bytes(HEAD, "big") + content)


def tell(channel: socket.socket, **words: Any) -> None:
    write_frame(channel, json.dumps(words).encode())


def _piece(channel: socket.socket, most: int) -> bytes:
    piece = channel.recv(min(most, _PIECE))
    if not piece:
        raise EOFError
    return piece

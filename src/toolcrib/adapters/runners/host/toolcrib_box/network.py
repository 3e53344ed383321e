"""The one way out of a network namespace: a socket that listens inside, and at which the service answers."""

import fcntl
import socket
import struct

_SIOCGIFFLAGS, _SIOCSIFFLAGS, _IFF_UP = 0x8913, 0x8914, 1


def open_way_out(control: socket.socket) -> int:
    """Hand the service a socket that listens in here; its port."""
    with socket.socket() as listening:
        _bring_up_loopback(listening)
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        socket.send_fds(control, [b"!"], [listening.fileno()])
        port: int = listening.getsockname()[1]
        return port


def variables(port: int) -> dict[str, str]:
    """What tells a program of the way out."""
    address = f"http://127.0.0.1:{port}"
    names = ("http_proxy", "https_proxy", "all_proxy")
    return {spelt: address for name in names for spelt in (name, name.upper())}


def _bring_up_loopback(any_socket: socket.socket) -> None:
    request = struct.pack("16sH14x", b"lo", 0)
    found = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, request)
    flags = struct.unpack_from("H", found, 16)[0] | _IFF_UP
    fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", flags))

"""Which connections must go: silent ones when there are too many, and those whose answer nobody takes."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from tests.support.waiting import wait_until

from toolcrib.surfaces.connections import Connection, Peer, Watch, first_to_go, places_for


class Listener:
    """A server of this process that has accepted connections, and its clients."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._listener = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port = int(self._listener.getsockname()[1])
        self.ours: list[socket.socket] = []

    def connect(self, said: bytes = b"") -> socket.socket:
        client = self._stack.enter_context(socket.create_connection(("127.0.0.1", self.port)))
        ours, _ = self._listener.accept()
        self.ours.append(self._stack.enter_context(ours))
        if said:
            client.sendall(said)
            ours.recv(len(said))
        return client


def peer(client: socket.socket) -> Peer:
    address, port = client.getsockname()
    return address, str(port)


def hung_up(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return not client.recv(1)
    except BlockingIOError:
        return False
    except ConnectionError:
        return True


@pytest.fixture
def listener() -> Iterator[Listener]:
    with ExitStack() as stack:
        yield Listener(stack)


def test_the_silent_go_first_and_the_answered_stay(listener: Listener) -> None:
    answering = [listener.connect(b"GET") for _ in range(4)]
    silent = [listener.connect() for _ in range(5)]
    speaking = [listener.connect(b"G") for _ in range(3)]
    under_way = {peer(client) for client in answering}
    Watch(listener.port, 14, lambda: under_way).look()
    assert not any(map(hung_up, answering + silent + speaking)), "there is room"
    Watch(listener.port, 13, lambda: under_way).look()
    wait_until(lambda: sum(map(hung_up, silent)) == 5)
    assert sum(map(hung_up, speaking)) == 1
    assert not any(map(hung_up, answering))
    Watch(listener.port, 1, lambda: under_way).look()
    wait_until(lambda: all(map(hung_up, speaking)))
    assert not any(map(hung_up, answering))


def send(ours: socket.socket) -> str:
    try:
        ours.send(bytes(65536), socket.MSG_DONTWAIT)
    except BlockingIOError:
        return "full"
    except OSError:
        return "given up"
    return "sent"


def test_an_answer_that_nobody_takes_is_given_up(listener: Listener) -> None:
    now = 0.0
    clients = [listener.connect(b"GET") for _ in range(3)]
    nothing, taking, quiet = listener.ours
    for ours in (nothing, taking):
        wait_until(lambda ours=ours: send(ours) == "full")  # type: ignore[misc]
    watch = Watch(listener.port, 100, lambda: set(map(peer, clients)), clock=lambda: now)
    watch.look()
    for _ in range(50):
        clients[1].recv(65536)
    wait_until(lambda: send(taking) == "sent")
    now = 29.0
    watch.look()
    now = 31.0
    watch.look()
    assert send(nothing) == "given up"
    assert send(taking) != "given up"
    assert send(quiet) == "sent"


def one(address: str, port: int, silent: float, *, spoke_last: bool = False, received: int = 9) -> Connection:
    return Connection(0, (address, str(port)), silent, spoke_last, received, 0, False)


def test_who_holds_the_most_loses_the_most() -> None:
    many = [one("192.0.2.1", port, silent=port) for port in range(5)]
    few = [one("192.0.2.2", port, silent=100 + port) for port in range(2)]
    assert first_to_go(many + few, (), ())[:3] == [many[4], many[3], many[2]]
    proxied = [one("192.0.2.9", port, silent=port) for port in range(5)]
    assert first_to_go(proxied + few, (), {"192.0.2.9"})[:2] == [few[1], few[0]]


def test_those_who_never_spoke_go_before_those_who_wait() -> None:
    mute = one("127.0.0.1", 1, silent=1, received=0)
    idle = one("127.0.0.1", 2, silent=5)
    asking = one("127.0.0.1", 3, silent=9, spoke_last=True)
    assert first_to_go([asking, idle, mute], (), ()) == [mute, idle, asking]
    assert first_to_go([asking, idle, mute], {mute.peer}, ()) == [idle, asking]


def test_there_are_never_more_places_than_open_files(monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    limits = {"now": (256, 300)}
    monkeypatch.setattr(resource, "getrlimit", lambda _: limits["now"])
    monkeypatch.setattr(resource, "setrlimit", lambda _, given: limits.update(now=given))
    assert places_for(1000) == 300 - 128
    assert limits["now"] == (300, 300)
    limits["now"] = (1024, resource.RLIM_INFINITY)
    assert places_for(2000) == 2000
    limits["now"] = (64, 64)
    assert places_for(10) == 16

"""Connections: how many there may be, and which of them must go. Nobody keeps others out by holding on to them.

The server closes a connection that says nothing for a while by itself. It does not know two things: that there are
nearly as many connections as it can hold, and that somebody takes their answer too slowly ever to have it. Both are
looked for here, beside the requests, in what the system knows of each socket.
"""

from __future__ import annotations

import logging
import os
import socket
import stat
import struct
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolcrib.core.addresses import is_loopback

logger = logging.getLogger("toolcrib.connections")

Peer = tuple[str, str]
"""Address and port of a client, as the server names them."""

_FOR_THE_REST = 128
"""Open files that connections leave alone: the stores, the bundles and programs that run need some."""
_FEWEST = 16
_CROWDED, _CALM = 7 / 8, 1 / 2
"""Above the one share of all places connections are closed, down to the other: a new one soon finds a place."""
_COUNT_SECONDS = 0.1
_LOOK_SECONDS = 2.0
_STALL_SECONDS = 30.0
_STALL_BYTES = 32_768
"""Whoever takes less of an answer than this, for as long as that, does not want it."""

_FILES = Path("/proc/self/fd")
_TCP_INFO = struct.Struct("=8x 36x I 4x I 4x 44x 16x QQ 8x I")
"""Milliseconds since data was last sent and last received, bytes acknowledged and received, bytes not sent yet."""
_UNACKNOWLEDGED = struct.Struct("=24x I")
_INTERNET = (socket.AF_INET, socket.AF_INET6)
_RESET = struct.pack("ii", 1, 0)


def places_for(wanted: int) -> int:
    """How many connections one process may hold: ``wanted``, or what the limit on open files allows. Raises that limit
    as far as it may for whoever is started from here."""
    try:
        import resource
    except ImportError:  # not on this system
        return wanted
    wanted = max(_FEWEST, wanted)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + 4 * _FOR_THE_REST
    if soft < needed and soft != resource.RLIM_INFINITY:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if files == resource.RLIM_INFINITY or files - _FOR_THE_REST >= wanted:
        return wanted
    most = max(_FEWEST, files - _FOR_THE_REST)
    says = "%d connections at once, not %d: the limit on open files is %d; raise it (ulimit -n, LimitNOFILE)"
    logger.warning(says, most, wanted, files)
    return most


@dataclass(frozen=True, slots=True)
class Connection:
    """One connection as the system sees it."""

    file: int
    peer: Peer
    silent: float
    """Seconds since a byte came or went."""
    spoke_last: bool
    """The last byte came from the client: it waits for an answer, or is in the middle of a request."""
    received: int
    taken: int
    """Bytes of answers that have arrived."""
    waiting: bool
    """Bytes of an answer are on their way to it, or wait until it takes them."""

    @property
    def rank(self) -> int:
        """Which go first: those that never said anything, that have their answer, that say something, that take it."""
        if self.waiting:
            return 0
        if self.spoke_last:
            return 1
        return 2 if self.received else 3


class Watch:
    """Keeps the connections to ``port`` of this process below ``most``, and looks after answers that nobody takes.

    ``answering`` says who has a request under way: they are left alone. ``shared`` are addresses of many clients.
    """

    def __init__(
        self,
        port: int,
        most: int,
        answering: Callable[[], Collection[Peer]],
        shared: Collection[str] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._port = port
        self._most = most
        self._answering = answering
        self._shared = frozenset(shared)
        self._clock = clock
        self._taking: dict[Peer, tuple[int, float]] = {}

    def start(self) -> None:
        if not _FILES.is_dir() or not hasattr(socket, "TCP_INFO"):
            logger.warning("connections are not watched on this system: silent clients can use them up")
            return
        threading.Thread(target=self._run, name="toolcrib-connections", daemon=True).start()

    def _run(self) -> None:
        looked = self._clock()
        while True:
            time.sleep(_COUNT_SECONDS)
            crowded = len(_open_files()) > self._most * _CROWDED
            if crowded or self._clock() - looked > _LOOK_SECONDS:
                self.look()
                looked = self._clock()

    def look(self) -> None:
        """Close what must go now."""
        found = list(self._connections())
        stalled = self._stalled(found)
        closed = sum(_close(one, reset=True) for one in stalled)
        if closed:
            logger.info("closed %d connections that took too little of their answer", closed)
        if len(found) - closed > self._most * _CROWDED:
            surplus = len(found) - closed - int(self._most * _CALM)
            victims = first_to_go(found, self._answering(), self._shared)[:surplus]
            closed = sum(_close(one, reset=one.waiting) for one in victims)
            logger.info("closed %d of %d connections: %d is the most", closed, len(found), self._most)

    def _connections(self) -> Iterator[Connection]:
        for file in _open_files():
            with suppress(OSError):
                connection = _examined(file, self._port)
                if connection is not None:
                    yield connection

    def _stalled(self, found: list[Connection]) -> list[Connection]:
        now, before = self._clock(), self._taking
        self._taking = {}
        stalled = []
        for one in found:
            if not one.waiting:
                continue
            taken, since = before.get(one.peer, (one.taken, now))
            if one.taken - taken >= _STALL_BYTES:
                taken, since = one.taken, now
            self._taking[one.peer] = (taken, since)
            if now - since > _STALL_SECONDS:
                stalled.append(one)
        return stalled


def first_to_go(found: Iterable[Connection], answering: Collection[Peer], shared: Collection[str]) -> list[Connection]:
    """The connections without a request under way, in the order in which they are closed if some must be.

    Those of the address that holds the most, until it holds no more than others; then by rank, the longest silent
    first. An address that many clients share, or of this machine, is held for as many addresses as it has connections.
    """
    held: Counter[str] = Counter()
    ranked = []
    for one in sorted(found, key=lambda one: (one.rank, one.silent)):
        if one.peer in answering:
            continue
        address = one.peer[0]
        if address not in shared and not is_loopback(address):
            held[address] += 1
        ranked.append((held[address], one.rank, one.silent, one))
    return [one for *_, one in sorted(ranked, key=lambda entry: entry[:3], reverse=True)]


def _open_files() -> list[int]:
    with os.scandir(_FILES) as entries:
        return [int(entry.name) for entry in entries]


def _examined(file: int, port: int) -> Connection | None:
    """What the system says of an open file, if it is a connection to ``port``. The file is not ours: it stays open."""
    if not stat.S_ISSOCK(os.fstat(file).st_mode):
        return None
    looking = socket.socket(fileno=file)
    try:
        if looking.family not in _INTERNET or looking.type != socket.SOCK_STREAM or looking.getsockname()[1] != port:
            return None
        address, peer_port, *_ = looking.getpeername()
        info = looking.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
        sent, came, taken, received, unsent = _TCP_INFO.unpack_from(info)
        (unacknowledged,) = _UNACKNOWLEDGED.unpack_from(info)
    finally:
        looking.detach()
    waiting = bool(unsent or unacknowledged)
    peer = (address, str(peer_port))
    return Connection(file, peer, min(sent, came) / 1000, received > 0 and came <= sent, received, taken, waiting)


def _close(connection: Connection, *, reset: bool) -> bool:
    """Hang up. The server, whose file it is, notices and lets go of it."""
    try:
        file = os.dup(connection.file)
    except OSError:
        return False
    if not stat.S_ISSOCK(os.fstat(file).st_mode):
        return False  # the file is another by now; to close it would give up SQLite's locks on it, so it stays open
    with socket.socket(fileno=file) as hanging_up, suppress(OSError):
        address, port, *_ = hanging_up.getpeername()
        if (address, str(port)) == connection.peer:
            if reset:
                hanging_up.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            hanging_up.shutdown(socket.SHUT_RDWR)
            return True
    return False

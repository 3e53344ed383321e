"""One sandboxed process, and what the service holds of it. See ``host/toolcrib_box`` for what is inside."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import mmap
import os
import select
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from toolcrib.adapters.runners.cgroups import Group
from toolcrib.adapters.runners.unpacking import Unpacked
from toolcrib.adapters.runners.walls import WallDownError
from toolcrib.adapters.runners.wire import frame, receive, send
from toolcrib.calling import keeper
from toolcrib.core.errors import UnavailableError

_HOST = Path(__file__).with_name("host")
_CLOCK = struct.Struct("=dQ")
_GRACE = 0.5
"""How long after a deadline the keeper inside waits for us to end the box, before it does so itself."""
_WORDS = 64 * 1024
"""The most that is read of what the walls say of themselves."""
_QUICK, _PATIENCE_MILLISECONDS = 0.0005, 1
"""Who has answered within the one is waited for during the other, here and now: a way through the event loop takes
longer than what answers at once."""
_LAST_WORDS = 2000
_DYING_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Ended:
    """How the tool in a box ended; ``output`` is what a program left in its output file, None if there is none.

    ``exceeded`` are the bytes of memory that it was ended for using more of in all; 0 if that is not why.
    """

    status: int
    output: bytes | None
    messages: str
    too_large: bool = False
    exceeded: int = 0


class Box:
    """A process behind walls, started. It is dead, with everything it started, when ``end`` returns.

    ``orphans`` says that it has no process namespace: then calling/keeper.py ends what it leaves. All its processes are
    in the ``group``, if it is given one. ``on_end`` is called once, when it is dead. Made in any thread, used by one
    event loop at a time.
    """

    def __init__(
        self,
        unpacked: Unpacked,
        order: Mapping[str, Any],
        deadline: float,
        *,
        orphans: bool = False,
        group: Group | None = None,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        self.unpacked = unpacked
        self.walls: tuple[str, ...] = ()
        self.born = time.monotonic()
        self._way_out: socket.socket | None = None
        self._group = group
        self._on_end = on_end
        self.has_way_out: bool = order["network"]
        self._output_limit: int = order["limits"]["output_bytes"]
        self._control, control = socket.socketpair()
        self._calls, calls = socket.socketpair()
        self._said = select.poll()
        self._said.register(self._calls, select.POLLIN)
        life_end, self._life = os.pipe()
        self._messages, clock = _memory(), _memory()
        clock.truncate(mmap.PAGESIZE)
        self._clock = mmap.mmap(clock.fileno(), mmap.PAGESIZE)
        self._number = 0
        self._rests_until = 0.0
        self._quick = False
        self.begin(deadline)
        with control, calls, clock, os.fdopen(life_end, "rb") as life:
            handles = [end.fileno() for end in (control, calls, clock)]
            around = [str(keeper.__file__), str(life.fileno())] if orphans else []
            command = [sys.executable, "-I", "-X", "utf8", *around, str(_HOST), *map(str, handles)]
            try:
                self._process = _started(command, [*handles, *([life.fileno()] if orphans else [])], self._messages)
            except OSError as error:
                os.close(self._life)
                raise UnavailableError(f"no process could be started for a bundle: {error}") from None
        try:
            self._join_group(orphans=orphans)
            self._control.sendall(frame(json.dumps(order).encode()))
        except BaseException:
            self.end_now()
            raise
        self._control.setblocking(False)
        self._calls.setblocking(False)

    def _join_group(self, *, orphans: bool) -> None:
        """Before it is told what to do: it has started nothing by then, but for calling/keeper.py the launcher."""
        if self._group is not None:
            self._group.take(self._process.pid)
            for process in keeper.descendants(self._process.pid) if orphans else ():
                self._group.take(process)

    def take_way_out(self) -> socket.socket | None:
        """The socket that listens inside, if there is one, for the caller to answer at and to close."""
        way_out, self._way_out = self._way_out, None
        return way_out

    @property
    def reusable(self) -> bool:
        """Whether it may be asked again: a program ends with its answer, and a way out belongs to one call."""
        return self.unpacked.kind == "python" and not self.has_way_out

    def begin(self, deadline: float) -> None:
        """From now on something is asked, which must be over by ``deadline``."""
        self._number += 1 + self._number % 2
        _CLOCK.pack_into(self._clock, 0, deadline + _GRACE, self._number)

    def rest(self, deadline: float) -> None:
        """From now on nothing is asked; by ``deadline`` it is dead, if nothing is asked before."""
        self._number += 1
        self._rests_until = deadline
        os.ftruncate(self._messages.fileno(), 0)
        _CLOCK.pack_into(self._clock, 0, deadline + _GRACE, self._number)

    async def ready(self, deadline: float) -> None:
        """Wait until the walls stand; nothing of the tool has run when this returns. WallDownError if one does not."""
        try:
            said = json.loads(await receive(self._calls, _WORDS, deadline))
        except (EOFError, ConnectionError):
            raise WallDownError("process", f"its first process ended: {self.messages() or 'it said nothing'}") from None
        if "wall" in said:
            raise WallDownError(said["wall"], said["reason"])
        self.walls = tuple(said["walls"])
        if self.has_way_out:  # it was sent before the walls were told
            _, handles, _, _ = socket.recv_fds(self._control, 1, 1)
            self._way_out = socket.socket(fileno=handles[0])

    async def tell(self, question: bytes, deadline: float) -> None:
        with contextlib.suppress(ConnectionError):  # it is dead: what it died of comes with the answer
            await send(self._calls, question, deadline)

    async def answer(self, deadline: float) -> bytes:
        """What the tool answers; EOFError if it is dead, or says what is no answer."""
        asked = time.monotonic()
        if self._quick:
            self._said.poll(_PATIENCE_MILLISECONDS)
        try:
            answer = await receive(self._calls, self._output_limit, deadline)
        except ConnectionError:
            raise EOFError from None
        self._quick = time.monotonic() - asked < _QUICK
        return answer

    async def ended(self, deadline: float = 0.0) -> Ended:
        """How the tool ended, once it has. TimeoutError if it has not by the deadline; without one it is dying."""
        deadline = deadline or time.monotonic() + _DYING_SECONDS
        try:
            head, _, output = (await receive(self._control, _WORDS + self._output_limit, deadline)).partition(b"\n")
            said = json.loads(head)
            left = output if said["output"] else None
            return Ended(said["status"], left, self.messages(), said["large"], said["over"])
        except (EOFError, ConnectionError):
            return Ended(-9, None, self.messages(), exceeded=self._group.exceeded if self._group else 0)

    @property
    def is_quiet(self) -> bool:
        """Whether it lives, says nothing unasked, and is not about to end because its rest is over."""
        return time.monotonic() < self._rests_until and not self._said.poll(0)

    @property
    def is_dead(self) -> bool:
        try:
            while self._control.recv(_WORDS):
                pass
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def messages(self) -> str:
        """The end of what was printed inside."""
        handle = self._messages.fileno()
        size = os.fstat(handle).st_size
        return os.pread(handle, _LAST_WORDS, max(0, size - _LAST_WORDS)).decode(errors="replace").strip()

    async def end(self) -> None:
        self.ask_to_end()
        loop = asyncio.get_running_loop()
        with contextlib.suppress(TimeoutError, OSError):
            async with asyncio.timeout(_DYING_SECONDS):
                while await loop.sock_recv(self._control, _WORDS):
                    pass
        self._bury()

    def end_now(self) -> None:
        """As ``end``, where no event loop runs any more."""
        self.ask_to_end()
        self._control.settimeout(_DYING_SECONDS)
        with contextlib.suppress(OSError):
            while self._control.recv(_WORDS):
                pass
        self._bury()

    def ask_to_end(self) -> None:
        with contextlib.suppress(OSError):
            self._control.shutdown(socket.SHUT_WR)
        if self._life >= 0:
            os.close(self._life)
            self._life = -1

    def _bury(self) -> None:
        """Its end of the control socket is closed: it is dead, or so stuck that it must be killed."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        for end in (self._control, self._calls, self._messages, self._way_out):
            if end is not None:
                end.close()
        self._clock.close()
        on_end, self._on_end = self._on_end, lambda: None
        on_end()


def _started(command: list[str], handles: list[int], messages: BinaryIO) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=messages,
        stderr=messages,
        pass_fds=handles,
        cwd="/",
        env={"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"},
        start_new_session=True,
    )


def _memory() -> BinaryIO:
    """A file that no path leads to, and that appends."""
    if not hasattr(os, "memfd_create"):
        return tempfile.TemporaryFile("ab+", buffering=0)
    handle = os.memfd_create("toolcrib")
    fcntl.fcntl(handle, fcntl.F_SETFL, os.O_APPEND)
    return os.fdopen(handle, "rb+", buffering=0)

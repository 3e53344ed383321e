"""Boxes kept for the next call: of the same code, for the same caller, with the same credentials."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Hashable

from toolcrib.adapters.runners.box import Box

_BURIAL_SECONDS = 1.0


class KeptBoxes:
    """At most ``most`` idle boxes, each for ``idle_seconds`` and none beyond ``oldest_seconds`` of life.

    A box ends by itself when its time is over; here it is only buried. Only ``end_idle`` and ``close`` wait for one to
    die.
    """

    def __init__(self, most: int, idle_seconds: float = 30.0, oldest_seconds: float = 300.0) -> None:
        self._most = most
        self._idle_seconds = idle_seconds
        self._oldest_seconds = oldest_seconds
        self._idle: list[tuple[Hashable, Box]] = []
        self._dying: list[Box] = []
        self._lock = threading.Lock()
        self._closed = False
        self._burial = 0.0

    def take(self, key: Hashable) -> Box | None:
        """One that may be asked now: it lives, and has said nothing unasked."""
        with self._lock:
            for at in range(len(self._idle) - 1, -1, -1):
                if self._idle[at][0] == key:
                    box = self._idle.pop(at)[1]
                    if box.is_quiet:
                        return box
                    self._let_go(box)
        return None

    def keep(self, key: Hashable, box: Box) -> None:
        """Keep it, unless it has lived long enough. Whoever has been idle longest makes room."""
        now = time.monotonic()
        box.rest(now + self._idle_seconds)
        with self._lock:
            if self._closed or now - box.born > self._oldest_seconds:
                self._let_go(box)
            else:
                self._idle.append((key, box))
            while len(self._idle) > self._most:
                self._let_go(self._idle.pop(0)[1])
        self._bury_later(self._idle_seconds + _BURIAL_SECONDS)

    async def end_idle(self) -> bool:
        """Whether any was idle; dead when this returns."""
        with self._lock:
            idle, self._idle = [box for _, box in self._idle], []
        await asyncio.shield(asyncio.gather(*(box.end() for box in idle)))
        return bool(idle)

    def close(self) -> None:
        """End them all; dead when this returns."""
        with self._lock:
            self._closed = True
            boxes = [*self._dying, *(box for _, box in self._idle)]
            self._idle, self._dying = [], []
        for box in boxes:
            box.ask_to_end()
        for box in boxes:
            box.end_now()

    def _let_go(self, box: Box) -> None:
        box.ask_to_end()
        self._dying.append(box)
        self._bury_later(_BURIAL_SECONDS)

    def _bury_later(self, seconds: float) -> None:
        """At the latest; without a loop, or if it ends before, the next one or ``close`` does it."""
        if seconds + time.monotonic() >= self._burial > time.monotonic():
            return
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop().call_later(seconds, self._bury)
            self._burial = time.monotonic() + seconds

    def _bury(self) -> None:
        """The dead leave a process to be waited for, and handles to be closed."""
        self._burial = 0.0
        with self._lock:
            over = [box for _, box in self._idle if not box.is_quiet]
            self._idle = [(key, box) for key, box in self._idle if box not in over]
            dead = [box for box in (*self._dying, *over) if box.is_dead]
            self._dying = [box for box in (*self._dying, *over) if box not in dead]
            left = bool(self._idle or self._dying)
        for box in dead:
            box.end_now()
        if left:
            self._bury_later(_BURIAL_SECONDS if self._dying else self._idle_seconds + _BURIAL_SECONDS)

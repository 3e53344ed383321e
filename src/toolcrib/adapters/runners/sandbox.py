"""Boxes for code that nobody vouches for: how much each may use, and which walls stand around it.

What there is to see from inside is the system and the interpreter, read-only, the code, read-only, and an empty scratch
in memory; what there is to reach is nothing. See ``host/toolcrib_box`` for how.
"""

from __future__ import annotations

import asyncio
import json
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from toolcrib.adapters.runners import cgroups
from toolcrib.adapters.runners.box import Box
from toolcrib.adapters.runners.scratch import Scratch, sweep
from toolcrib.adapters.runners.unpacking import Unpacked
from toolcrib.adapters.runners.walls import WALLS, Isolation, WallDownError, Walls, refusal
from toolcrib.calling.blocking import HOUSEKEEPING, in_thread
from toolcrib.core.errors import SettingsError

_MEBIBYTE = 1024 * 1024
_PROBE_SECONDS = 30.0
_OURS = 3
"""Processes that are not the tool's: calling/keeper.py, the launcher and the keeper."""
_PROBE = Unpacked("python", Path(__file__).with_name("probe"))


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    memory_bytes: int = 1024 * _MEBIBYTE
    """Address space of each process."""
    total_memory_bytes: int = 2048 * _MEBIBYTE
    """Of all its processes together, with what they wrote into the scratch."""
    file_bytes: int = 64 * _MEBIBYTE
    """Of each file it writes, its messages among them."""
    scratch_bytes: int = 128 * _MEBIBYTE
    """Of all files that it writes."""
    scratch_files: int = 10_000
    processes: int = 64
    open_files: int = 256
    output_bytes: int = 10 * _MEBIBYTE
    """Of the result."""


class Sandbox:
    """Starts boxes. ``hidden`` is what no bundle may see, wherever it lies; ``scratch`` is for weak runs alone.

    ``build`` are the walls that are tried.
    """

    def __init__(
        self,
        limits: SandboxLimits | None = None,
        *,
        isolation: Isolation = "full",
        hidden: Sequence[Path] = (),
        scratch: Path | None = None,
        build: Sequence[str] = WALLS,
    ) -> None:
        self.limits = limits or SandboxLimits()
        self._isolation = isolation
        self._hidden = [str(path.absolute()) for path in hidden]
        self._scratch = scratch or Path(tempfile.gettempdir())
        self._build = build
        self._walls: Walls | None = None
        self._lock = threading.Lock()

    async def started(
        self,
        unpacked: Unpacked,
        deadline: float,
        *,
        network: bool = False,
        on_end: Callable[[], None] = lambda: None,
    ) -> Box:
        """A box whose walls stand, with the code in it, which has not run yet.

        DeniedError if too few walls stand here; WallDownError if one that stood before cannot be built now.
        With ``network`` it has a way out that somebody must answer at. ``on_end`` is called once: when the box is dead,
        or if it does not come to one.
        """
        try:
            walls = await self._walls_needed()
            order = self._order(unpacked, walls.standing) | {"network": network and "network" in walls.standing}
        except BaseException:
            on_end()
            raise
        starting = asyncio.ensure_future(in_thread(HOUSEKEEPING, self._start, unpacked, order, deadline, on_end))
        try:
            box = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await asyncio.shield(_end_when_started(starting))  # nobody else knows of it
            raise
        try:
            await box.ready(deadline)
        except BaseException:
            await asyncio.shield(box.end())
            raise
        return box

    async def _walls_needed(self) -> Walls:
        walls = await in_thread(HOUSEKEEPING, self.walls) if self._walls is None else self._walls
        if walls.lacking and self._isolation == "full":
            raise refusal(walls)
        return walls

    def walls(self) -> Walls:
        """Those that can be built here: found out once, by running a bundle behind them. Not on an event loop."""
        with self._lock:
            if self._walls is None:
                self._walls = asyncio.run(self._probed())
            return self._walls

    def told(self) -> tuple[bool, str]:
        """Whether bundles run here behind all the walls they need, and a sentence about it. Not on an event loop."""
        walls = self.walls()
        if not walls.lacking:
            return True, f"bundles run behind these walls: {walls}"
        if self._isolation == "full":
            return False, refusal(walls).message
        return False, f"bundles run, as bundle_isolation says, behind these walls alone: {walls}"

    def sweep(self) -> int:
        """Remove what a service that was killed left: folders of weak runs, and groups."""
        return sweep(self._scratch) + cgroups.sweep()

    async def _probed(self) -> Walls:
        """Build all of them; without the one that fails all the others, and so on."""
        standing = list(self._build)
        missing = {wall: "not asked for" for wall in WALLS if wall not in standing}
        while True:
            try:
                answer = await self._answer_of_probe(standing)
            except WallDownError as error:
                if error.wall not in standing:
                    raise SettingsError(f"bundles cannot run here: {error.message}") from None
                standing.remove(error.wall)
                missing[error.wall] = error.reason
                continue
            if "error" in answer:
                raise SettingsError(
                    f"bundles cannot run here: Python at {sys.executable!r} cannot be used inside a sandbox: "
                    f"{answer['error']['message']}"
                )
            return Walls(tuple(standing), missing)

    async def _answer_of_probe(self, walls: Sequence[str]) -> Any:
        deadline = time.monotonic() + _PROBE_SECONDS
        box = self._start(_PROBE, self._order(_PROBE, walls), deadline, lambda: None)
        try:
            await box.ready(deadline)
            question = {"tool_id": "probe", "tool_data": {}, "command": "", "input": {}}
            await box.tell(json.dumps(question).encode(), deadline)
            return json.loads(await box.answer(deadline))
        except (EOFError, TimeoutError):
            raise SettingsError(f"bundles cannot run here: {box.messages() or 'a probe ended at once'}") from None
        finally:
            await box.end()

    def _start(self, unpacked: Unpacked, order: dict[str, Any], deadline: float, on_end: Callable[[], None]) -> Box:
        ending = ExitStack()
        ending.callback(on_end)
        try:
            if "mount" not in order["walls"]:
                scratch = Scratch(self._scratch)
                ending.callback(scratch.remove)
                order |= {"code": str(scratch.with_code(Path(order["code"]))), "scratch": str(scratch.work)}
            group = None
            if "cgroup" in order["walls"]:
                group = cgroups.Group(self.limits.total_memory_bytes, self.limits.processes + _OURS)
                ending.callback(group.end)
            orphans = "process" not in order["walls"]
            return Box(unpacked, order, deadline, orphans=orphans, group=group, on_end=ending.close)
        except BaseException:
            ending.close()
            raise

    def _order(self, unpacked: Unpacked, walls: Sequence[str]) -> dict[str, Any]:
        """What ``toolcrib_box`` is told to build."""
        program = unpacked.kind == "program"
        return {
            "walls": list(walls),
            "kind": unpacked.kind,
            "program": unpacked.path.name if program else "",
            "code": str(unpacked.path.parent if program else unpacked.path),
            "hidden": self._hidden,
            "limits": asdict(self.limits),
            "scratch": "",
            "network": False,
        }


async def _end_when_started(starting: Awaitable[Box]) -> None:
    await (await starting).end()

"""Runs share a service: so many at once, by turns, whatever runs them.

A run that nobody can stop, a thread past its deadline, keeps its place until it has really ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from toolcrib.calling.layers import Layer
from toolcrib.calling.places import CALLER, Places
from toolcrib.core.context import ToolContext
from toolcrib.core.tool import Runner, Tool


class _Place:
    """The place that one run has taken. It is given back when the last who holds it lets go.

    ``outer`` is the place that the same run has taken elsewhere: both are held.
    """

    __slots__ = ("_caller", "_holders", "_lock", "_outer", "_places")

    def __init__(self, places: Places, caller: str, outer: _Place | None) -> None:
        self._places = places
        self._caller = caller
        self._outer = outer
        self._holders = 1
        self._lock = threading.Lock()

    def hold(self) -> list[_Place]:
        """Hold it, and the outer one; a place that has been given back already is nobody's to hold."""
        with self._lock:
            held: list[_Place] = [self] if self._holders else []
            self._holders += len(held)
        return held if self._outer is None else held + self._outer.hold()

    def innermost(self) -> _Place | None:
        """Itself, or the next outer one, that is still held."""
        if self._holders:
            return self
        return None if self._outer is None else self._outer.innermost()

    def let_go(self) -> None:
        with self._lock:
            self._holders -= 1
            is_free = not self._holders
        if is_free:
            self._places.give_back(self._caller)


_PLACE: ContextVar[_Place | None] = ContextVar("toolcrib_run_place", default=None)


def shared_runs(most: int) -> Layer:
    """A layer that lets ``most`` runs go on at once, half of them for one caller; past that they wait by turns.

    Raises OverloadedError if too many wait already. A run's deadline counts from when its turn has come.
    """
    places = Places("runs", max(1, most), each=most // 2, waiting=4 * most, queued=most)

    def layer(run: Runner) -> Runner:
        async def in_turn(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            caller = CALLER.get()
            await places.take(caller)
            return await in_place(places, caller, run, tool, arguments, context)

        return in_turn

    return layer


async def in_place(
    places: Places, caller: str, run: Runner, tool: Tool, arguments: dict[str, Any], context: ToolContext
) -> Any:
    """The run, in a place that ``caller`` has taken; the place is given back in every case."""
    outer = _PLACE.get()
    place = _Place(places, caller, None if outer is None else outer.innermost())
    token = _PLACE.set(place)
    try:
        return await run(tool, arguments, context)
    finally:
        _PLACE.reset(token)
        place.let_go()


def keep_place() -> Callable[[], None]:
    """Keep the places of the run under way beyond its end, until what this returns is called."""
    place = _PLACE.get()
    held = [] if place is None else place.hold()

    def give_back() -> None:
        for one in held:
            one.let_go()

    return give_back

"""Which calls belong together: those of one task that a model works on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar

T = TypeVar("T")


class AgentRun:
    """What layers keep for one run. ``outer`` is the run that it is a part of, such as that of another agent."""

    __slots__ = ("_kept", "outer")

    def __init__(self, outer: AgentRun | None = None) -> None:
        self.outer = outer
        self._kept: dict[object, Any] = {}

    def kept_by(self, layer: object, make: Callable[[], T]) -> T:
        """What a layer keeps here, made at the first time."""
        kept: T | None = self._kept.get(layer)
        return self._kept.setdefault(layer, make()) if kept is None else kept


_CURRENT: ContextVar[AgentRun | None] = ContextVar("toolcrib_agent_run", default=None)


@contextmanager
def agent_run() -> Iterator[AgentRun]:
    """The calls made inside belong to one run of an agent, also those of tasks that are started inside.

    ``budget`` and ``repeat_breaker`` count for each run; calls outside of any are one run, as long as the layer lives.
    A run inside of another spends what the outer one has, too.
    """
    run = AgentRun(_CURRENT.get())
    token = _CURRENT.set(run)
    try:
        yield run
    finally:
        _CURRENT.reset(token)


current_run = _CURRENT.get
"""The run that this is called in, or None."""

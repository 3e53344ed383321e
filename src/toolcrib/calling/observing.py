"""Those who are told of every call, also of one that is refused: when it begins and when it has ended."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Protocol

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolFailedError
from toolcrib.core.json import copied
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool

CANCELLED = "cancelled"
"""What went wrong with a call that its caller cancelled. He gets no result, so no error has this code."""
_log = logging.getLogger("toolcrib")

TRACE: ContextVar[Callable[[], Mapping[str, str]] | None] = ContextVar("toolcrib_trace", default=None)
"""Says the trace that the running call belongs to, as HTTP headers, for what it starts elsewhere; None if nobody
follows it."""


class Observed:
    """A call, as far as it has come. What is not known yet is None."""

    __slots__ = ("arguments", "context", "ended_by", "given", "name", "result", "seconds", "spec")

    def __init__(self, name: str, given: Any, context: ToolContext) -> None:
        self.name = name
        """As the caller wrote it: perhaps that of no tool, and as long as the caller likes."""
        self.given = given
        """The arguments as they came: perhaps none, or until the tool is known what makes them of its spec."""
        self.context = context
        self.spec: ToolSpec | None = None
        """Of the tool; None in the end if there is no such tool."""
        self.arguments: Any = None
        """As they were checked; None in the end if they were not, because something else was refused before."""
        self.result: ToolResult | None = None
        """None in the end if the call was cancelled, or the program is ending."""
        self.ended_by: BaseException | None = None
        self.seconds = 0.0

    @property
    def error_type(self) -> str:
        """The stable code of what went wrong; empty if nothing did."""
        return error_type(self.result, self.ended_by)


class Observer(Protocol):
    """Told of calls. Both methods are called in the task of the call; what they raise is logged and harms nobody."""

    def begin(self, call: Observed) -> Any:
        """A call begins. What this returns comes back at its end."""

    def end(self, begun: Any, call: Observed) -> None:
        """It has ended, whatever came of it. Who began last is told first."""


def error_type(result: ToolResult | None, ended_by: BaseException | None) -> str:
    """The stable code of what went wrong with a call; empty if nothing did."""
    if result is not None:
        return "" if result.success else result.error_code or ToolFailedError.code
    return CANCELLED if isinstance(ended_by, asyncio.CancelledError) else type(ended_by).__name__


class Observing:
    """One call and all who observe it."""

    __slots__ = ("_begun", "call")

    def __init__(self, observers: Sequence[Observer], name: str, given: Any, context: ToolContext) -> None:
        self.call = Observed(name, given, context)
        self._begun: list[tuple[Observer, Any]] = []
        for observer in observers:
            try:
                self._begun.append((observer, observer.begin(self.call)))
            except Exception:  # an observer is somebody else's code, as below
                _log.exception("an observer of calls raised")

    def checked(self, tool: Tool, arguments: Any) -> dict[str, Any]:
        """The arguments, or what makes them of its spec, as the tool takes them. They are kept as they are now: a tool
        may change its own.
        """
        given: Any = arguments(tool.spec) if callable(arguments) else arguments
        self.call.given = given
        checked = tool.validate(given)
        self.call.arguments = copied(checked)
        return checked

    def end(self, seconds: float, result: ToolResult | None, ended_by: BaseException | None = None) -> None:
        call = self.call
        call.seconds, call.result, call.ended_by = seconds, result, ended_by
        for observer, begun in reversed(self._begun):
            try:
                observer.end(begun, call)
            except Exception:
                _log.exception("an observer of calls raised")


def trace_headers() -> Mapping[str, str]:
    """``traceparent`` and what goes with it; nothing if nobody follows the call that is running here."""
    say = TRACE.get()
    return {} if say is None else say()

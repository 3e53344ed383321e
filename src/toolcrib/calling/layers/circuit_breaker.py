"""Leave a tool alone that fails again and again, and say why.

Use it for tools that ask others: whoever is down is not asked by every call, and the model hears at once that it should
go another way. Inside of ``retry``, so that attempts count.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from toolcrib.calling.layers import Layer, above_zero, has_failed, whole
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import CircuitOpenError, OverloadedError, ToolcribError, UnavailableError, kind_for_code
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Runner, Tool

_LONGEST_REASON = 300
_TRIAL = -1


def is_breakdown(failure: ToolResult) -> bool:
    """Whether a failed call says that the tool does not work: it failed, timed out, or could not reach what it needs.

    Wrong arguments and refusals do not say so, nor does a failure that a tool tells of with a code of its own.
    """
    kind = kind_for_code(failure.error_code)
    if kind is None:
        return False
    down = issubclass(kind, UnavailableError) and not issubclass(kind, CircuitOpenError | OverloadedError)
    return kind.answer.after_start or down


def circuit_breaker(
    failures: int = 5,
    *,
    within: float = 60.0,
    cooldown: float = 30.0,
    counts: Callable[[ToolResult], bool] = is_breakdown,
    clock: Callable[[], float] = time.monotonic,
) -> Layer:
    """A layer that refuses calls of a tool after so many ``failures`` in a row ``within`` so many seconds.

    The refusal is a CircuitOpenError with the reason of the last failure and the seconds that are left. After
    ``cooldown`` one call is let through: if it succeeds everything is as before, if it fails the tool is left alone
    again. ``counts(result)`` says of a failed call whether it is a failure in this sense.
    """
    whole(1, failures=failures)
    above_zero(within=within, cooldown=cooldown)
    circuits: dict[str, _Circuit] = {}

    def layer(run: Runner) -> Runner:
        async def broken(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            name = tool.spec.name
            circuit = circuits.get(name)
            if circuit is None:
                circuit = circuits.setdefault(name, _Circuit(failures, within, cooldown, clock))
            ticket = circuit.enter(name, context.principal) if circuit.is_open else circuit.number
            failure: ToolResult | None = None
            succeeded = False
            try:
                value = await run(tool, arguments, context)
                if has_failed(value):
                    failure = value
                else:
                    succeeded = True
                return value
            except ToolcribError as error:
                failure = ToolResult.of_error(error)
                raise
            finally:
                if succeeded:
                    if ticket == _TRIAL or circuit.failed_at:
                        circuit.succeeded(ticket)
                else:
                    counted = False
                    try:
                        counted = failure is not None and counts(failure)
                    finally:
                        circuit.ended(ticket, failure if counted else None, context.principal)

        return broken

    return layer


class _Circuit:
    """Of one tool. ``number`` is how often it has been opened: what ends later than that says nothing new."""

    __slots__ = (
        "_clock", "_cooldown", "_lock", "_most", "_reason", "_trying", "_until", "_who", "_within",
        "failed_at", "is_open", "number",
    )  # fmt: skip

    def __init__(self, most: int, within: float, cooldown: float, clock: Callable[[], float]) -> None:
        self.is_open = False
        self.number = 0
        self.failed_at: deque[float] = deque(maxlen=most)
        self._most = most
        self._within = within
        self._cooldown = cooldown
        self._clock = clock
        self._lock = threading.Lock()
        self._until = 0.0
        self._trying = False
        self._reason = self._who = ""

    def enter(self, name: str, principal: str) -> int:
        """What to end the call with; CircuitOpenError if it is refused."""
        with self._lock:
            if not self.is_open:
                return self.number
            left = self._until - self._clock()
            if left <= 0 and not self._trying:
                self._trying = True
                return _TRIAL
            fate = f"it is left alone for another {left:.3g} s" if left > 0 else "a call is trying it just now"
            code, _, reason = self._reason.partition(" ")
            reason = reason if principal == self._who else f"it ended with {code!r}"  # not everybody's to read
            raise CircuitOpenError(
                f"the tool {name!r} was not called: it failed {self._most} times in a row, and {fate}. "
                f"The last failure: {reason}",
                max(left, 0.0) or 1.0,
            )

    def succeeded(self, ticket: int) -> None:
        with self._lock:
            if ticket == _TRIAL:
                self.is_open = self._trying = False
            if ticket in (_TRIAL, self.number):
                self.failed_at.clear()

    def ended(self, ticket: int, failure: ToolResult | None, principal: str) -> None:
        """Without success; the ``failure``, if that is one that counts."""
        with self._lock:
            if ticket == _TRIAL:
                self._trying = False
            elif self.is_open or ticket != self.number:
                return
            if failure is None:
                return
            now = self._clock()
            self.failed_at.append(now)
            self._reason, self._who = f"{failure.error_code} {failure.error}"[:_LONGEST_REASON], principal
            in_a_row = len(self.failed_at) == self._most and now - self.failed_at[0] <= self._within
            if ticket == _TRIAL or in_a_row:
                self.is_open = True
                self.number += 1
                self._until = now + self._cooldown
                self.failed_at.clear()

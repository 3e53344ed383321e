"""The way of a call, in order: resolve, authorise, validate, run with the deadline, check the output, result.

``execute`` never raises for anything that a caller, a tool or a policy does: it answers with a ToolResult whose
``error_code`` says which stage said no. Cancellation is not an error and goes through.
"""

from __future__ import annotations

import inspect
import itertools
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import (
    ApprovalRequiredError,
    DeniedError,
    InvalidArgumentsError,
    ToolcribError,
    ToolTimeoutError,
)
from toolcrib.core.result import ToolResult
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.ports import Audit, AuditEvent, Policy, PolicyRequest, call

Approve = Callable[[ToolSpec, Mapping[str, Any]], bool | Awaitable[bool]]

_log = logging.getLogger("toolcrib")
_numbers = itertools.count(1)
_process = f"{os.getpid():x}-{time.time_ns():x}"


@dataclass(frozen=True, slots=True)
class Guard:
    """What stands between a caller and a tool."""

    highest_safety_level: SafetyLevel = SafetyLevel.HIGH_RISK
    """What lies above needs approval."""
    approve: Approve | None = None
    policy: Policy | None = None
    audit: Audit | None = None
    clock: Callable[[], float] = time.time


async def execute(
    resolve: Callable[[str], Tool], guard: Guard, name: str, arguments: Mapping[str, Any] | None, context: ToolContext
) -> ToolResult:
    started = time.perf_counter()
    attempt = None if guard.audit is None else _Attempt(guard.audit, guard.clock, context.principal, name)
    if attempt is not None and (waiting := attempt.record("attempt")):
        await waiting
    is_terminal = False
    try:
        tool = resolve(name)
        if guard.policy is not None or tool.spec.safety_level.rank > guard.highest_safety_level.rank:
            await _authorise(guard, tool.spec, arguments or {}, context)
        checked = tool.validate(arguments)
        value = await tool.runner(tool, checked, context)
        tool.check_output(value)
        result = value if isinstance(value, ToolResult) else ToolResult(True, value)
        is_terminal = tool.spec.is_terminal
    except ToolcribError as error:
        result = _failure(error)
    except BaseException as error:
        if attempt is not None and (waiting := attempt.record("crashed", type(error).__name__)):
            await waiting
        if not isinstance(error, Exception):
            raise
        # A port or our own machinery broke: the caller still gets an answer.
        _log.exception("the call of tool %r broke", name)
        return ToolResult(False, error=f"the call of {name!r} broke: {error}", error_code="internal_error")
    metadata = result.metadata
    metadata["tool"] = name
    metadata["duration_ms"] = (time.perf_counter() - started) * 1000
    if is_terminal:
        metadata["is_terminal"] = True
    if attempt is not None and (waiting := attempt.record(_outcome(result), result.error_code or "")):
        await waiting
    return result


async def _authorise(guard: Guard, spec: ToolSpec, arguments: Mapping[str, Any], context: ToolContext) -> None:
    if guard.policy is not None:
        request = PolicyRequest(context.principal, "run", spec.name, _public(spec), spec.digest)
        decision = await call(guard.policy, guard.policy.decide, request)
        if not decision.allow:
            rule = decision.rule or "policy"
            raise DeniedError(
                f"{rule} refuses to run {spec.name!r}{': ' + decision.reason if decision.reason else ''}", rule=rule
            )
    if spec.safety_level.rank > guard.highest_safety_level.rank:
        await _ask_approval(guard, spec, arguments)


async def _ask_approval(guard: Guard, spec: ToolSpec, arguments: Mapping[str, Any]) -> None:
    above = f"{spec.name!r} is {spec.safety_level.value!r}, above the allowed {guard.highest_safety_level.value!r}"
    if guard.approve is None:
        raise ApprovalRequiredError(f"{above}, and nobody is there to approve it", rule="safety_level")
    if not isinstance(arguments, Mapping):
        raise InvalidArgumentsError(f"the arguments of {spec.name!r} must be an object", tool=spec.name)
    try:
        answer = guard.approve(spec, arguments)
        approved = await answer if inspect.isawaitable(answer) else answer
    except Exception as error:  # the callback is the caller's: whatever it raises is not a yes
        raise ApprovalRequiredError(f"{above}, and asking for approval failed: {error}", rule="safety_level") from error
    if approved is not True:
        raise ApprovalRequiredError(f"{above}, and was not approved", rule="safety_level")


def _public(spec: ToolSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", exclude={"credentials"})


def _failure(error: ToolcribError) -> ToolResult:
    metadata: dict[str, Any] = {"retryable": error.retryable}
    if isinstance(error, InvalidArgumentsError) and error.argument:
        metadata["argument"] = error.argument
    elif isinstance(error, DeniedError) and error.rule:
        metadata["rule"] = error.rule
    elif isinstance(error, ToolTimeoutError):
        metadata["still_running"] = error.still_running
    return ToolResult(False, error=error.message, error_code=error.code, metadata=metadata)


_REFUSALS = frozenset({"denied", "approval_required", "unauthenticated"})
_Outcome = Literal["attempt", "done", "failed", "refused", "crashed"]


def _outcome(result: ToolResult) -> _Outcome:
    if result.success:
        return "done"
    return "refused" if result.error_code in _REFUSALS else "failed"


class _Attempt:
    """One call in the audit."""

    __slots__ = ("_audit", "_clock", "_id", "_principal", "_tool")

    def __init__(self, audit: Audit, clock: Callable[[], float], principal: str, tool: str) -> None:
        self._audit = audit
        self._clock = clock
        self._id = f"{_process}-{next(_numbers)}"
        self._principal = principal
        self._tool = tool

    def record(self, outcome: _Outcome, detail: str = "") -> Awaitable[None] | None:
        """Kept when this returns None; where the audit is remote, when what it returns has been awaited."""
        event = AuditEvent(self._id, self._clock(), self._principal, "run", self._tool, outcome, detail)
        if self._audit.remote:
            return call(self._audit, self._audit.record, event)
        self._audit.record(event)
        return None

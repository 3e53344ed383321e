"""The one way of a call: resolve, authorise, approve, validate, layers, run with the deadline, check, result.

All of it is recorded. Every door goes this way: the registry, REST, MCP, the command line, LangChain, pipelines.
``execute`` never raises for anything that a caller, a tool or a policy does: it answers with a ToolResult whose
``error_code`` says which stage said no. Cancellation is not an error and goes through.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, field
from typing import Any, cast

from toolcrib.calling.authorising import Authoriser
from toolcrib.calling.blocking import HOUSEKEEPING, OUTSIDE, READS, ask, in_thread
from toolcrib.calling.failures import is_cancellation
from toolcrib.calling.layers import Layer, stacked
from toolcrib.calling.observing import Observer, Observing, error_type
from toolcrib.calling.recording import Recorder, Targets, outcome_of, with_rule
from toolcrib.calling.usage import UsageCounter
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import (
    UNEXPECTED,
    ApprovalRequiredError,
    DeniedError,
    InvalidArgumentsError,
    ToolcribError,
    ToolNotFoundError,
)
from toolcrib.core.result import Ran, ToolResult
from toolcrib.core.roles import Principal
from toolcrib.core.safety import SafetyLevel
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool
from toolcrib.ports import AuditEvent, Outcome

Approve = Callable[[ToolSpec, Mapping[str, Any]], bool | Awaitable[bool]]
Arguments = Mapping[str, Any] | Callable[[ToolSpec], Mapping[str, Any]] | None
"""What a tool is called with, or what makes it once the tool is known and allowed: words are typed by its schema."""
_DONE: tuple[Outcome, str] = ("done", "")
_log = logging.getLogger("toolcrib")


@dataclass(frozen=True, slots=True)
class Unbound:
    """A tool that cannot run here. Its ``reason`` is for those who may run it: it says what the tool is bound to."""

    spec: ToolSpec
    reason: ToolcribError


class Unguarded(Tool):
    """A tool that nobody is refused: it asks itself, of each tool that it names or runs, what a call of it would."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Calls:
    """Calls of the tools that ``resolve`` knows by name; ``remote`` says that resolving leaves the process.

    What lies above ``highest_safety_level`` needs approval: ``approve(spec, arguments)`` is asked, and if there is
    nobody to ask the call is refused. ``layers`` wrap the run, the first of them outermost. ``observers`` are told of
    every call and ``usage`` counts it, also if it is refused.
    """

    resolve: Callable[[str], Tool | Unbound]
    highest_safety_level: SafetyLevel = SafetyLevel.HIGH_RISK
    approve: Approve | None = None
    authoriser: Authoriser | None = None
    recorder: Recorder | None = None
    layers: tuple[Layer, ...] = ()
    remote: bool = False
    observers: tuple[Observer, ...] = ()
    usage: UsageCounter | None = None
    _layered: Runner | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_layered", stacked(self.layers) if self.layers else None)

    async def execute(  # noqa: PLR0912 - all of the way on one screen
        self, name: str, arguments: Arguments, context: ToolContext = NO_CONTEXT
    ) -> ToolResult:
        started = time.perf_counter()
        recorder, attempt, tool = self.recorder, None, None
        observing = Observing(self.observers, name, arguments, context) if self.observers else None
        try:
            if recorder is not None:
                attempt = (
                    await in_thread(HOUSEKEEPING, recorder.begin, ((name, "run"),), context.principal, context.session)
                    if recorder.remote
                    else recorder.begin(((name, "run"),), context.principal, context.session)
                )
            tool = self.resolve(name) if not self.remote else await in_thread(READS, self.resolve, name)
            spec = tool.spec
            governed = self.authoriser is not None or context.limits is not None
            above = spec.safety_level.rank > self.highest_safety_level.rank
            if (governed or above) and not isinstance(tool, Unguarded):
                await self._admit(spec, arguments, context)
            if isinstance(tool, Unbound):
                raise tool.reason
            if observing is None:
                checked = tool.validate(arguments(spec) if callable(arguments) else arguments)
            else:
                checked = observing.checked(tool, arguments)
            value = await (self._layered or tool.runner)(tool, checked, context)
            is_told = type(value) is Ran or isinstance(value, ToolResult)
            result = _told_by(value) if is_told else ToolResult(True, value)
            tool.check_output(value.value if type(value) is Ran else value)
            if spec.is_terminal:
                result.metadata["is_terminal"] = True
        except ToolcribError as error:
            if isinstance(error, ToolNotFoundError):
                error = await self._without_hidden(error, context)
            result = ToolResult.of_error(error)
        except BaseException as error:
            return await self._broken(error, observing, name, tool, time.perf_counter() - started, attempt)
        metadata = result.metadata
        metadata["tool"] = name
        ended = time.perf_counter()
        metadata["duration_ms"] = (ended - started) * 1000
        if result.success and observing is None and self.usage is not None:
            self.usage.went_well(name, ended, ended - started)
        else:
            self._tell(observing, name, tool, ended - started, result)
        if attempt is not None and recorder is not None:
            outcome, detail = _DONE if result.success else _outcome(result)
            if recorder.remote:
                await in_thread(HOUSEKEEPING, recorder.end, attempt, outcome, detail)
            else:
                recorder.end(attempt, outcome, detail)
        return result

    async def _broken(
        self,
        error: BaseException,
        observing: Observing | None,
        name: str,
        tool: Tool | Unbound | None,
        seconds: float,
        attempt: list[AuditEvent] | None,
    ) -> ToolResult:
        """The answer if a port or our own machinery broke; what is no error, such as a cancellation, goes through."""
        broke = isinstance(error, Exception | asyncio.CancelledError) and not is_cancellation(error)
        result = ToolResult.of_error(UNEXPECTED) if broke else None
        self._tell(observing, name, tool, seconds, result, error)
        if attempt is not None and (recorder := self.recorder) is not None:
            await ask(HOUSEKEEPING, recorder, recorder.end, attempt, "crashed", type(error).__name__)
        if result is None:
            raise error
        _log.error("the call of tool %r broke", name, exc_info=error)
        return result

    async def _without_hidden(self, error: ToolNotFoundError, context: ToolContext) -> ToolNotFoundError:
        """The same, naming no tool that the caller may not run."""
        if not error.near:
            return error
        for name in error.near:
            with suppress(ToolcribError):
                tool = await ask(READS, self, self.resolve, name)
                if await self.allows(tool.spec, context):
                    return ToolNotFoundError(error.name, [name])
        return ToolNotFoundError(error.name)

    def refuse(
        self, tool: Tool | None, name: str, given: Any, error: ToolcribError, context: ToolContext
    ) -> ToolResult:
        """What the caller of a tool is told whose call cannot be made; those who are told of calls hear of it."""
        result = ToolResult.of_error(error)
        result.metadata["tool"] = name
        observing = Observing(self.observers, name, given, context) if self.observers else None
        self._tell(observing, name, tool, 0.0, result)
        return result

    def _tell(
        self,
        observing: Observing | None,
        name: str,
        tool: Tool | Unbound | None,
        seconds: float,
        result: ToolResult | None,
        ended_by: BaseException | None = None,
    ) -> None:
        """That a call has ended, to those who are told of more than a success, or of more than its time."""
        if observing is None and self.usage is None:
            return
        code = error_type(result, ended_by)
        if tool is None and code != ToolNotFoundError.code and not self.remote:
            with suppress(Exception):  # what was wrong came before it was asked for
                tool = self.resolve(name)
        if self.usage is not None:
            known, now = None if tool is None else tool.spec.name, time.perf_counter()
            if code or known is None:
                self.usage.failed(known, code, now, seconds)
            else:
                self.usage.went_well(known, now, seconds)
        if observing is not None:
            observing.call.spec = None if tool is None else tool.spec
            observing.end(seconds, result, ended_by)

    @asynccontextmanager
    async def admitted(self, specs: Sequence[ToolSpec], context: ToolContext = NO_CONTEXT) -> AsyncIterator[None]:
        """Around tools that run together, such as the steps of a pipeline: each is admitted, and all of it recorded.

        Raises what says no to any of them, before anything runs.
        """
        recorder, attempt = self.recorder, None
        if recorder is not None:
            targets: Targets = tuple((spec.name, "run") for spec in specs)
            attempt = await ask(HOUSEKEEPING, recorder, recorder.begin, targets, context.principal)
        outcome, detail = outcome_of(None), ""
        try:
            for spec in specs:
                await self._admit(spec, None, context)
            yield
        except ToolcribError as error:
            outcome, detail = outcome_of(error.code), with_rule(error.code, getattr(error, "rule", ""))
            raise
        except BaseException as error:
            outcome, detail = "crashed", type(error).__name__
            raise
        finally:
            if attempt is not None and recorder is not None:
                await ask(HOUSEKEEPING, recorder, recorder.end, attempt, outcome, detail)

    async def allows(self, spec: ToolSpec, context: ToolContext = NO_CONTEXT) -> bool:
        """Whether a call of the tool would be admitted, or somebody asked to approve it. Nobody is asked and nothing
        recorded; raises PolicyUnavailableError if nobody can tell.
        """
        if spec.safety_level.rank > self.highest_safety_level.rank and self.approve is None:
            return False
        if context.limits is not None and context.limits.refusal("run", {"name": spec.name, "tags": spec.tags}):
            return False
        if self.authoriser is None:
            return True
        try:
            await self._authorise(self.authoriser, spec, context)
        except DeniedError:
            return False
        return True

    async def _admit(self, spec: ToolSpec, arguments: Arguments, context: ToolContext) -> None:
        if self.authoriser is not None or context.limits is not None:
            await self._authorise(self.authoriser or Authoriser(), spec, context)
        if spec.safety_level.rank > self.highest_safety_level.rank:
            await self._ask_approval(spec, arguments)

    async def _authorise(self, authoriser: Authoriser, spec: ToolSpec, context: ToolContext) -> None:
        principal = Principal(context.principal, context.roles, limits=context.limits)
        document = spec.model_dump(mode="json", exclude={"credentials"})
        await ask(OUTSIDE, authoriser, authoriser.check, "run", document, principal, digest=spec.digest)

    async def _ask_approval(self, spec: ToolSpec, arguments: Arguments) -> None:
        above = f"{spec.name!r} is {spec.safety_level.value!r}, above the allowed {self.highest_safety_level.value!r}"
        if self.approve is None:
            raise ApprovalRequiredError(f"{above}, and nobody is there to approve it", rule="safety_level")
        given = arguments(spec) if callable(arguments) else {} if arguments is None else arguments
        if not isinstance(given, Mapping):
            raise InvalidArgumentsError(f"the arguments of {spec.name!r} must be an object", tool=spec.name)
        try:
            answer = self.approve(spec, given)
            approved = await answer if inspect.isawaitable(answer) else answer
        except (Exception, asyncio.CancelledError) as error:  # the callback is the caller's: what it raises is no yes
            if is_cancellation(error):
                raise
            reason = str(error) or type(error).__name__
            raise ApprovalRequiredError(
                f"{above}, and asking for approval failed: {reason}", rule="safety_level"
            ) from error
        if approved is not True:
            raise ApprovalRequiredError(f"{above}, and was not approved", rule="safety_level")


def _told_by(told: ToolResult | Ran) -> ToolResult:
    """What a runner says itself of a run. A result that a tool made is copied: it may keep it, and may have put
    anything into it.
    """
    if isinstance(told, Ran):
        return ToolResult.of(told)
    result, metadata = copy(told), cast(Any, told.metadata)
    result.success = bool(told.success)
    result.error = None if told.error is None else str(told.error)
    result.error_code = None if told.error_code is None else str(told.error_code)
    result.metadata = dict(metadata) if isinstance(metadata, Mapping) else {}
    return result


def _outcome(result: ToolResult) -> tuple[Outcome, str]:
    """What goes on record of a call that did not go well."""
    code = result.error_code or ""
    return outcome_of(code), with_rule(code, result.metadata.get("rule", "")) if code else ""

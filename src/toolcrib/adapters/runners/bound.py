"""What every binding has in common: a deadline, credentials, and how what goes wrong elsewhere is told."""

from __future__ import annotations

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from toolcrib.calling import runner_for
from toolcrib.calling.blocking import READS, in_thread
from toolcrib.calling.observing import trace_headers
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import (
    InvalidArgumentsError,
    ToolFailedError,
    ToolTimeoutError,
    ToolValidationError,
    UnavailableError,
)
from toolcrib.core.json import holds_more_values, same
from toolcrib.core.schema import ArgumentCheck, JsonSchema, named_arguments
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool
from toolcrib.define.callables import is_async_callable

_MOST_VALUES = 250_000
"""In a result."""

Credentials = Callable[[], Mapping[str, Any]]
"""Opens the credentials of the record that a tool was bound from, at the moment of a call; they are never kept."""


_TRACE = ("traceparent", "tracestate")
"""Not the baggage: it says what others have put into it."""


def trace_to_send() -> dict[str, str]:
    """The headers that tell somebody else's server which trace the running call belongs to."""
    return {name: value for name, value in trace_headers().items() if name in _TRACE}


async def open_credentials(credentials: Credentials | None) -> dict[str, Any]:
    return {} if credentials is None else dict(await in_thread(READS, credentials))


@dataclass(eq=False, kw_only=True)
class BoundRunner(ABC):
    """Runs code that is elsewhere, for every tool of one kind of binding.

    ``default_seconds`` is the deadline of a tool that names none, ``most_seconds`` of one that names too much.
    """

    default_seconds: float = 60.0
    most_seconds: float = 3600.0

    @abstractmethod
    async def __call__(
        self, tool: Tool, arguments: dict[str, Any], context: ToolContext, credentials: Credentials | None = None
    ) -> Any:
        """Run a tool with its own credentials, None if it has none."""

    def seconds_for(self, spec: ToolSpec, context: ToolContext) -> float:
        return min(context.seconds_for(spec.timeout_seconds or self.default_seconds) or math.inf, self.most_seconds)

    @asynccontextmanager
    async def deadline(self, spec: ToolSpec, context: ToolContext) -> AsyncIterator[float]:
        """Its seconds. Past them it is a ToolTimeoutError; who does not answer, or cannot be asked, failed."""
        seconds = self.seconds_for(spec, context)
        try:
            async with asyncio.timeout(seconds):
                yield seconds
        except TimeoutError:
            raise ToolTimeoutError(spec.name, seconds) from None
        except (UnavailableError, ToolValidationError) as error:
            raise ToolFailedError(spec.name, str(error), cause_type=type(error).__name__) from None


def check_values(name: str, said: bytes) -> None:
    """ToolFailedError if the JSON text that a tool answered with holds so many values that everybody would wait."""
    if holds_more_values(said, _MOST_VALUES):
        raise ToolFailedError(name, f"its result holds more than {_MOST_VALUES:,} values")


def bound_tool(spec: ToolSpec, runner: BoundRunner, credentials: Credentials | None = None) -> Tool:
    """The tool that ``runner`` runs. There is no function here to be called directly."""

    def elsewhere(*_: Any, **__: Any) -> Any:
        raise ToolValidationError(f"the code of {spec.name!r} is not in this process; use execute()")

    return Tool(spec, elsewhere, partial(runner, credentials=credentials))


def described_tool(own: Tool, spec: ToolSpec, *, isolate: bool) -> Tool:
    """Code of this process under the catalogue's description of it, which can only ask for more care than it takes.

    The stricter safety level and the shorter deadline hold. The code's own schema holds beside the description's, so
    that it never receives an argument which it has not declared. With ``isolate`` the description may put it into a
    process; otherwise it runs as the code itself says. A description that says nothing of parameters, as in The
    Brain's file, gets the code's.
    """
    if spec.parameters.keys() <= {"type", "properties"} and not spec.parameters.get("properties"):
        spec = spec.with_changes(parameters=own.spec.parameters)
    described = own.with_spec(_with_care(own.spec, spec, isolate))
    if described.spec.isolation == "process" != own.spec.isolation:
        described.runner = runner_for(described.spec, is_async_callable(own.function))
    schema = own.spec.parameters
    if schema.get("additionalProperties") is not False or not same(schema, spec.parameters):
        described.runner = _checked(described.runner, schema, spec.name)
    return described


def _with_care(own: ToolSpec, spec: ToolSpec, isolate: bool) -> ToolSpec:
    changes: dict[str, Any] = {}
    if own.safety_level > spec.safety_level:
        changes["safety_level"] = own.safety_level
    if own.timeout_seconds is not None and own.timeout_seconds < (spec.timeout_seconds or math.inf):
        changes["timeout_seconds"] = own.timeout_seconds
    if spec.isolation not in ("", own.isolation) and not (isolate and spec.isolation == "process"):
        changes["isolation"] = own.isolation
    return spec.with_changes(**changes) if changes else spec


def _checked(run: Runner, schema: JsonSchema, name: str) -> Runner:
    check, named = ArgumentCheck(schema, name), named_arguments(schema)

    async def checked(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        unknown = None if named is None else next((key for key in arguments if key not in named), None)
        if unknown is not None:
            raise InvalidArgumentsError(
                f"the code of {name!r} takes no argument {unknown!r}, whatever its description says", tool=name
            )
        return await run(tool, check(arguments), context)

    return checked

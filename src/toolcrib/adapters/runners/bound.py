"""What every binding has in common: a deadline, credentials, and how what goes wrong elsewhere is told."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from toolcrib.calling import runner_for
from toolcrib.calling.blocking import READS, in_thread
from toolcrib.core.errors import ToolFailedError, ToolTimeoutError, ToolValidationError, UnavailableError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool
from toolcrib.define import as_tool, make_tool
from toolcrib.define.function import is_async_callable

Credentials = Callable[[str], Mapping[str, Any]]
"""Opens the credentials of the tool of a name at the moment of a call; they are never kept."""


def no_credentials(_name: str) -> Mapping[str, Any]:
    return {}


@dataclass(eq=False, kw_only=True)
class BoundRunner:
    """Runs code that is elsewhere, for every tool of one kind of binding."""

    credentials: Credentials = no_credentials
    default_seconds: float = 60.0

    def seconds_for(self, spec: ToolSpec) -> float:
        return spec.timeout_seconds or self.default_seconds

    async def open_credentials(self, spec: ToolSpec) -> dict[str, Any]:
        return dict(await in_thread(READS, self.credentials, spec.name)) if spec.credentials else {}

    @asynccontextmanager
    async def deadline(self, spec: ToolSpec) -> AsyncIterator[float]:
        """Its seconds. Past them it is a ToolTimeoutError; who does not answer, or cannot be asked, failed."""
        seconds = self.seconds_for(spec)
        try:
            async with asyncio.timeout(seconds):
                yield seconds
        except TimeoutError:
            raise ToolTimeoutError(spec.name, seconds) from None
        except (UnavailableError, ToolValidationError) as error:
            raise ToolFailedError(spec.name, str(error), cause_type=type(error).__name__) from None


def bound_tool(spec: ToolSpec, runner: Runner) -> Tool:
    """The tool that ``runner`` runs. There is no function here to be called directly."""

    def elsewhere(*_: Any, **__: Any) -> Any:
        raise ToolValidationError(f"the code of {spec.name!r} is not in this process; use execute()")

    return Tool(spec, elsewhere, runner)


def described_tool(found: Any, spec: ToolSpec, *, isolate: bool) -> Tool:
    """Code of this process under the catalogue's description of it, which never makes the code safer.

    With ``isolate`` it runs in the isolation that the description asks for, else as the code itself says.
    """
    if inspect.isroutine(found):  # the catalogue describes it, so it need not describe itself
        found = make_tool(found, name=spec.name, description=spec.description or spec.name)
    tool = as_tool(found)
    if tool.spec.safety_level > spec.safety_level:
        spec = spec.with_changes(safety_level=tool.spec.safety_level)
    described = tool.with_spec(spec)
    if isolate and spec.isolation not in ("", tool.spec.isolation):
        described.runner = runner_for(spec, is_async_callable(tool.function))
    return described

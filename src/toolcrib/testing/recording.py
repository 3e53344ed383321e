"""A registry that keeps every call of its tools, and answers some of them itself."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.calling.inline import run_async_inline
from toolcrib.calling.observing import Observed
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.json import copied
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.registry import ToolRegistry


@dataclass(slots=True)
class RecordedCall:
    """A call as it came. ``arguments`` is what was given, before defaults; a model's broken words are text.

    ``result`` is None while the call runs, and for ever if it was cancelled.
    """

    name: str
    arguments: Any
    context: ToolContext = NO_CONTEXT
    result: ToolResult | None = None


class RecordingRegistry(ToolRegistry):
    """The tools of ``registry`` as they are now, under its rules; ``calls`` has every call in order.

    ``answers`` has what some of the tools answer instead of running: a value, an exception, or a function that is
    called with the arguments, sync or async. Arguments and answers are checked all the same.
    Calls that were refused are kept too, such as those of a tool that there is not.
    """

    def __init__(self, registry: ToolRegistry, *, answers: Mapping[str, Any] | None = None) -> None:
        answers = answers or {}
        for name in answers:
            if name not in registry:
                raise ToolNotFoundError(name, registry.names())
        super().__init__()
        self._take_over(
            registry,
            [_answering(tool, answers[tool.name]) if tool.name in answers else tool for tool in registry.get_all()],
        )
        self.calls: list[RecordedCall] = []
        self.observe(_Keeper(self.calls))

    def results(self, name: str) -> list[ToolResult]:
        """The results of the calls of one tool that have ended."""
        return [each.result for each in self.calls if each.name == name and each.result is not None]


def _answering(tool: Tool, answer: Any) -> Tool:
    """The tool with ``answer`` in the place of its code."""

    async def answered(**arguments: Any) -> Any:
        if isinstance(answer, BaseException) or (isinstance(answer, type) and issubclass(answer, BaseException)):
            raise answer
        value = answer(**arguments) if callable(answer) else copied(answer)
        return await value if inspect.isawaitable(value) else value

    return Tool(tool.spec, answered, run_async_inline, decode=tool.decode)


class _Keeper:
    """Observes calls, and keeps them."""

    def __init__(self, kept: list[RecordedCall]) -> None:
        self._kept = kept

    def begin(self, call: Observed) -> RecordedCall:
        entry = RecordedCall(call.name, _kept(call.given), call.context)
        self._kept.append(entry)
        return entry

    def end(self, begun: RecordedCall, call: Observed) -> None:
        if callable(begun.arguments):  # it made them when the tool was known, if it was
            begun.arguments = _kept(None if callable(call.given) else call.given)
        begun.result = call.result


def _kept(given: Any) -> Any:
    if given is None:
        return {}
    return copied(dict(given)) if isinstance(given, Mapping) else given

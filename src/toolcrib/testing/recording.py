"""A registry that keeps every call of its tools, and answers some of them itself."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from toolcrib.calling.call import Arguments, Calls
from toolcrib.calling.inline import run_async_inline
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import ToolcribError, ToolNotFoundError
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.formats import Asked
from toolcrib.formats.jsonable import copied
from toolcrib.formats.provider import arguments_of
from toolcrib.registry import ToolRegistry
from toolcrib.registry.conversation import Conversation


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
        super().__init__(
            _answering(tool, answers[tool.name]) if tool.name in answers else tool for tool in registry.get_all()
        )
        self._under_rules_of(registry)
        self.calls: list[RecordedCall] = []
        self._calls = _recording(self._calls, self.calls)

    def results(self, name: str) -> list[ToolResult]:
        """The results of the calls of one tool that have ended."""
        return [each.result for each in self.calls if each.name == name and each.result is not None]

    def _conversation(self, format: str, context: ToolContext, timeout_seconds: float | None) -> Conversation:
        conversation = super()._conversation(format, context, timeout_seconds)
        conversation.refuse = partial(self._refuse, format, context)
        return conversation

    def _refuse(self, format: str, context: ToolContext, asked: Asked, error: ToolcribError) -> ToolResult:
        """Keep what a model asked for that does not come to a call."""
        try:
            arguments: Any = arguments_of(asked, format)
        except ToolcribError:
            arguments = asked.arguments
        result = ToolResult.of_error(error)
        self.calls.append(RecordedCall(asked.exported_name, arguments, context, result))
        return result


def _answering(tool: Tool, answer: Any) -> Tool:
    """The tool with ``answer`` in the place of its code."""

    async def answered(**arguments: Any) -> Any:
        if isinstance(answer, BaseException) or (isinstance(answer, type) and issubclass(answer, BaseException)):
            raise answer
        value = answer(**arguments) if callable(answer) else copied(answer)
        return await value if inspect.isawaitable(value) else value

    return Tool(tool.spec, answered, run_async_inline, decode=tool.decode)


@dataclass(frozen=True, slots=True)
class _RecordedCalls(Calls):
    kept: list[RecordedCall] = field(default_factory=list)

    async def execute(self, name: str, arguments: Arguments, context: ToolContext = NO_CONTEXT) -> ToolResult:
        given = {} if arguments is None else arguments
        entry = RecordedCall(name, copied(dict(given)) if isinstance(given, Mapping) else given, context)
        self.kept.append(entry)
        entry.result = await Calls.execute(self, name, arguments, context)
        return entry.result


def _recording(calls: Calls, kept: list[RecordedCall]) -> Calls:
    return _RecordedCalls(
        calls.resolve, calls.highest_safety_level, calls.approve, calls.authoriser, calls.recorder, calls.layers,
        calls.remote, kept=kept,
    )  # fmt: skip

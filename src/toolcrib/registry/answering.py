"""The calls that a model makes, answered in its provider's words."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any

from toolcrib.calling.call import Calls
from toolcrib.calling.usage import UNKNOWN
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import UNEXPECTED, InvalidArgumentsError, ToolcribError, ToolFailedError, ToolNotFoundError
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.formats import Asked, read_call, tool_called
from toolcrib.formats.nulls import holds_null, without_nulls
from toolcrib.formats.provider import NO_IDS, arguments_of
from toolcrib.formats.table import format_named, provider_named
from toolcrib.registry.large_results import LargeResults

_log = logging.getLogger("toolcrib")

Execute = Callable[[str, Mapping[str, Any], ToolContext], Coroutine[Any, Any, ToolResult]]
Answered = Callable[[Iterable[str], Iterable[dict[str, Any]]], None]
"""Told what a model is answered to its calls of tools by these names, UNKNOWN where there is no such tool."""

_Work = Callable[[asyncio.TaskGroup, Any], Coroutine[Any, Any, None]]


class Answer(dict[str, Any]):
    """The answer to one call in its provider's words, and beside it the ``result`` that it tells of."""

    __slots__ = ("result",)

    def __init__(self, answer: Mapping[str, Any], result: ToolResult) -> None:
        super().__init__(answer)
        self.result = result

    @property
    def is_terminal(self) -> bool:
        """Whether the tool that ran ends the task."""
        return self.result.is_terminal


class Answers(list[dict[str, Any]]):
    """What is appended to the conversation, and beside it the ``results`` of the calls, in their order."""

    __slots__ = ("results",)

    def __init__(self, answers: Iterable[dict[str, Any]] = (), results: Iterable[ToolResult] = ()) -> None:
        super().__init__(answers)
        self.results = list(results)

    @property
    def terminal(self) -> ToolResult | None:
        """The result that ends the task, if one does."""
        return next((result for result in self.results if result.is_terminal), None)

    @property
    def is_terminal(self) -> bool:
        """Whether one of the tools that ran ends the task."""
        return self.terminal is not None


class Answering:
    """Answers calls in ``format`` with ``tools``. ``execute`` never raises; ``calls`` hear of what cannot be executed.

    ``large`` shortens what is too long, and ``answered`` is told of the answers.
    """

    __slots__ = ("_answered", "_calls", "_context", "_execute", "_format", "_large", "_provider", "_title", "_tools")

    def __init__(
        self,
        format: str,
        tools: Mapping[str, Tool],
        calls: Calls,
        execute: Execute,
        context: ToolContext,
        answered: Answered,
        large: LargeResults | None = None,
    ) -> None:
        self._format = format
        self._provider = provider_named(format)
        self._title = format_named(format).title
        self._tools = tools
        self._calls = calls
        self._execute = execute
        self._context = context
        self._answered = answered
        self._large = large

    def read(self, call: Any) -> Asked:
        """A call as it came; whatever is wrong with it is told when it is answered."""
        return self._provider.read_call(call) if type(call) is dict else read_call(self._format, call)

    async def answer(self, asked: Asked) -> Answer:
        answers = await self.answer_all([asked], 1)
        return Answer(answers[0], answers.results[0])

    async def answer_all(self, calls: Sequence[Asked], at_once: int) -> Answers:
        """Each answered, in order, at most so many at once.

        Whoever takes a call first sees to it that another task takes the next, which it does only if this one waits:
        calls that never wait cost no tasks.
        """
        answers: list[dict[str, Any] | None] = [None] * len(calls)
        results: list[ToolResult | None] = [None] * len(calls)
        tools, title, execute, context = self._tools, self._title, self._execute, self._context
        names = [asked[0] if type(asked[0]) is str and asked[0] in tools else UNKNOWN for asked in calls]
        waiting = iter(range(len(calls)))
        twice = _ids_given_before(calls)
        tasks_left = min(at_once, len(calls)) - 1
        render, large = self._provider.render_result, self._large
        told_the_id = bool(self._calls.layers or self._calls.observers)

        async def work(group: asyncio.TaskGroup, itself: _Work) -> None:
            """It is given itself: if it held itself, all answers would be kept until the garbage collector comes."""
            nonlocal tasks_left
            helped = False
            for place in waiting:
                if not helped:
                    helped = True
                    if tasks_left > 0:
                        tasks_left -= 1
                        group.create_task(itself(group, itself))
                asked = name, said, call_id = calls[place]
                try:
                    if place in twice:
                        raise _used_before(asked)
                    arguments = arguments_of(asked, title)
                    tool = tools.get(name)
                    if tool is None:
                        name = self._meant(name)
                        tool = tools.get(name)
                        names[place] = UNKNOWN if tool is None else name
                    if tool is not None and ("null" in said if type(said) is str else holds_null(arguments)):
                        arguments = without_nulls(tool.spec.parameters, arguments)
                    own = context
                    if told_the_id or tool is None or tool.context_parameter is not None:
                        own = context.asked_as(call_id)
                    results[place] = result = await execute(name, arguments, own)
                    if large is not None:
                        result = large.shortened(result, tools, context, self._provider.takes)
                    answers[place] = render(call_id, result, asked[0], [])
                except ToolcribError as error:
                    name = self._meant(asked.exported_name)
                    names[place] = name if name in tools else UNKNOWN
                    results[place] = result = self._refused(asked, name, error)
                    answers[place] = render(call_id, result, asked.exported_name, [])
                except Exception as error:  # noqa: BLE001 - what breaks here costs the other calls no answer
                    _log.error("the call of tool %r broke", asked.exported_name, exc_info=error)
                    results[place] = result = ToolResult.of_error(UNEXPECTED)
                    answers[place] = render(call_id, result, asked.exported_name, [])

        async with asyncio.TaskGroup() as group:
            await work(group, work)
        return self._finished(calls, names, answers, results)

    def _finished(
        self,
        calls: Sequence[Asked],
        names: Iterable[str],
        answers: Iterable[dict[str, Any] | None],
        results: Iterable[ToolResult | None],
    ) -> Answers:
        """With an answer for each whose tool took its own task along."""
        told: list[dict[str, Any]] = []
        ended: list[ToolResult] = []
        for asked, answer, result in zip(calls, answers, results, strict=True):
            ended.append(result or ToolResult.of_error(_ended_its_task(asked)))
            told.append(answer or self._provider.render_result(asked[2], ended[-1], asked[0], []))
        self._answered(names, told)
        return Answers(told, ended)

    def _refused(self, asked: Asked, name: str, error: ToolcribError) -> ToolResult:
        context = self._context.asked_as(asked.call_id)
        return self._calls.refuse(self._tools.get(name), name, self._given(asked), error, context)

    def _meant(self, exported_name: str) -> str:
        """The tool that a model calls; if it means none, the name as it came, which its call is refused for."""
        if exported_name in self._tools:
            return exported_name
        try:
            return tool_called(self._tools, self._format, exported_name)
        except ToolNotFoundError as error:
            return error.name

    def _given(self, asked: Asked) -> Any:
        """What the model gave, as it is read if it can be."""
        try:
            return arguments_of(asked, self._title)
        except ToolcribError:
            return asked.arguments


def _ids_given_before(calls: Sequence[Asked]) -> set[int]:
    """The places of calls whose id an earlier one has. A name that stands in for an id is none."""
    if len({asked[2] for asked in calls}) == len(calls):
        return set()
    seen: set[str] = set()
    twice: set[int] = set()
    for place, asked in enumerate(calls):
        if asked.call_id not in NO_IDS and asked.call_id != asked.name:
            if asked.call_id in seen:
                twice.add(place)
            seen.add(asked.call_id)
    return twice


def _ended_its_task(asked: Asked) -> ToolFailedError:
    return ToolFailedError(asked.exported_name, "it cancelled the task that it ran in", cause_type="CancelledError")


def _used_before(asked: Asked) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"the id {asked.call_id!r:.100} is that of an earlier call in the same message, so this one did not run; "
        "call again with an id of its own"
    )

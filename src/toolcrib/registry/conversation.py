"""The calls that a model makes, answered in its provider's words."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolcribError, ToolFailedError
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.formats import Asked, read_call, tool_called
from toolcrib.formats.provider import arguments_of
from toolcrib.formats.table import format_named, provider_named

Execute = Callable[[str, Mapping[str, Any], ToolContext], Coroutine[Any, Any, ToolResult]]
Refuse = Callable[[Asked, ToolcribError], ToolResult]


class Conversation:
    """Answers calls in ``format`` with ``tools``; ``execute`` never raises.

    ``refuse`` makes the result of what a model asks for that does not come to a call.
    """

    __slots__ = ("_context", "_execute", "_format", "_provider", "_title", "_tools", "refuse")

    def __init__(self, format: str, tools: Mapping[str, Tool], execute: Execute, context: ToolContext) -> None:
        self._format = format
        self._provider = provider_named(format)
        self._title = format_named(format).title
        self._tools = tools
        self._execute = execute
        self._context = context
        self.refuse: Refuse = _refused

    def read(self, call: Any) -> Asked:
        """A call as it came; whatever is wrong with it is told when it is answered."""
        return self._provider.read_call(call) if type(call) is dict else read_call(self._format, call)

    async def answer(self, asked: Asked) -> dict[str, Any]:
        [answer] = await self.answer_all([asked], 1)
        return answer

    async def answer_all(self, calls: Sequence[Asked], at_once: int) -> list[dict[str, Any]]:
        """Each answered, in order, at most so many at once.

        Whoever takes a call first sees to it that another task takes the next, which it does only if this one waits:
        calls that never wait cost no tasks.
        """
        answers: list[dict[str, Any] | None] = [None] * len(calls)
        waiting = deque(enumerate(calls))
        twice = _ids_given_before(calls)
        helpers = at_once - 1
        tools, title, execute, context = self._tools, self._title, self._execute, self._context
        render = self._provider.render_result

        async def work(group: asyncio.TaskGroup) -> None:
            nonlocal helpers
            helped = False
            while waiting:
                place, asked = waiting.popleft()
                if not helped and waiting and helpers > 0:
                    helped = True
                    helpers -= 1
                    group.create_task(work(group))
                try:
                    if place in twice:
                        raise _used_before(asked)
                    arguments, name = arguments_of(asked, title), asked[0]
                    if name not in tools:
                        name = tool_called(tools, self._format, name)
                    result = await execute(name, arguments, context)
                except ToolcribError as error:
                    result = self.refuse(asked, error)
                answers[place] = render(asked[2], result, asked[0], [])

        async with asyncio.TaskGroup() as group:
            await work(group)
        return [
            render(asked[2], ToolResult.of_error(_ended_its_task(asked)), asked[0], []) if answer is None else answer
            for asked, answer in zip(calls, answers, strict=True)
        ]


def _refused(_asked: Asked, error: ToolcribError) -> ToolResult:
    return ToolResult.of_error(error)


def _ids_given_before(calls: Sequence[Asked]) -> set[int]:
    """The places of calls whose id an earlier one has. A name that stands in for an id is none."""
    seen: set[str] = set()
    twice: set[int] = set()
    for place, asked in enumerate(calls):
        if asked.call_id and asked.call_id != asked.name:
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

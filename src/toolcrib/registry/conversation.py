"""The calls that a model makes, answered in its provider's words."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from toolcrib.core.errors import InvalidArgumentsError, ToolcribError
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.formats import Asked, render_result, tool_called, understood

Execute = Callable[[str, Mapping[str, Any]], Coroutine[Any, Any, ToolResult]]


@dataclass(frozen=True, slots=True)
class Conversation:
    """Answers calls in ``format`` with ``tools``; ``execute`` never raises."""

    format: str
    tools: Mapping[str, Tool]
    execute: Execute

    async def answer(self, asked: Asked) -> dict[str, Any]:
        try:
            call = understood(self.format, asked)
            name = call.name if call.name in self.tools else tool_called(self.tools, self.format, call.name)
        except ToolcribError as error:
            return self._refused(asked, error)
        return self._told(asked, await self.execute(name, call.arguments))

    async def answer_all(self, calls: Sequence[Asked], at_once: int) -> list[dict[str, Any]]:
        """Each answered, in order. A few tasks take the calls one by one: a task for each would cost more than it."""
        answers: list[dict[str, Any]] = [{}] * len(calls)
        waiting = iter(list(enumerate(calls)))
        twice = _ids_given_before(calls)

        async def work() -> None:
            for place, asked in waiting:
                if place in twice:
                    answers[place] = self._refused(asked, _used_before(asked))
                else:
                    answers[place] = await self.answer(asked)

        await asyncio.gather(*(work() for _ in range(min(len(calls), max(1, at_once)))))
        return answers

    def _refused(self, asked: Asked, error: ToolcribError) -> dict[str, Any]:
        return self._told(asked, ToolResult.of_error(error))

    def _told(self, asked: Asked, result: ToolResult) -> dict[str, Any]:
        return render_result(self.format, asked.call_id, result, name=asked.exported_name)


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


def _used_before(asked: Asked) -> InvalidArgumentsError:
    return InvalidArgumentsError(
        f"the id {asked.call_id!r:.100} is that of an earlier call in the same message, so this one did not run; "
        "call again with an id of its own"
    )

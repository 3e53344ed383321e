"""A run played again without a model: its calls are made anew, and what comes of them is compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

from toolcrib.agents.agent import Agent
from toolcrib.agents.tools import registry_of
from toolcrib.agents.transcript import CallRecord, Run, Transcript
from toolcrib.core.comparing import differences
from toolcrib.core.result import ToolResult
from toolcrib.registry import ToolRegistry


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of playing a transcript. ``runs`` are those that were played to their end."""

    played: int
    calls: int
    differences: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def same(self) -> bool:
        return self.played == self.calls and not self.differences

    def __str__(self) -> str:
        if self.same:
            return f"all {self.calls} calls went as recorded"
        return "; ".join(self.differences) or f"stopped after {self.played} of {self.calls} calls"


async def replay(
    transcript: Transcript,
    tools: ToolRegistry | Iterable[Any],
    *,
    go_on: bool = False,
    ignore: Collection[str] = (),
    **options: Any,
) -> Replay:
    """Play it with ``tools``, and the runs before it that it goes on with.

    The model says what it said, whatever comes now; the first result that differs ends the replay, unless ``go_on``.
    ``ignore`` names keys of the results that change with every run, such as times. ``options`` are those of
    :class:`Agent`: danger needs approval again.
    """
    registry = registry_of(tools)
    recorded = [call for run in transcript.runs for call in run.calls]
    found: list[str] = []
    played, ended, last = 0, [], None
    for part in transcript.runs:
        agent = Agent(_Recorded(part), registry, system=part.system, max_steps=len(part.steps) or 1, **options)
        waiting: list[list[CallRecord]] = [list(step.calls) for step in part.steps]
        async with aclosing(agent.stream(part.task, after=last)) as events:
            async for event in events:
                if event.run is not None:
                    last = event.run
                    ended.append(last)
                elif event.kind == "result" and event.call is not None:
                    played += 1
                    found += _compared(played, _taken(waiting[event.step - 1], event.call), event.call, ignore)
                    if found and not go_on:
                        return Replay(played, len(recorded), tuple(found), tuple(ended))
    return Replay(played, len(recorded), tuple(found), tuple(ended))


class _Recorded:
    """A model that says what a transcript has."""

    def __init__(self, transcript: Transcript) -> None:
        self.format, self.name = transcript.format, transcript.model
        self._said = [step.message for step in transcript.steps]

    async def __call__(self, *_: Any) -> Any:
        return self._said.pop(0) if self._said else None


def _taken(waiting: list[CallRecord], came: CallRecord) -> CallRecord | None:
    """The recorded call that this one repeats: of its id, the first that has not been repeated yet."""
    for call in waiting:
        if (call.call_id, call.name) == (came.call_id, came.name):
            waiting.remove(call)
            return call
    return None


def _compared(number: int, expected: CallRecord | None, came: CallRecord, ignore: Collection[str]) -> list[str]:
    where = f"call {number} ({came.name})"
    if expected is None:
        return [f"{where}: no such call is recorded"]
    if expected.result is None or came.result is None:
        return []  # it was stopped with its run
    then, now = (_without(_outcome(result), ignore) for result in (expected.result, came.result))
    return [f"{where}: {difference}" for difference in differences(then, now)]


def _outcome(result: ToolResult) -> dict[str, Any]:
    told = result.to_json()
    return {name: told[name] for name in ("success", "error_code", "data")}


def _without(value: Any, ignore: Collection[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(inner, ignore) for key, inner in value.items() if key not in ignore}
    return [_without(inner, ignore) for inner in value] if isinstance(value, list) else value

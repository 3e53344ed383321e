"""The tools of one run: those of the agent's registry, under its rules, and the run is told of every call."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from toolcrib.agents.transcript import CallRecord
from toolcrib.calling.layers import Layer
from toolcrib.calling.observing import Observed
from toolcrib.core.context import ToolContext
from toolcrib.core.json import as_json
from toolcrib.core.progress import ToolEvent
from toolcrib.core.tool import Runner, Tool
from toolcrib.registry import ToolRegistry

if TYPE_CHECKING:
    from toolcrib.agents.agent import Agent

Hear = Callable[[str, ToolEvent], None]
"""Hears what the call of this id tells, perhaps in another thread."""


def registry_of(tools: ToolRegistry | Iterable[Any]) -> ToolRegistry:
    """A registry as it is, one of a dialect by the registry beneath it, and of anything else a new one."""
    beneath = getattr(tools, "core", tools)
    return beneath if isinstance(beneath, ToolRegistry) else ToolRegistry(tools)


class RunTools(ToolRegistry):
    """The registry itself stays as it is. A tool that is registered there while the run goes on is there in its next
    step.
    """

    def __init__(
        self,
        agent: Agent,
        began: Callable[[CallRecord], None],
        ended: Callable[[CallRecord], None],
        hear: Hear | None = None,
    ) -> None:
        super().__init__()
        rules = {"approve": agent.approve, "highest_safety_level": agent.highest_safety_level}
        self._source = agent.tools
        self._take_over(agent.tools, agent.tools.get_all(), **{name: rule for name, rule in rules.items() if rule})
        for layer in (*agent.layers, *([_heard_by(hear)] if hear else ())):
            self.use(layer)
        self.observe(_Watcher(began, ended))

    def offered(self, agent: Agent) -> list[dict[str, Any]]:
        """The definitions of the tools that there are now."""
        self._tools = {tool.name: self.searching_here(tool) for tool in self._source.get_all()}
        return self.definitions(agent.format, **agent.handover) if self._tools else []


@dataclass(frozen=True, slots=True)
class _Watcher:
    """Observes calls, also those that are refused."""

    began: Callable[[CallRecord], None]
    ended: Callable[[CallRecord], None]

    def begin(self, call: Observed) -> CallRecord:
        record = CallRecord(call.name, _told(call.given), call.context.call_id)
        self.began(record)
        return record

    def end(self, begun: CallRecord, call: Observed) -> None:
        begun.seconds = call.seconds
        if callable(call.given) is False:  # what was to be made of them is known now
            begun.arguments = _told(call.given)
        if call.result is not None:
            begun.result = call.result
            self.ended(begun)


def _told(given: Any) -> Any:
    return {} if given is None or callable(given) else as_json(given)


def _heard_by(hear: Hear) -> Layer:
    """A layer that hands on what a call tells, with its id; who hears it already goes on to."""

    def layer(run: Runner) -> Runner:
        async def heard(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            outer, call_id = context.listener, context.call_id

            def both(event: ToolEvent) -> None:
                hear(call_id, event)
                if outer is not None:
                    outer(event)

            return await run(tool, arguments, context.heard_by(both))

        return heard

    return layer

"""The agent: a model, its tools, and the limits of a run."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from typing import Any, Protocol

from toolcrib.agents.events import AgentEvent
from toolcrib.agents.running import Running
from toolcrib.agents.tools import registry_of
from toolcrib.agents.transcript import Prices, Run
from toolcrib.calling.call import Approve
from toolcrib.calling.layers import Layer, above_zero, whole
from toolcrib.calling.streaming import events_of
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.errors import SettingsError, shown
from toolcrib.core.safety import SafetyLevel
from toolcrib.formats import HandoverOptions
from toolcrib.formats.table import provider_named
from toolcrib.registry import ToolRegistry

Task = str | Sequence[Mapping[str, Any]]
"""A text, or messages in the words of the model's provider."""


class Model(Protocol):
    """An async function of the conversation and the definitions of the tools, which returns what the model said.

    A plain function is one too, and works in a thread. It may have a ``name``, and a ``format`` in which it wants both.
    """

    def __call__(self, messages: list[Any], tools: list[dict[str, Any]], /) -> Any: ...


class Agent:
    """``run = await Agent(model, tools).run("How is the weather in Paris?")``

    ``model`` is an async function ``(messages, tools)`` that returns an assistant message of any provider, or its whole
    response, which also tells of its tokens; :class:`OpenAIModel` and :class:`AnthropicModel` are such functions.
    ``tools`` is a registry, also of a dialect, whose rules hold, or whatever one is made of. ``format`` is the
    provider's whose messages and definitions the model is given, if it does not say so itself; ``handover`` says more
    of the definitions.

    A run has at most ``max_steps`` messages of the model, ``max_seconds`` and ``max_tokens``. ``approve`` and
    ``highest_safety_level`` stand in for the registry's; ``layers`` are around the calls of this agent. A tool that is
    terminal ends the run.
    """

    def __init__(  # noqa: PLR0913 - each is one thing that a user may say, by its name
        self,
        model: Model,
        tools: ToolRegistry | Iterable[Any] = (),
        *,
        system: str = "",
        max_steps: int = 50,
        max_seconds: float | None = None,
        max_tokens: int | None = None,
        approve: Approve | None = None,
        highest_safety_level: SafetyLevel | str | None = None,
        prices: Prices | None = None,
        format: str = "",
        layers: Iterable[Layer] = (),
        handover: HandoverOptions | None = None,
        at_once: int = 16,
    ) -> None:
        if not callable(model):
            raise SettingsError(
                f"the model is an async function of (messages, tools), not {shown(model)}; "
                "for a provider's there is OpenAIModel('...') and AnthropicModel('...')"
            )
        above_zero(max_seconds=1 if max_seconds is None else max_seconds)
        whole(1, max_steps=max_steps, max_tokens=1 if max_tokens is None else max_tokens, at_once=at_once)
        self.model = model
        self.tools = registry_of(tools)
        self.system = system
        self.max_steps, self.max_seconds, self.max_tokens = max_steps, max_seconds, max_tokens
        self.approve = approve
        self.highest_safety_level = None if highest_safety_level is None else SafetyLevel(highest_safety_level)
        self.prices = prices
        self.format = format or _word(model, "format") or "openai"
        provider_named(self.format)
        self.name = _word(model, "name") or _word(model, "__name__") or type(model).__name__
        self.layers = tuple(layers)
        self.handover: HandoverOptions = handover or {}
        self.at_once = at_once

    async def run(self, task: Task, *, after: Run | None = None, context: ToolContext = NO_CONTEXT) -> Run:
        """Work on the task until the model has an answer, a terminal tool has run, or a limit is reached.

        What goes wrong on the way is told in the run: its ``ended`` and ``reason``. ``after`` goes on with the
        conversation of another run; the limits begin anew.
        """
        return await Running(self, task, after, context).to_the_end()

    def stream(
        self, task: Task, *, after: Run | None = None, context: ToolContext = NO_CONTEXT
    ) -> AsyncGenerator[AgentEvent, None]:
        """The same, told as it goes on: ``async for event in agent.stream(task)``; the last event has the run.

        Whoever stops listening ends it.
        """
        return events_of(
            lambda tell: Running(self, task, after, context, tell).to_the_end(),
            lambda event: event.kind == "progress" and event.event is not None and event.event.kind == "progress",
            lambda run: AgentEvent("end", len(run.steps), run=run),
        )


def _word(model: Any, name: str) -> str:
    """What a model says of itself; another thing of that name says nothing."""
    said = getattr(model, name, "")
    return said if isinstance(said, str) else ""

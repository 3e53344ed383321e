"""A tool as a framework is handed it: the same for all of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from toolcrib.calling.streaming import stream
from toolcrib.core.content import Audio, File, Image, Link, Part, parts_of
from toolcrib.core.context import NO_CONTEXT, ToolContext
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.formats.naming import exported_names
from toolcrib.formats.nulls import without_nulls
from toolcrib.formats.openai import FORBIDDEN_AT_THE_TOP, NAMES, short_description, text_of
from toolcrib.formats.provider import part_text
from toolcrib.formats.schemas import object_schema

Run = Callable[[str, Mapping[str, Any], ToolContext], Coroutine[Any, Any, ToolResult]]
"""Runs a tool by its name, all of a registry's rules in force. Never raises."""
Execute = Callable[[dict[str, Any]], Coroutine[Any, Any, Any]]
"""Runs one tool. What it returns may be a ToolResult."""


@dataclass(frozen=True, slots=True, repr=False)  # frameworks show what they hold, and a context may hold secrets
class Offer:
    spec: ToolSpec
    name: str
    """As every provider takes it."""
    parameters: JsonSchema
    """Its own copy, without what providers refuse at the top of a schema."""
    run: Run
    context: ToolContext = NO_CONTEXT

    @property
    def short_description(self) -> str:
        """Cut to what OpenAI takes, for a framework that hands it over as it is."""
        return short_description(self.spec)

    def call(self, arguments: Mapping[str, Any], call_id: str | None = None) -> Coroutine[Any, Any, ToolResult]:
        """Never raises; cancelling it cancels the tool. A null that stands for "not given" is none here."""
        return self.run(self.spec.name, self._given(arguments), self._context(call_id))

    async def told(
        self, arguments: Mapping[str, Any], tell: Callable[[ToolEvent], Awaitable[object]], call_id: str | None = None
    ) -> ToolResult:
        """The same for who listens: progress and items are told as they come, on the caller's event loop."""
        result: ToolResult | None = None
        async with aclosing(
            stream(partial(self.run, self.spec.name, self._given(arguments)), self._context(call_id))
        ) as events:
            async for event in events:
                if event.result is None:
                    await tell(event)
                result = event.result
        assert result is not None
        return result

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        """It stands for a tool that lives; a copy of who holds it stands for the same."""
        return self

    def _given(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        return without_nulls(self.spec.parameters, arguments) if type(arguments) is dict else arguments

    def _context(self, call_id: str | None) -> ToolContext:
        return self.context.asked_as(call_id) if call_id else self.context


def offers(tools: Iterable[Tool], run: Run, framework: str, context: ToolContext = NO_CONTEXT) -> list[Offer]:
    """Every tool, under names that every provider takes; ExportError if two would share one."""
    specs = [tool.spec for tool in tools]
    names = exported_names(specs, NAMES, framework)
    return [
        Offer(spec, name, object_schema(spec, [], framework, FORBIDDEN_AT_THE_TOP), run, context)
        for spec, name in zip(specs, names, strict=True)
    ]


def media_of(result: ToolResult) -> tuple[Part, ...]:
    """The parts of a result that holds more than text and JSON; none of one that does not."""
    parts = parts_of(result.data)
    return parts if any(isinstance(part, Image | Audio | File | Link) for part in parts) else ()


def failure_text(result: ToolResult) -> str:
    """What a model is told of a call that failed, in a framework that has a place for text alone."""
    way_out = result.way_out or ("Trying again may help." if result.metadata.get("retryable") else "")
    error = (result.error or "the tool failed").rstrip(".")
    return f"{error} ({result.error_code or 'tool_failed'}). {way_out}".rstrip()


def text_told(result: ToolResult, name: str) -> str:
    """What a model reads as text, whichever framework it is told by: not the images, audio and files."""
    if not result.success:
        return failure_text(result)
    if parts := media_of(result):
        words = [part for part in parts if not isinstance(part, Image | Audio | File)]
        return "\n".join(part_text(part, name, [], "") for part in words)
    return text_of(result, name, [], "")

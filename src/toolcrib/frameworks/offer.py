"""A tool as a framework is handed it: the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.core.progress import Listener
from toolcrib.core.result import ToolResult
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.formats.naming import exported_names
from toolcrib.formats.nulls import without_nulls
from toolcrib.formats.openai import NAMES
from toolcrib.formats.schemas import object_schema

Run = Callable[[str, Mapping[str, Any], Listener | None], Coroutine[Any, Any, ToolResult]]
"""Runs a tool by its name, all of a registry's rules in force. Never raises; the listener hears progress and items."""


@dataclass(frozen=True, slots=True)
class Offer:
    spec: ToolSpec
    name: str
    """As every provider takes it."""
    parameters: JsonSchema
    """Its own copy."""
    run: Run

    @property
    def description(self) -> str:
        return self.spec.description

    async def call(self, arguments: Mapping[str, Any], listener: Listener | None = None) -> ToolResult:
        """Never raises; cancelling it cancels the tool. A null that stands for "not given" is none here."""
        if type(arguments) is dict:
            arguments = without_nulls(self.spec.parameters, arguments)
        return await self.run(self.spec.name, arguments, listener)


def offers(tools: Iterable[Tool], run: Run, framework: str) -> list[Offer]:
    """Every tool, under names that every provider takes; ExportError if two would share one."""
    specs = [tool.spec for tool in tools]
    names = exported_names(specs, NAMES, framework)
    return [Offer(spec, name, object_schema(spec, [], framework), run) for spec, name in zip(specs, names, strict=True)]


def failure_text(result: ToolResult) -> str:
    """What a model is told of a call that failed, in a framework that has a place for text alone."""
    hint = " Trying again may help." if result.metadata.get("retryable") else ""
    return f"{result.error or 'the tool failed'} ({result.error_code or 'tool_failed'}).{hint}"

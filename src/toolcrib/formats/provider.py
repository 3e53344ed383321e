"""What every provider's file is made of: its losses on the way out; definitions, calls and results on the way in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from toolcrib.core.errors import InvalidArgumentsError
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec, no_parameters
from toolcrib.formats.jsonable import copied


@dataclass(frozen=True, slots=True)
class Loss:
    """What a format could not say about a tool.

    ``field`` is the spec's field, dotted if it is a part of a schema: ``parameters.properties.n.multipleOf``.
    """

    tool: str
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.field}: {self.reason}"


class Call(NamedTuple):
    """A model's call of a tool. ``name`` is the exported name; :meth:`Handover.resolve` leads from it to the tool."""

    name: str
    arguments: dict[str, Any]
    call_id: str


def call_of(body: Mapping[str, Any], arguments: Any, call_id: object, provider: str) -> Call:
    """The call that ``body`` names; no arguments are an empty dict."""
    name = body.get("name")
    if not isinstance(name, str) or not name:
        raise InvalidArgumentsError(f"the {provider} tool call has no 'name'; it must be text, not {name!r:.60}")
    if not isinstance(arguments, Mapping | None):
        raise InvalidArgumentsError(
            f"the arguments of {name!r} must be an object of names and values, not {arguments!r:.60}", tool=name
        )
    return Call(name, dict(arguments or {}), "" if call_id is None else str(call_id))


def spec_from(given: Mapping[str, Any], parameters: Any, **fields: Any) -> ToolSpec:
    """A spec of somebody else's definition; None is absence, and a description may be absent."""
    known = {"description": given.get("description"), "parameters": copied(parameters) or no_parameters(), **fields}
    there = {field: value for field, value in known.items() if value is not None}
    return ToolSpec.parse({"name": given.get("name"), "description": "", **there})


def error_of(result: ToolResult) -> str:
    return result.error or "the tool failed"

"""What every provider's file is made of: its losses on the way out; definitions, calls and results on the way in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pydantic_core import from_json

from toolcrib.core.content import Json, Link, Part, Text, ToolReferences
from toolcrib.core.errors import InvalidArgumentsError
from toolcrib.core.json import as_text, copied, holds_more_values, is_finite, read_json
from toolcrib.core.result import ToolResult
from toolcrib.core.spec import ToolSpec, no_parameters

MOST_CHARACTERS = 4_000_000
"""Of the arguments of one call that a model makes. A long book has a million."""
IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
"""The kinds of images that OpenAI and Anthropic take; with any other they refuse the request."""
BEGUN = "{"
"""What stands for arguments that are not there yet: it is refused as no JSON."""
NO_IDS = ("", None, "null")
"""What stands for the id of a call that has none; Mistral's SDK writes a text of null."""
_MOST_VALUES = 100_000
_NOT_FINITE = re.compile("NaN|Infinity")


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


class Asked(NamedTuple):
    """A call as it came, whatever is wrong with it, so that the answer finds its way back."""

    name: Any
    arguments: Any
    call_id: str

    @property
    def exported_name(self) -> str:
        return self.name if isinstance(self.name, str) else ""


_new = tuple.__new__
"""Makes a NamedTuple at half the price of calling it."""


def asked(name: Any, arguments: Any, call_id: object) -> Asked:
    if type(call_id) is not str:
        call_id = "" if call_id is None else str(call_id)
    return _new(Asked, (name, arguments, call_id))


def arguments_of(call: Asked, provider: str) -> dict[str, Any]:
    """What a call gives, as an object or the JSON text of one; InvalidArgumentsError if it is neither, or no call."""
    name, arguments, _ = call
    if type(arguments) is str and type(name) is str and name and len(arguments) <= _MOST_VALUES:
        try:
            value = from_json(arguments, allow_inf_nan=False)
            if type(value) is dict:
                return value
        except ValueError:
            pass  # it is something else, or wrong: what follows says so
    if not isinstance(name, str) or not name:
        raise InvalidArgumentsError(f"the {provider} tool call has no 'name'; it must be text, not {name!r:.60}")
    if isinstance(arguments, str | bytes):
        arguments = _read(arguments, name)
    if isinstance(arguments, dict):
        return arguments
    if not isinstance(arguments, Mapping | None):
        raise InvalidArgumentsError(
            f"the arguments of {name!r} must be an object of names and values, not {arguments!r:.60}", tool=name
        )
    return dict(arguments or {})


def _read(text: str | bytes, name: str) -> Any:
    if len(text) > MOST_CHARACTERS:
        raise InvalidArgumentsError(
            f"the arguments of {name!r} have {len(text):,} characters; at most {MOST_CHARACTERS:,} are taken", tool=name
        )
    if len(text) > _MOST_VALUES and holds_more_values(text.encode() if isinstance(text, str) else text, _MOST_VALUES):
        raise InvalidArgumentsError(f"the arguments of {name!r} hold more than {_MOST_VALUES:,} values", tool=name)
    if not text.strip():
        return {}  # some models write nothing if a tool needs nothing
    try:
        value = read_json(text)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            text, value = value, read_json(value)  # others write the text as a text
    except ValueError as error:
        raise InvalidArgumentsError(f"the arguments of {name!r} are not JSON: {error}", tool=name) from None
    if _NOT_FINITE.search(text if isinstance(text, str) else text.decode(errors="replace")) and not is_finite(value):
        raise InvalidArgumentsError(
            f"the arguments of {name!r} are not JSON: NaN and Infinity are no numbers there", tool=name
        )
    return value


def part_text(part: Part, tool: str, losses: list[Loss], provider: str) -> str:
    """A part as text, for a provider or a place that takes no other; what is no text by nature is a loss."""
    match part:
        case Text(text):
            return as_text(text)
        case Json(value):
            return as_text(value)
        case Link(url, title):
            return as_text(f"[{title}]({url})" if title else url)
        case ToolReferences():
            return as_text(part.text)
    losses.append(Loss(tool, "result", f"{provider} takes no {part.type} like this as a result; it is sent as base64"))
    return as_text(part)


def spec_from(given: Mapping[str, Any], parameters: Any, **fields: Any) -> ToolSpec:
    """A spec of somebody else's definition; None is absence, and a description may be absent."""
    known = {"description": given.get("description"), "parameters": copied(parameters) or no_parameters(), **fields}
    there = {field: value for field, value in known.items() if value is not None}
    return ToolSpec.parse({"name": given.get("name"), "description": "", **there})


def error_of(result: ToolResult) -> str:
    """What was wrong, and what a model can do about it."""
    error, way_out = result.error or "the tool failed", result.way_out
    return f"{error.rstrip('.')}. {way_out}" if way_out else error


def failure_of(result: ToolResult) -> dict[str, Any]:
    """What a model is told that has no flag for failure: the sentence, its code, and whether trying again can help."""
    told = {"error": error_of(result), "error_code": result.error_code or "tool_failed"}
    return told | {"retryable": True} if result.metadata.get("retryable") else told

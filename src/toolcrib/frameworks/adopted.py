"""A tool of another framework as one of ours: the same for all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from toolcrib.core.content import Link, Part, part_of_base64
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import InvalidArgumentsError, ToolValidationError
from toolcrib.core.result import ToolResult
from toolcrib.core.tool import Tool
from toolcrib.define.decoding import complaints
from toolcrib.define.function import running, ways_to_run
from toolcrib.formats.provider import spec_from
from toolcrib.frameworks.offer import Offer


def adopted(
    name: object, description: str | None, parameters: Mapping[str, Any], call: Callable[..., Any], **fields: Any
) -> Tool:
    """A tool that runs ``call(arguments, context)``, sync or async.

    ToolValidationError says what of the others' tool cannot be one here.
    """
    if not (description or "").strip():
        raise ToolValidationError(f"tool {name!r} has no description; a model needs one to know when to call it")
    given = {"name": name, "description": description}
    spec = spec_from(given, parameters, **ways_to_run(call), **fields)
    return running(spec, call, context_parameter="context", decode=_whole)


def taken_back(offer: Offer, name: str, **fields: Any) -> Tool:
    """A tool that a registry handed out, in a registry again: the rules of both hold, and its results are as they were.

    Its deadline and the length of its results are seen to by the registry that it is from.
    """

    async def call(arguments: dict[str, Any], context: ToolContext) -> ToolResult:
        heard = replace(offer, context=offer.context.heard_by(context.listener))
        return await heard.call(arguments, context.call_id)

    fields |= {"name": name, "timeout_seconds": None, "max_result_characters": None, **ways_to_run(call)}
    spec = offer.spec.with_changes(parameters=offer.parameters, **fields)
    return running(spec, call, context_parameter="context", decode=_whole)


def _whole(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"arguments": arguments}


def is_no_tool(thing: object, framework: str, way_out: str = "") -> ToolValidationError:
    return ToolValidationError(f"{thing!r:.80} is not a tool of {framework}{way_out and f'; {way_out}'}")


def refused(name: str, framework: str, reason: str) -> ToolValidationError:
    return ToolValidationError(f"{framework}'s tool {name!r} {reason}; wrap what it does in a function of your own")


def wrong_arguments(name: str, error: ValidationError) -> InvalidArgumentsError:
    """What their own check says beyond the schema, in our words."""
    return InvalidArgumentsError.of(complaints(error, name), tool=name)


def part_of_url(url: str, name: str = "") -> Part:
    """What a ``data:`` URL holds; of another URL, a link."""
    head, _, body = url.partition(";base64,")
    return part_of_base64(body, head.removeprefix("data:"), name) if body and head.startswith("data:") else Link(url)

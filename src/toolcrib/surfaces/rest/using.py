"""Using tools: definitions for models, compatibility, running."""

from __future__ import annotations

from pydantic_core import to_jsonable_python
from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import in_thread
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import UNEXPECTED, ToolNotFoundError, answer_for_code
from toolcrib.core.names import check_name
from toolcrib.core.roles import Role
from toolcrib.formats import FORMATS, handover
from toolcrib.formats.toolentry import spec_to_entry
from toolcrib.surfaces.errors import RequestError
from toolcrib.surfaces.rest import asking
from toolcrib.surfaces.rest.answers import json_answer
from toolcrib.surfaces.rest.bodies import read_object
from toolcrib.surfaces.rest.endpoints import (
    FLAG_SCHEMA,
    NAME_SCHEMA,
    TOOL_ID,
    Answered,
    Body,
    Endpoint,
    Parameter,
    array_of,
    ref,
    under,
)
from toolcrib.surfaces.rest.service import Service, principal_of

_MAX_COMPARED = 100
_COMPARED = ("tools", "names", "tool_ids")
"""What clients call the list of tools to compare; one of these."""
_COMPARED_SCHEMA = {"type": "array", "items": NAME_SCHEMA, "minItems": 2, "maxItems": _MAX_COMPARED}
_STRICT = Parameter("strict", "Read a list of compatibilities as complete.", FLAG_SCHEMA)


async def get_definition(service: Service, request: Request) -> Response:
    """The tool as a provider takes it."""
    wanted = request.query_params.get("format", "openai")
    entry = await in_thread(service.catalogue.entry, asking.tool_id(request))
    return json_answer(handover([entry.spec], wanted).definitions[0])


async def check_compat(service: Service, request: Request) -> Response:
    body = await read_object(request, most=service.limits.json_bytes, seconds=service.limits.json_seconds)
    given, strict = [key for key in _COMPARED if key in body], body.get("strict", False)
    unknown = next((key for key in body if key not in (*given[:1], "strict")), None)
    if unknown is not None:
        raise RequestError(f"the body has a field {unknown!r:.60} that is not wanted; it has 'tools' and 'strict'")
    names = body.get(given[0]) if given else None
    if not isinstance(names, list) or not 2 <= len(names) <= _MAX_COMPARED:
        raise RequestError(f"'tools' must be a list of 2 to {_MAX_COMPARED} tool ids")
    if not isinstance(strict, bool):
        raise RequestError("'strict' must be true or false")
    checked = [check_name(name) for name in names]
    report = await in_thread(service.catalogue.check_compat, checked, strict=strict)
    return json_answer(
        {
            "compatible": report.compatible,
            "answer": "Compatible" if report.compatible else "Non compatible",
            "reason": report.reason,
            "verdicts": list(report.verdicts),
        }
    )


async def list_compatible(service: Service, request: Request) -> Response:
    found = await in_thread(
        service.catalogue.compatible_with,
        asking.tool_id(request),
        asking.optional_text(request, "type") or None,
        strict=asking.flag(request, "strict"),
    )
    return json_answer([spec_to_entry(spec) for spec in found[: asking.MAX_LIMIT]])


async def run_tool(service: Service, request: Request) -> Response:
    """Resolve, authorise, validate, run: a ToolResult comes back whatever happened to the call."""
    name = asking.tool_id(request)
    body = await read_object(request, most=service.limits.json_bytes, seconds=service.limits.json_seconds)
    unknown = next((key for key in body if key != "arguments"), None)
    if unknown is not None:
        raise RequestError(f"the body has a field {unknown!r:.60} that does not exist; it has 'arguments'")
    principal = principal_of(request)
    context = ToolContext(principal.name, roles=principal.roles)
    result = await service.calls.execute(name, body.get("arguments"), context)
    if result.error_code == ToolNotFoundError.code:
        raise ToolNotFoundError(name)
    service.metrics.ran("done" if result.success else result.error_code or "failed")
    return json_answer(to_jsonable_python(result.to_dict(), fallback=repr), _run_status(result.error_code))


def _run_status(code: str | None) -> int:
    """200 if the tool ran, whatever came of it; the error's own status if it was not even begun."""
    answer = answer_for_code(code)
    return 200 if code is None or answer.after_start or answer is UNEXPECTED else answer.http


_REFUSED_RUNS = {
    status: Answered(text, ref("ToolResult"))
    for status, text in {
        400: "The arguments do not fit; nothing was run.",
        403: "A rule refused; nothing was run.",
        409: "Something the tool needs is not configured.",
        501: "The service was installed without what the tool needs.",
        503: "The tool, or who must be asked, is not available.",
    }.items()
}

ENDPOINTS = (
    Endpoint(
        "GET", under("definition"), get_definition, Role.READER, "Use", "The tool as a model's provider takes it",
        (TOOL_ID, Parameter("format", "The provider's format.", {"type": "string", "enum": list(FORMATS)})),
        answers={200: Answered("The definition.", {"type": "object"})},
        problems=(404,),
    ),
    Endpoint(
        "POST", under("run"), run_tool, Role.PUBLISHER, "Use", "Run a tool",
        (TOOL_ID,),
        Body(
            {
                "type": "object",
                "properties": {"arguments": {"type": "object", "additionalProperties": True}},
                "additionalProperties": False,
            },
            example={"arguments": {"text": "hello"}},
        ),
        {200: Answered("The tool was run; `success` says what came of it.", ref("ToolResult")), **_REFUSED_RUNS},
        (404,),
    ),
    Endpoint(
        "POST", "/tools/check-compat", check_compat, Role.READER, "Use", "Whether tools can be stacked",
        body=Body(
            {
                "type": "object",
                "oneOf": [{"required": [name]} for name in _COMPARED],
                "properties": {**dict.fromkeys(_COMPARED, _COMPARED_SCHEMA), "strict": FLAG_SCHEMA},
                "additionalProperties": False,
            },
            example={"tools": ["playwright", "beautifulsoup4"]},
        ),
        answers={200: Answered("Every pair, judged.", ref("Compatibility"))},
        problems=(404,),
    ),
    Endpoint(
        "GET", under("compatible"), list_compatible, Role.READER, "Use", "Tools that stack with this one",
        (TOOL_ID, Parameter("type", "Only tools of this type."), _STRICT),
        answers={200: Answered("Tools, ordered by tool_id.", array_of(ref("ToolEntry")))},
        problems=(404,),
    ),
)  # fmt: skip

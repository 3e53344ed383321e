"""Stacking: which tools fit together."""

from __future__ import annotations

from itertools import islice

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import SCANS, in_thread
from toolcrib.core.names import check_name
from toolcrib.core.roles import Role
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.bodies import read_object
from toolcrib.surfaces.http.endpoints import (
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
from toolcrib.surfaces.http.entries import shown
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.problems import json_answer, json_list_answer
from toolcrib.surfaces.rest.service import Service

_MAX_COMPARED = 100
_COMPARED = ("tools", "names", "tool_ids")
"""What clients call the list of tools to compare; one of these."""
_COMPARED_SCHEMA = {"type": "array", "items": NAME_SCHEMA, "minItems": 2, "maxItems": _MAX_COMPARED}
_STRICT = Parameter("strict", "Read a list of compatibilities as complete.", FLAG_SCHEMA)


async def check_compat(service: Service, request: Request) -> Response:
    body = await read_object(request)
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
    report = await in_thread(SCANS, service.seen_by(request).check_compat, checked, strict=strict)
    return json_answer(
        {
            "compatible": report.compatible,
            "answer": "Compatible" if report.compatible else "Non compatible",
            "reason": report.reason,
            "verdicts": list(report.verdicts),
        }
    )


async def list_compatible(service: Service, request: Request) -> Response:
    name, kind = parameters.tool_id(request), parameters.optional_text(request, "type") or None
    strict, seen = parameters.flag(request, "strict"), service.seen_by(request)

    def first() -> Response:
        entries = islice(seen.compatible_entries(name, kind, strict=strict), parameters.MAX_LIMIT)
        return json_list_answer(shown(entry.document, service.public_url) for entry in entries)

    return await in_thread(SCANS, first)


ENDPOINTS = (
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

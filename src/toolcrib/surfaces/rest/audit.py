"""The audit: who did what."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import READS, in_thread
from toolcrib.core.roles import Role
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.endpoints import Answered, Endpoint, Parameter, array_of, limited_to, ref
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.problems import json_list_answer
from toolcrib.surfaces.rest.service import Service

_ASKED = ("tool", "principal", "action", "outcome", "call")


async def list_audit(service: Service, request: Request) -> Response:
    since = request.query_params.get("since", "0")
    try:
        begin = float(since)
    except ValueError:
        raise RequestError(f"the query parameter 'since' must be seconds since 1970, not {since!r:.60}") from None
    if not 0 <= begin < 1e12:
        raise RequestError(f"the query parameter 'since' must be seconds since 1970, not {since!r:.60}")
    asked = {name: parameters.optional_text(request, name) for name in _ASKED}
    most = parameters.whole_number(request, "limit", 100, parameters.MAX_LIMIT)

    def found() -> Response:
        events = service.audit.events(**asked, since=begin, limit=most)
        return json_list_answer(event._asdict() for event in events)

    return await in_thread(READS, found)


ENDPOINTS = (
    Endpoint(
        "GET", "/audit", list_audit, Role.ADMIN, "Operations", "Who did what, newest first",
        (
            Parameter("tool", "Only about this tool."),
            Parameter("principal", "Only by this caller."),
            Parameter("action", "Only create, update, delete, run or read: refusals alone."),
            Parameter("outcome", "Only attempt, done, failed, refused or crashed."),
            Parameter("call", "Only the events of one attempt."),
            Parameter("since", "Only from then on, in seconds since 1970.", {"type": "number", "minimum": 0}),
            limited_to(parameters.MAX_LIMIT, 100),
        ),
        answers={200: Answered("The events.", array_of(ref("AuditEvent")))},
    ),
)  # fmt: skip

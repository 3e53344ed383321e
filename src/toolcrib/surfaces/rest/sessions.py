"""Sessions: what calls of one caller share, listed and ended."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.sessions import Session
from toolcrib.core.errors import DeniedError
from toolcrib.core.roles import ROLE_RULE, Role
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.endpoints import SESSION_SCHEMA, Answered, Endpoint, Parameter, array_of, ref
from toolcrib.surfaces.http.problems import json_answer, json_list_answer
from toolcrib.surfaces.rest.service import Service


async def list_sessions(service: Service, request: Request) -> Response:
    """One's own, with what they are about; an administrator sees that there are others."""
    asking = parameters.principal(request)
    return json_list_answer(
        _shown(session, is_own=session.principal == asking.name)
        for session in service.sessions.open_ones()
        if session.principal == asking.name or Role.ADMIN in asking.may
    )


def _shown(session: Session[Any], *, is_own: bool) -> dict[str, Any]:
    facts = {
        "name": session.name,
        "principal": session.principal,
        "opened_at": session.opened_at,
        "used_at": session.used_at,
        "calls": session.calls,
        "busy": session.users > 0,
    }
    return {**facts, "about": session.kept.about()} if is_own else facts


async def end_session(service: Service, request: Request) -> Response:
    asking = parameters.principal(request)
    principal = request.query_params.get("principal", asking.name)
    if principal != asking.name and Role.ADMIN not in asking.may:
        raise DeniedError("only an administrator ends the sessions of others; leave out 'principal'", rule=ROLE_RULE)
    await service.sessions.end(principal, request.path_params["name"])
    return json_answer({"message": "Session ended"})


_NAME = Parameter("name", "The session's name.", SESSION_SCHEMA, required=True, where="path")

ENDPOINTS = (
    Endpoint(
        "GET", "/sessions", list_sessions, Role.RUNNER, "Use", "List one's own sessions",
        answers={200: Answered("The sessions, the oldest first.", array_of(ref("Session")))},
        description="A session opens with the first call that names it, and ends when nobody has used it for a while. "
        "Administrators see the sessions of others too, but not what they are `about`.",
    ),
    Endpoint(
        "DELETE", "/sessions/{name}", end_session, Role.RUNNER, "Use", "End a session",
        (_NAME, Parameter("principal", "Whose session it is, for administrators; one's own if left out.")),
        answers={200: Answered("It has ended, with all that it kept.", ref("Message"))},
        problems=(404,),
        description="A call of it that is under way ends with `session_ended`.",
    ),
)  # fmt: skip

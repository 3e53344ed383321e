"""Runs: a tool, called."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.streaming import stream
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import RETRY_AFTER, ToolNotFoundError
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.core.roles import Role
from toolcrib.core.tool import Runner, Tool
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.accepting import EVENTS, prefers_events
from toolcrib.surfaces.http.bodies import read_object
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.endpoints import SESSION_SCHEMA, TOOL_ID, Answered, Body, Endpoint, ref, under
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.event_stream import EventStream
from toolcrib.surfaces.http.problems import json_answer
from toolcrib.surfaces.rest.service import Service

_FIELDS = ("arguments", "session")
_FIELD_NAMES = "'arguments' and 'session'"


async def run_tool(service: Service, request: Request) -> Response:
    """A ToolResult comes back whatever happened to the call, unless there is no such tool. Who leaves ends the run.

    Who asks for events gets them, and the result as the last, from where the tool begins to run.
    """
    name: str = request.path_params["tool_id"]  # a name that no tool can have is a call too, and goes on record
    body = await read_object(request)
    unknown = next((key for key in body if key not in _FIELDS), None)
    if unknown is not None:
        raise RequestError(f"the body has a field {unknown!r:.60} that does not exist; it has {_FIELD_NAMES}")
    context = ToolContext.of(parameters.principal(request))
    if "session" in body:
        context = context.in_session(body["session"])
    if prefers_events(request.scope):
        return await _told(service, request, name, body.get("arguments"), context)
    return _answered(
        service, name, await while_connected(request, service.calls.execute(name, body.get("arguments"), context))
    )


def _answered(service: Service, name: str, result: ToolResult) -> Response:
    if result.error_code == ToolNotFoundError.code:
        raise ToolNotFoundError(name)
    _count(service, result)
    if result.refusal is None:
        return json_answer(result.to_json())
    return json_answer(result.to_json(), result.refusal.http, _when_again(result))


def _when_again(result: ToolResult) -> dict[str, str]:
    """When to try again, if the refusal says so."""
    seconds = result.metadata.get(RETRY_AFTER)
    return {"retry-after": str(max(1, math.ceil(seconds)))} if isinstance(seconds, int | float) else {}


def _count(service: Service, result: ToolResult) -> None:
    service.metrics.ran("done" if result.success else result.error_code or "failed")


_BEGUN = ToolEvent("progress")
"""Tells us, and nobody else, that a call is allowed and valid and its tool begins to run."""


def _telling_that_it_begins(run: Runner) -> Runner:
    async def begin(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
        if context.listener is not None:
            context.listener(_BEGUN)
        return await run(tool, arguments, context)

    return begin


async def _told(service: Service, request: Request, name: str, arguments: Any, context: ToolContext) -> Response:
    """A stream from where the tool begins to run; what was refused before is answered as ever."""
    calls = replace(service.calls, layers=(_telling_that_it_begins, *service.calls.layers))
    events = stream(lambda heard: calls.execute(name, arguments, heard), context, every_item=False)

    async def first() -> ToolEvent:
        return await anext(events)

    try:
        begun = await while_connected(request, first())
    except BaseException:
        await events.aclose()
        raise
    if begun.result is not None:
        return _answered(service, name, begun.result)
    return EventStream(events, partial(_count, service))


_REFUSED_RUNS = {
    status: Answered(text, ref("ToolResult"))
    for status, text in {
        400: "The arguments do not fit; nothing was run.",
        403: "A rule refused; nothing was run.",
        409: "Something the tool needs is not configured, or the service keeps no sessions.",
        429: "The caller has as many sessions as a caller may have, or too many calls.",
        501: "The service was installed without what the tool needs.",
        503: "The tool, or who must be asked, is not available.",
    }.items()
}

ENDPOINTS = (
    Endpoint(
        "POST", under("run"), run_tool, Role.RUNNER, "Use", "Run a tool",
        (TOOL_ID,),
        Body(
            {
                "type": "object",
                "properties": {
                    "arguments": {"type": "object", "additionalProperties": True},
                    "session": SESSION_SCHEMA,
                },
                "additionalProperties": False,
            },
            example={"arguments": {"text": "hello"}},
        ),
        {
            200: Answered(
                "The tool was run; `success` says what came of it.",
                ref("ToolResult"),
                also={EVENTS: {"type": "string", "description": "Events, each a ToolEvent as JSON."}},
            ),
            **_REFUSED_RUNS,
        },
        (404,),
        "With `Accept: text/event-stream`, and not JSON before it, the answer is a stream of server-sent events: "
        "`progress`, `item` and at last `result`, each a ToolEvent as JSON. What is refused before the tool's turn is "
        "answered as without it; that no session or no place is free is the `result` of the stream. "
        "A client that closes the connection ends the run. Calls of one caller that name the same `session` "
        "share what the tool keeps between calls, such as a browser; see `GET /sessions`.",
    ),
)  # fmt: skip

"""Runs: a tool, called."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.roles import Role
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.bodies import read_object
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.endpoints import TOOL_ID, Answered, Body, Endpoint, ref, under
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.problems import json_answer
from toolcrib.surfaces.rest.service import Service


async def run_tool(service: Service, request: Request) -> Response:
    """A ToolResult comes back whatever happened to the call, unless there is no such tool. Who leaves ends the run."""
    name: str = request.path_params["tool_id"]  # a name that no tool can have is a call too, and goes on record
    body = await read_object(request)
    unknown = next((key for key in body if key != "arguments"), None)
    if unknown is not None:
        raise RequestError(f"the body has a field {unknown!r:.60} that does not exist; it has 'arguments'")
    context = ToolContext.of(parameters.principal(request))
    result = await while_connected(request, service.calls.execute(name, body.get("arguments"), context))
    if result.error_code == ToolNotFoundError.code:
        raise ToolNotFoundError(name)
    service.metrics.ran("done" if result.success else result.error_code or "failed")
    return json_answer(result.to_json(), result.refusal.http if result.refusal else 200)


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
        "POST", under("run"), run_tool, Role.RUNNER, "Use", "Run a tool",
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
)  # fmt: skip

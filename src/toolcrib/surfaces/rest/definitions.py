"""Definitions: a tool as a model's provider takes it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import READS, in_thread
from toolcrib.core.roles import Role
from toolcrib.formats import FORMATS, handover
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.endpoints import TOOL_ID, Answered, Endpoint, Parameter, under
from toolcrib.surfaces.http.problems import json_answer
from toolcrib.surfaces.rest.service import Service


async def get_definition(service: Service, request: Request) -> Response:
    wanted = request.query_params.get("format", "openai")
    seen, name = service.seen_by(request), parameters.tool_id(request)
    return await in_thread(READS, lambda: json_answer(handover([seen.get(name)], wanted).definitions[0]))


ENDPOINTS = (
    Endpoint(
        "GET", under("definition"), get_definition, Role.READER, "Use", "The tool as a model's provider takes it",
        (TOOL_ID, Parameter("format", "The provider's format.", {"type": "string", "enum": list(FORMATS)})),
        answers={200: Answered("The definition.", {"type": "object"})},
        problems=(404,),
    ),
)  # fmt: skip

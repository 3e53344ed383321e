"""The history of a tool, and the way back to an old version."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import READS, WRITES, in_thread
from toolcrib.catalogue import Entry
from toolcrib.core.roles import Role
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.bodies import read_object
from toolcrib.surfaces.http.endpoints import TOOL_ID, Answered, Body, Endpoint, Parameter, array_of, ref, under
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.problems import json_list_answer
from toolcrib.surfaces.rest.answers import entry_answer, entry_done
from toolcrib.surfaces.rest.service import Service

_VERSION = Parameter("version", "Number of the version.", {"type": "integer", "minimum": 1}, True, "path")


async def list_history(service: Service, request: Request) -> Response:
    seen, name = service.seen_by(request), parameters.tool_id(request)
    return await in_thread(READS, lambda: json_list_answer(map(_version, seen.history(name))))


async def get_version(service: Service, request: Request) -> Response:
    number = request.path_params["version"]
    if not (number.isascii() and number.isdecimal() and len(number) <= 9):
        raise RequestError(f"{number!r:.60} is not the number of a version")
    entry = await in_thread(READS, service.seen_by(request).version, parameters.tool_id(request), int(number))
    return entry_answer(service, entry)


async def restore_tool(service: Service, request: Request) -> Response:
    body = await read_object(request)
    number = body.get("version")
    if body.keys() != {"version"} or not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**31:
        raise RequestError("the body must be {'version': n} with the number of a version from the history")
    entry = await in_thread(
        WRITES, service.catalogue.restore, parameters.tool_id(request), number, principal=parameters.principal(request)
    )
    return entry_done("Tool restored successfully", entry)


def _version(entry: Entry) -> dict[str, Any]:
    return {
        "version": entry.version,
        "etag": entry.etag,
        "at": entry.at,
        "deleted": entry.deleted,
        "owner": entry.owner,
        "definition_version": entry.definition_version,
        "definition_digest": entry.definition_digest,
    }


ENDPOINTS = (
    Endpoint(
        "GET", under("history"), list_history, Role.READER, "History", "Every version of a tool, newest first",
        (TOOL_ID,),
        answers={200: Answered("The versions.", array_of(ref("Version")))},
        problems=(404,),
    ),
    Endpoint(
        "GET", under("history/{version}"), get_version, Role.READER, "History", "One version of a tool",
        (TOOL_ID, _VERSION),
        answers={200: Answered("The tool as it was.", ref("ToolEntry"))},
        problems=(404,),
    ),
    Endpoint(
        "POST", under("restore"), restore_tool, Role.PUBLISHER, "History", "Make an old version the current one",
        (TOOL_ID,),
        Body(
            {
                "type": "object",
                "required": ["version"],
                "properties": {"version": {"type": "integer", "minimum": 1}},
                "additionalProperties": False,
            }
        ),
        {200: Answered("Restored.", ref("Message"))},
        (404, 409),
    ),
)  # fmt: skip

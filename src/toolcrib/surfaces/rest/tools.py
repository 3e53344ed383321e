"""Creating, reading, changing and deleting tools."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import WRITES, in_thread
from toolcrib.catalogue import Entry
from toolcrib.catalogue.bundles import ingest
from toolcrib.core.errors import ConflictError, ToolInUseError, ToolValidationError
from toolcrib.core.roles import Role
from toolcrib.formats.bundle import bundle_link
from toolcrib.formats.toolentry import entry_changes, entry_to_spec
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.bodies import read_object
from toolcrib.surfaces.http.endpoints import (
    CURSOR,
    FLAG_SCHEMA,
    FORCE,
    IF_MATCH,
    LIMIT,
    TOOL_ID,
    Answered,
    Body,
    Endpoint,
    Parameter,
    array_of,
    ref,
)
from toolcrib.surfaces.http.errors import PreconditionFailedError
from toolcrib.surfaces.http.problems import json_answer
from toolcrib.surfaces.rest.answers import entry_done, page_answer
from toolcrib.surfaces.rest.rendered import RenderedAnswer
from toolcrib.surfaces.rest.service import Service
from toolcrib.surfaces.rest.uploads import uploaded_file

_ETAG = {
    "ETag": "Changes with every write.",
    "Toolcrib-Definition-Version": "The version that the definition dates from: later ones changed how the tool runs.",
    "Toolcrib-Warning": "After a write: which policy rules the tool names though nobody serves them.",
    "Toolcrib-Definition-Digest": "SHA-256 of all but how and by which rules the tool runs.",
}
_LINK = {"Link": 'The next page, rel="next", if there is one.'}
_PURGE = Parameter("purge", "Its history and its bundle too, for good; for administrators.", FLAG_SCHEMA)
_REPLACE = Parameter("replace", "Write over a tool of the same tool_id.", FLAG_SCHEMA)


async def upload_tool(service: Service, request: Request) -> Response:
    replace, force = parameters.flag(request, "replace"), parameters.flag(request, "force")
    async with service.uploads.taken(), uploaded_file(request, service.spool) as path:
        entry = await in_thread(
            WRITES,
            ingest,
            path,
            blobs=service.blobs,
            catalogue=service.catalogue,
            link_for=lambda digest: bundle_link(service.public_url, digest),
            replace=replace,
            force=force,
            principal=parameters.principal(request),
            limits=service.bundle_limits,
        )
    return entry_done("Tool uploaded successfully", entry)


async def create_tool(service: Service, request: Request) -> Response:
    body = await read_object(request)
    replace, force = parameters.flag(request, "replace"), parameters.flag(request, "force")

    def publish() -> Entry:  # a large description takes a while to be read
        spec = entry_to_spec(body)
        return service.catalogue.publish(spec, replace=replace, force=force, principal=parameters.principal(request))

    entry = await in_thread(WRITES, publish)
    answer = entry_done("Tool created successfully", entry, 201)
    answer.headers["location"] = f"/tools/{entry.name}"
    return answer


async def list_tools(service: Service, request: Request) -> Response:
    return await page_answer(service, request, {})


async def get_tool(service: Service, request: Request) -> Response:
    return await tool_answer(service, request, parameters.tool_id(request))


async def tool_answer(service: Service, request: Request, name: str) -> Response:
    seen = service.seen_by(request)
    rendered = await service.rendered.answer(seen, name)
    etag = rendered[2]
    if parameters.is_unchanged(request, etag):
        return Response(status_code=304, headers={"etag": etag.decode()})
    return RenderedAnswer(rendered)


async def update_tool(service: Service, request: Request) -> Response:
    name = parameters.tool_id(request)
    body = await read_object(request)
    if body.get("tool_id", name) != name:
        raise ToolValidationError(f"field 'tool_id' is not {name!r}; a tool cannot be renamed")
    expected = parameters.expected_etag(request)
    with _precondition(expected):
        entry = await in_thread(
            WRITES,
            service.catalogue.update,
            name,
            lambda spec: entry_changes(spec, body),
            force=parameters.flag(request, "force"),
            expected=expected,
            principal=parameters.principal(request),
        )
    return entry_done("Tool updated successfully", entry, named=False)


async def delete_tool(service: Service, request: Request) -> Response:
    expected = parameters.expected_etag(request)
    with _precondition(expected):
        await in_thread(
            WRITES,
            service.catalogue.delete,
            parameters.tool_id(request),
            parameters.flag(request, "force"),
            purge=parameters.flag(request, "purge"),
            expected=expected,
            principal=parameters.principal(request),
        )
    return json_answer({"message": "Tool deleted successfully"})


@contextmanager
def _precondition(expected: str | None) -> Iterator[None]:
    """A conflict is the caller's condition that failed, if they had one."""
    try:
        yield
    except ConflictError as error:
        if expected is None or isinstance(error, ToolInUseError):
            raise
        raise PreconditionFailedError(str(error)) from None


_BUNDLE = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary", "description": "ZIP archive"}},
}

ENDPOINTS = (
    Endpoint(
        "GET", "/tools/{tool_id}", get_tool, Role.READER, "Tools", "One tool",
        (TOOL_ID, Parameter("If-None-Match", "304 if the tool has not changed since.", where="header")),
        answers={
            200: Answered("The tool.", ref("ToolEntry"), headers=_ETAG),
            304: Answered("It has not changed.", headers=_ETAG),
        },
        problems=(404,),
        description="A name that no tool can have is answered with 404, as one that none has.",
    ),
    Endpoint(
        "GET", "/tools", list_tools, Role.READER, "Tools", "Every tool, page by page",
        (LIMIT, CURSOR),
        answers={200: Answered("Tools, ordered by tool_id.", array_of(ref("ToolEntry")), headers=_LINK)},
    ),
    Endpoint(
        "POST", "/tools", create_tool, Role.PUBLISHER, "Tools", "Register a tool without a bundle",
        (_REPLACE, FORCE),
        Body(ref("NewToolEntry"), example={"tool_id": "tool-123", "tool_type": "extractor", "tool_tags": ["nlp"]}),
        {201: Answered("Registered.", ref("Message"), headers={**_ETAG, "Location": "The tool's path."})},
        (409,),
    ),
    Endpoint(
        "PUT", "/tools/{tool_id}", update_tool, Role.PUBLISHER, "Tools", "Change some fields of a tool",
        (TOOL_ID, FORCE, IF_MATCH),
        Body(ref("ToolEntryChanges"), example={"tool_type": "transformer", "tool_tags": ["ai", "image"]}),
        {200: Answered("Updated.", ref("Message"), headers=_ETAG)},
        (404, 409, 412),
        "A change of the input schema that would break callers needs a higher major version, or `force`.",
    ),
    Endpoint(
        "DELETE", "/tools/{tool_id}", delete_tool, Role.PUBLISHER, "Tools", "Delete a tool",
        (TOOL_ID, FORCE, _PURGE, IF_MATCH),
        answers={200: Answered("Deleted.", ref("Message"))},
        problems=(404, 409, 412),
        description="Refused while other tools or pipelines name it, unless `force`. With `purge`, which needs the "
        "role `admin`, its history goes too, and its bundle if no other tool has it, also if it was deleted before.",
    ),
    Endpoint(
        "POST", "/tools/upload", upload_tool, Role.PUBLISHER, "Tools", "Upload a tool bundle",
        (_REPLACE, FORCE),
        Body(_BUNDLE, "multipart/form-data", "A ZIP archive with spec.json, tool.zip and tool.md at its root."),
        {200: Answered("Uploaded.", ref("Message"), headers=_ETAG)},
        (409,),
    ),
)  # fmt: skip

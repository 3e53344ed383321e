"""Creating, reading, changing and deleting tools."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import in_thread
from toolcrib.catalogue import Entry
from toolcrib.catalogue.bundles import ingest
from toolcrib.core.errors import ConflictError, MissingConfigError, ToolInUseError, ToolValidationError
from toolcrib.core.roles import Role
from toolcrib.formats.bundle import bundle_link
from toolcrib.formats.toolentry import entry_changes, entry_to_spec
from toolcrib.surfaces.errors import PreconditionFailedError
from toolcrib.surfaces.rest import asking
from toolcrib.surfaces.rest.answers import json_answer
from toolcrib.surfaces.rest.bodies import read_object
from toolcrib.surfaces.rest.endpoints import (
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
from toolcrib.surfaces.rest.service import Service, principal_of
from toolcrib.surfaces.rest.uploads import uploaded_file

_ETAG = {"ETag": "Changes with every write."}
_LINK = {"Link": 'The next page, rel="next", where there is one.'}
_REPLACE = Parameter("replace", "Write over a tool of the same tool_id.", FLAG_SCHEMA)


async def upload_tool(service: Service, request: Request) -> Response:
    if service.blobs is None:
        raise MissingConfigError("this service has no place for bundles; set TOOLCRIB_BLOBS")
    limits = service.limits
    replace, force = asking.flag(request, "replace"), asking.flag(request, "force")
    async with uploaded_file(
        request,
        service.spool,
        most=limits.upload_bytes,
        seconds=limits.upload_seconds,
        stall_seconds=limits.stall_seconds,
    ) as path:
        entry = await in_thread(
            ingest,
            path,
            blobs=service.blobs,
            catalogue=service.catalogue,
            link_for=lambda digest: bundle_link(service.public_url, digest),
            replace=replace,
            force=force,
            principal=principal_of(request).name,
        )
    return _done("Tool uploaded successfully", entry)


async def create_tool(service: Service, request: Request) -> Response:
    body = await _object(service, request)
    entry = await in_thread(
        service.catalogue.publish,
        entry_to_spec(body),
        replace=asking.flag(request, "replace"),
        force=asking.flag(request, "force"),
        principal=principal_of(request).name,
    )
    answer = _done("Tool created successfully", entry, 201)
    answer.headers["location"] = f"/tools/{entry.name}"
    return answer


async def list_tools(service: Service, request: Request) -> Response:
    page = await in_thread(service.catalogue.query, limit=asking.limit(request), cursor=asking.cursor(request))
    return asking.page_answer(request, page)


async def get_tool(service: Service, request: Request) -> Response:
    """HEAD, and GET where every request is logged; the application answers the common GET itself."""
    entry = await in_thread(service.catalogue.entry, asking.tool_id(request))
    if request.headers.get("if-none-match", "").removeprefix("W/") == f'"{entry.etag}"':
        return Response(status_code=304, headers={"etag": f'"{entry.etag}"'})
    return asking.entry_answer(entry, headers={"cache-control": "no-cache"})


async def update_tool(service: Service, request: Request) -> Response:
    name = asking.tool_id(request)
    body = await _object(service, request)
    if body.get("tool_id", name) != name:
        raise ToolValidationError(f"field 'tool_id' is not {name!r}; a tool cannot be renamed")
    expected = asking.expected_etag(request)
    try:
        entry = await in_thread(
            service.catalogue.update,
            name,
            lambda spec: entry_changes(spec, body),
            force=asking.flag(request, "force"),
            expected=expected,
            principal=principal_of(request).name,
        )
    except ConflictError as error:
        raise _precondition(error, expected) from None
    return _done("Tool updated successfully", entry, named=False)


async def delete_tool(service: Service, request: Request) -> Response:
    expected = asking.expected_etag(request)
    try:
        await in_thread(
            service.catalogue.delete,
            asking.tool_id(request),
            asking.flag(request, "force"),
            expected=expected,
            principal=principal_of(request).name,
        )
    except ConflictError as error:
        raise _precondition(error, expected) from None
    return json_answer({"message": "Tool deleted successfully"})


async def _object(service: Service, request: Request) -> dict[str, Any]:
    return await read_object(request, most=service.limits.json_bytes, seconds=service.limits.json_seconds)


def _done(message: str, entry: Entry, status: int = 200, *, named: bool = True) -> Response:
    said: dict[str, Any] = {"message": message}
    if named:
        said["tool_id"] = entry.name
    if entry.broke:
        said["broke"] = list(entry.broke)
    return json_answer(said, status, {"etag": f'"{entry.etag}"'})


def _precondition(error: ConflictError, expected: str | None) -> ConflictError | PreconditionFailedError:
    if expected is None or isinstance(error, ToolInUseError):
        return error
    return PreconditionFailedError(str(error))


_BUNDLE = {
    "type": "object",
    "required": ["file"],
    "properties": {"file": {"type": "string", "format": "binary", "description": "ZIP archive"}},
}

ENDPOINTS = (
    Endpoint(
        "POST", "/tools/upload", upload_tool, Role.PUBLISHER, "Tools", "Upload a tool bundle",
        (_REPLACE, FORCE),
        Body(_BUNDLE, "multipart/form-data", "A ZIP archive with spec.json, tool.zip and tool.md at its root."),
        {200: Answered("Uploaded.", ref("Message"), headers=_ETAG)},
        (409,),
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
        "GET", "/tools/{tool_id}", get_tool, Role.READER, "Tools", "One tool",
        (TOOL_ID, Parameter("If-None-Match", "304 where the tool has not changed since.", where="header")),
        answers={
            200: Answered("The tool.", ref("ToolEntry"), headers=_ETAG),
            304: Answered("It has not changed.", headers=_ETAG),
        },
        problems=(404,),
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
        (TOOL_ID, FORCE, IF_MATCH),
        answers={200: Answered("Deleted.", ref("Message"))},
        problems=(404, 409, 412),
        description="Refused while other tools or pipelines name it, unless `force`.",
    ),
)  # fmt: skip

"""Using tools: definitions for models, compatibility, history, running, and the code of bundles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from pydantic_core import to_jsonable_python
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse

from toolcrib.adapters.tokens import Role
from toolcrib.catalogue import Entry
from toolcrib.core import errors
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import MissingConfigError, ToolNotFoundError
from toolcrib.core.names import check_name
from toolcrib.formats import FORMATS, handover
from toolcrib.formats.bundle import CODE, blob_key, bundle_digest
from toolcrib.formats.toolentry import spec_to_entry
from toolcrib.registry.execution import execute
from toolcrib.surfaces.errors import RequestError, answer_for
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
    limited_to,
    ref,
)
from toolcrib.surfaces.rest.service import Service, principal_of

_MAX_COMPARED = 100
_STRICT = Parameter("strict", "Read a list of compatibilities as complete.", FLAG_SCHEMA)
_VERSION = Parameter("version", "Number of the version.", {"type": "integer", "minimum": 1}, True, "path")
_DIGEST = Parameter("digest", "SHA-256 of the code.", {"type": "string", "pattern": "^[0-9a-f]{64}$"}, True, "path")
_ZIP = "application/zip"


async def get_definition(service: Service, request: Request) -> Response:
    """The tool as a provider takes it."""
    wanted = request.query_params.get("format", "openai")
    entry = await service.call(service.catalogue.entry, asking.tool_id(request))
    return json_answer(handover([entry.spec], wanted).definitions[0])


async def check_compat(service: Service, request: Request) -> Response:
    body = await read_object(request, most=service.limits.json_bytes, seconds=service.limits.json_seconds)
    names, strict = body.get("tools"), body.get("strict", False)
    unknown = next((key for key in body if key not in ("tools", "strict")), None)
    if unknown is not None:
        raise RequestError(f"the body has a field {unknown!r:.60} that does not exist; it has 'tools' and 'strict'")
    if not isinstance(names, list) or not 2 <= len(names) <= _MAX_COMPARED:
        raise RequestError(f"'tools' must be a list of 2 to {_MAX_COMPARED} tool ids")
    if not isinstance(strict, bool):
        raise RequestError("'strict' must be true or false")
    checked = [check_name(name) for name in names]
    report = await service.call(service.catalogue.check_compat, checked, strict=strict)
    return json_answer(
        {
            "compatible": report.compatible,
            "answer": "Compatible" if report.compatible else "Non compatible",
            "reason": report.reason,
            "verdicts": list(report.verdicts),
        }
    )


async def list_compatible(service: Service, request: Request) -> Response:
    found = await service.call(
        service.catalogue.compatible_with,
        asking.tool_id(request),
        asking.optional_text(request, "type") or None,
        strict=asking.flag(request, "strict"),
    )
    return json_answer([spec_to_entry(spec) for spec in found[: asking.MAX_LIMIT]])


async def list_history(service: Service, request: Request) -> Response:
    entries = await service.call(service.catalogue.history, asking.tool_id(request))
    return json_answer([_version(entry) for entry in entries])


async def get_version(service: Service, request: Request) -> Response:
    number = request.path_params["version"]
    if not (number.isascii() and number.isdecimal() and len(number) <= 9):
        raise RequestError(f"{number!r:.60} is not the number of a version")
    return asking.entry_answer(await service.call(service.catalogue.version, asking.tool_id(request), int(number)))


async def restore_tool(service: Service, request: Request) -> Response:
    body = await read_object(request, most=service.limits.json_bytes, seconds=service.limits.json_seconds)
    number = body.get("version")
    if body.keys() != {"version"} or not isinstance(number, int) or isinstance(number, bool) or not 0 < number < 2**31:
        raise RequestError("the body must be {'version': n} with the number of a version from the history")
    entry = await service.call(
        service.catalogue.restore, asking.tool_id(request), number, principal=principal_of(request).name
    )
    said: dict[str, Any] = {"message": "Tool restored successfully", "tool_id": entry.name}
    if entry.broke:
        said["broke"] = list(entry.broke)
    return json_answer(said, headers={"etag": f'"{entry.etag}"'})


async def run_tool(service: Service, request: Request) -> Response:
    """Resolve, authorise, validate, run: a ToolResult comes back whatever happened to the call."""
    name = asking.tool_id(request)
    body = await read_object(request, most=service.limits.json_bytes, seconds=service.limits.json_seconds)
    unknown = next((key for key in body if key != "arguments"), None)
    if unknown is not None:
        raise RequestError(f"the body has a field {unknown!r:.60} that does not exist; it has 'arguments'")
    tool = await service.call(service.catalogue.tool, name)
    context = ToolContext(principal=principal_of(request).name)
    result = await execute(lambda _: tool, service.runs, name, body.get("arguments"), context)
    service.metrics.ran("done" if result.success else result.error_code or "failed")
    return json_answer(to_jsonable_python(result.to_dict(), fallback=repr), _run_status(result.error_code))


async def get_code(service: Service, request: Request) -> Response:
    """The tool.zip of a tool."""
    entry = await service.call(service.catalogue.entry, asking.tool_id(request))
    link: str = entry.document["binding"]["source_code_link"]
    digest = bundle_digest(link)
    if digest is None:
        raise ToolNotFoundError(f"{entry.name}/{CODE}")
    return await _code(service, digest, entry.name)


async def get_bundle(service: Service, request: Request) -> Response:
    """The tool.zip of a digest: what tool_source_code_link leads to."""
    digest: str = request.path_params["digest"]
    if bundle_digest(f"/bundles/{digest}/{CODE}") != digest:
        raise RequestError(f"{digest!r:.80} is not a SHA-256")
    return await _code(service, digest, digest[:12])


async def _code(service: Service, digest: str, name: str) -> Response:
    blobs = service.blobs
    if blobs is None:
        raise MissingConfigError("this service has no place for bundles; set TOOLCRIB_BLOBS")
    link = await service.call(blobs.link, blob_key(digest))
    if link is not None:
        return RedirectResponse(link, 307, {"cache-control": "no-store"})
    pieces: Iterator[bytes] = await service.call(blobs.open, blob_key(digest))
    headers = {"content-disposition": f'attachment; filename="{name}.zip"', "etag": f'"{digest}"'}
    return StreamingResponse(_streamed(service, pieces), headers=headers, media_type=_ZIP)


async def _streamed(service: Service, pieces: Iterator[bytes]) -> Any:
    following = partial(next, pieces, None)
    while (piece := await service.call(following)) is not None:
        yield piece


async def list_audit(service: Service, request: Request) -> Response:
    if service.audit is None:
        raise MissingConfigError("this service keeps no audit log; set TOOLCRIB_AUDIT")
    since = request.query_params.get("since", "0")
    try:
        begin = float(since)
    except ValueError:
        raise RequestError(f"the query parameter 'since' must be seconds since 1970, not {since!r:.60}") from None
    if not 0 <= begin < 1e12:
        raise RequestError(f"the query parameter 'since' must be seconds since 1970, not {since!r:.60}")
    events = await service.call(
        service.audit.events,
        **{name: asking.optional_text(request, name) for name in ("tool", "principal", "action", "outcome", "call")},
        since=begin,
        limit=asking.whole_number(request, "limit", 100, asking.MAX_LIMIT),
    )
    return json_answer([event._asdict() for event in events])


def _version(entry: Entry) -> dict[str, Any]:
    return {"version": entry.version, "etag": entry.etag, "at": entry.at, "deleted": entry.deleted}


_ERRORS_BY_CODE = {
    kind.code: kind
    for kind in (
        errors.InvalidArgumentsError,
        errors.DeniedError,
        errors.ApprovalRequiredError,
        errors.PolicyUnavailableError,
        errors.ToolBusyError,
        errors.MissingConfigError,
        errors.MissingDependencyError,
        errors.UnavailableError,
        errors.StoreError,
    )
}


def _run_status(code: str | None) -> int:
    """200 where the tool ran, whatever came of it; the table's status where it was not even begun."""
    kind = _ERRORS_BY_CODE.get(code or "")
    return 200 if kind is None else answer_for(kind).http


def _under(path: str) -> str:
    return f"/tools/{{tool_id}}/{path}"


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
        "GET", _under("definition"), get_definition, Role.READER, "Use", "The tool as a model's provider takes it",
        (TOOL_ID, Parameter("format", "The provider's format.", {"type": "string", "enum": list(FORMATS)})),
        answers={200: Answered("The definition.", {"type": "object"})},
        problems=(404,),
    ),
    Endpoint(
        "POST", _under("run"), run_tool, Role.PUBLISHER, "Use", "Run a tool",
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
                "required": ["tools"],
                "properties": {
                    "tools": {"type": "array", "items": NAME_SCHEMA, "minItems": 2, "maxItems": _MAX_COMPARED},
                    "strict": FLAG_SCHEMA,
                },
                "additionalProperties": False,
            },
            example={"tools": ["playwright", "beautifulsoup4"]},
        ),
        answers={200: Answered("Every pair, judged.", ref("Compatibility"))},
        problems=(404,),
    ),
    Endpoint(
        "GET", _under("compatible"), list_compatible, Role.READER, "Use", "Tools that stack with this one",
        (TOOL_ID, Parameter("type", "Only tools of this type."), _STRICT),
        answers={200: Answered("Tools, ordered by tool_id.", array_of(ref("ToolEntry")))},
        problems=(404,),
    ),
    Endpoint(
        "GET", _under("history"), list_history, Role.READER, "History", "Every version of a tool, newest first",
        (TOOL_ID,),
        answers={200: Answered("The versions.", array_of(ref("Version")))},
        problems=(404,),
    ),
    Endpoint(
        "GET", _under("history/{version}"), get_version, Role.READER, "History", "One version of a tool",
        (TOOL_ID, _VERSION),
        answers={200: Answered("The tool as it was.", ref("ToolEntry"))},
        problems=(404,),
    ),
    Endpoint(
        "POST", _under("restore"), restore_tool, Role.PUBLISHER, "History", "Make an old version the current one",
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
    Endpoint(
        "GET", _under(CODE), get_code, Role.READER, "Bundles", "The code of a tool",
        (TOOL_ID,),
        answers={
            200: Answered("The ZIP archive.", {"type": "string", "format": "binary"}, _ZIP),
            307: Answered("Where the ZIP archive is.", headers={"Location": "Valid for an hour."}),
        },
        problems=(404, 409),
    ),
    Endpoint(
        "GET", f"/bundles/{{digest}}/{CODE}", get_bundle, Role.READER, "Bundles", "The code of a digest",
        (_DIGEST,),
        answers={
            200: Answered("The ZIP archive.", {"type": "string", "format": "binary"}, _ZIP),
            307: Answered("Where the ZIP archive is.", headers={"Location": "Valid for an hour."}),
        },
        problems=(404, 409),
    ),
    Endpoint(
        "GET", "/audit", list_audit, Role.ADMIN, "Operations", "Who did what, newest first",
        (
            Parameter("tool", "Only about this tool."),
            Parameter("principal", "Only by this caller."),
            Parameter("action", "Only create, update, delete or run."),
            Parameter("outcome", "Only attempt, done, failed, refused or crashed."),
            Parameter("call", "Only the events of one attempt."),
            Parameter("since", "Only from then on, in seconds since 1970.", {"type": "number", "minimum": 0}),
            limited_to(asking.MAX_LIMIT, 100),
        ),
        answers={200: Answered("The events.", array_of(ref("AuditEvent")))},
        problems=(409,),
    ),
)  # fmt: skip

"""The OpenAPI 3.1 description, made from the table of endpoints."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.surfaces.http.endpoints import Answered, Body, Endpoint, Parameter, Schema, array_of, ref
from toolcrib.surfaces.http.fields import ENTRY_FIELDS, EntryField
from toolcrib.surfaces.http.problems import json_bytes

_TITLES = {
    400: "The request is wrong; `detail` says what.",
    401: "Credentials are missing or not valid.",
    403: "The caller may not do this.",
    404: "There is no such tool.",
    408: "The request came too slowly.",
    409: "It is taken, in use, or was changed by somebody else.",
    412: "The tool has changed since it was read.",
    413: "The body is too large.",
    415: "The body has another media type.",
    421: "The request names a host that is not this service.",
    429: "Too many requests.",
    500: "A defect of the service.",
    501: "The service was installed without what this needs.",
    502: "The tool failed.",
    503: "Something the service depends on does not answer.",
    504: "The tool passed its deadline.",
}
_ALWAYS = (400, 401, 403, 421, 429, 503)
_KINDS: dict[str, Schema] = {
    "text": {"type": "string"},
    "texts": array_of({"type": "string"}),
    "object": {"type": "object", "additionalProperties": True},
}


def describe(endpoints: Iterable[Endpoint[Any]], version: str) -> dict[str, Any]:
    """The whole description."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Toolcrib",
            "version": version,
            "description": "The tool registry for AI agents.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "An API token or a JWT. Local programs need none if the service is on loopback.",
                }
            },
        },
    }


def openapi_endpoint(endpoints: Iterable[Endpoint[Any]], version: str) -> Endpoint[None]:
    """Answers the description of the others."""
    text = json_bytes(describe(endpoints, version))

    async def get_openapi(_served: None, _request: Request) -> Response:
        return Response(text, media_type="application/json")

    return Endpoint("GET", "/openapi.json", get_openapi, None, "Operations", "The OpenAPI description")


def _operation(endpoint: Endpoint[Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": endpoint.operation_id,
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "responses": {
            **{str(status): _answered(status, answered) for status, answered in endpoint.answers.items()},
            **{str(status): _problem(status) for status in _problems(endpoint)},
        },
    }
    if endpoint.description:
        operation["description"] = endpoint.description
    if endpoint.parameters:
        operation["parameters"] = [_parameter(parameter) for parameter in endpoint.parameters]
    if endpoint.body is not None:
        operation["requestBody"] = _body(endpoint.body)
    if endpoint.role is not None:
        operation["security"] = [{}, {"bearer": []}]
        operation["x-role"] = endpoint.role.value
    return operation


def _problems(endpoint: Endpoint[Any]) -> list[int]:
    statuses = {*_ALWAYS, *endpoint.problems}
    if endpoint.body is not None:
        statuses |= {408, 413, 415}
    return sorted(statuses - set(endpoint.answers))


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "in": parameter.where,
        "required": parameter.required,
        "description": parameter.description,
        "schema": parameter.schema,
    }


def _body(body: Body) -> dict[str, Any]:
    content: dict[str, Any] = {"schema": body.schema}
    if body.example is not None:
        content["example"] = body.example
    return {"required": True, "description": body.description, "content": {body.media_type: content}}


def _answered(status: int, answered: Answered) -> dict[str, Any]:
    shown: dict[str, Any] = _problem(status) if status >= 400 else {}
    shown["description"] = answered.description
    if answered.schema is not None:
        content = shown.setdefault("content", {})
        for media_type, schema in {answered.media_type: answered.schema, **answered.also}.items():
            content[media_type] = {"schema": schema}
    if answered.headers:
        shown["headers"] = {
            name: {"description": text, "schema": {"type": "string"}} for name, text in answered.headers.items()
        }
    return shown


def _problem(status: int) -> dict[str, Any]:
    return {"description": _TITLES[status], "content": {"application/problem+json": {"schema": ref("Problem")}}}


def _entry_schema(fields: Iterable[EntryField], *, required: list[str]) -> Schema:
    properties = {field.name: {**_KINDS[field.kind], "description": field.description} for field in fields}
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _object(optional: Iterable[str] = (), **properties: Schema) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


_ANYTHING: Schema = {}
_TEXT: Schema = {"type": "string"}
_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer"}
_FLAG: Schema = {"type": "boolean"}
_NULLABLE_TEXT: Schema = {"type": ["string", "null"]}
_MAPPING: Schema = {"type": "object", "additionalProperties": True}

SCHEMAS: dict[str, Schema] = {
    "ToolEntry": _entry_schema(ENTRY_FIELDS, required=[field.name for field in ENTRY_FIELDS]),
    "NewToolEntry": _entry_schema(ENTRY_FIELDS, required=["tool_id"]),
    "ToolEntryChanges": _entry_schema([field for field in ENTRY_FIELDS if field.name != "tool_id"], required=[]),
    "Filter": {**_MAPPING, "description": "A MongoDB-style filter on the fields of ToolEntry."},
    "Message": _object(
        ("tool_id", "broke", "emptied_credentials"),
        message=_TEXT,
        tool_id=_TEXT,
        broke=array_of(_TEXT),
        emptied_credentials=array_of(_TEXT),
    ),
    "ToolResult": _object(
        success=_FLAG,
        data={
            "description": "Any JSON value. An image, audio or a file in it is an object of `type` (`image`, `audio` "
            "or `file`), `media_type` and `data`, which is base64; so are plain bytes, alone or in a list.",
        },
        error=_NULLABLE_TEXT,
        error_code=_NULLABLE_TEXT,
        metadata=_MAPPING,
    ),
    "ToolEvent": {
        **_object(
            ("fraction", "message", "item", "result"),
            kind={"type": "string", "enum": ["progress", "item", "result"]},
            fraction={"type": ["number", "null"], "description": "From 0 to 1, in an event of progress."},
            message=_TEXT,
            item=_ANYTHING,
            result=ref("ToolResult"),
        ),
        "description": "What a run tells: how far it is, an item that it yields, and at last its result.",
    },
    "Session": {
        **_object(
            ("about",),
            name=_TEXT,
            principal=_TEXT,
            opened_at={**_NUMBER, "description": "Seconds since 1970, as `used_at`."},
            used_at=_NUMBER,
            calls=_INTEGER,
            busy={**_FLAG, "description": "Whether a call of it is under way."},
            about={
                **_MAPPING,
                "description": "Such as a browser's `url` and the number of its `tabs`; one's own only.",
            },
        ),
        "description": "What calls of one caller share under a name.",
    },
    "Version": _object(
        version=_INTEGER,
        etag=_TEXT,
        at=_NUMBER,
        deleted=_FLAG,
        owner=_TEXT,
        definition_version={
            **_INTEGER,
            "description": "The version that the definition dates from: later ones changed how the tool runs.",
        },
        definition_digest={**_TEXT, "description": "SHA-256 of all but how and by which rules the tool runs."},
    ),
    "Hit": _object(tool_id=_TEXT, tool=ref("ToolEntry"), score=_NUMBER, reason=_TEXT),
    "Verdict": _object(left=_TEXT, right=_TEXT, compatible=_FLAG, rule=_TEXT, reason=_TEXT),
    "Compatibility": _object(
        compatible=_FLAG,
        answer={"type": "string", "enum": ["Compatible", "Non compatible"]},
        reason=_TEXT,
        verdicts=array_of(ref("Verdict")),
    ),
    "AuditEvent": _object(
        call=_TEXT, at=_NUMBER, principal=_TEXT, action=_TEXT, tool=_TEXT, outcome=_TEXT, detail=_TEXT
    ),
    "Status": _object(status=_TEXT),
    "Problem": {
        **_object(
            ("retryable",),
            type=_TEXT,
            title=_TEXT,
            status=_INTEGER,
            detail=_TEXT,
            code={**_TEXT, "description": "Stable, for programs."},
            retryable=_FLAG,
        ),
        "description": "A problem as RFC 9457 has it.",
    },
}

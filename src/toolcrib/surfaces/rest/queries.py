"""The query endpoints: each a filter, all answered alike."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import in_thread
from toolcrib.core.roles import Role
from toolcrib.formats.toolentry import document_to_entry
from toolcrib.surfaces.errors import RequestError
from toolcrib.surfaces.rest import asking
from toolcrib.surfaces.rest.answers import json_answer
from toolcrib.surfaces.rest.bodies import read_json
from toolcrib.surfaces.rest.endpoints import (
    CURSOR,
    LIMIT,
    Answered,
    Body,
    Endpoint,
    Parameter,
    array_of,
    limited_to,
    ref,
)
from toolcrib.surfaces.rest.service import Service

_FOUND = {
    200: Answered(
        "What matches, ordered by tool_id.",
        array_of(ref("ToolEntry")),
        headers={"Link": 'The next page, rel="next", where there is one.'},
    )
}
_MAX_HITS = 1000


async def query_by_type(service: Service, request: Request) -> Response:
    return await _find(service, request, {"tool_type": asking.text(request, "type")})


async def query_by_tag(service: Service, request: Request) -> Response:
    return await _find(service, request, {"tool_tags": asking.text(request, "tag")})


async def query_by_keyword(service: Service, request: Request) -> Response:
    phrase = asking.text(request, "keyword")
    if not phrase.strip():
        raise RequestError("the query parameter 'keyword' is empty; write what to look for")
    return await _find(service, request, asking.containing(phrase.strip()))


async def query_by_execution_mode(service: Service, request: Request) -> Response:
    return await _find(service, request, {"tool_execution_mode": asking.text(request, "mode")})


async def query_by_policy_uri(service: Service, request: Request) -> Response:
    return await _find(service, request, {"tool_policy_rule_uri": asking.text(request, "uri")})


async def query_generic(service: Service, request: Request) -> Response:
    where = await read_json(request, most=service.limits.json_bytes, seconds=service.limits.json_seconds)
    return await _find(service, request, where)


async def search_tools(service: Service, request: Request) -> Response:
    if "q" not in request.query_params and await in_thread(service.catalogue.__contains__, "search"):
        # A tool may be called so too, and a search without words is none.
        return asking.entry_answer(await in_thread(service.catalogue.entry, "search"))
    words = asking.text(request, "q")
    most = asking.whole_number(request, "limit", 10, _MAX_HITS)
    hits = await in_thread(service.catalogue.search, words, most)
    return json_answer(
        [
            {
                "tool_id": hit.entry.name,
                "score": hit.score,
                "reason": hit.reason,
                "tool": document_to_entry(hit.entry.document),
            }
            for hit in hits
        ]
    )


async def _find(service: Service, request: Request, where: Any) -> Response:
    page = await in_thread(
        service.catalogue.query,
        asking.entry_filter(where),
        limit=asking.limit(request),
        cursor=asking.cursor(request),
    )
    return asking.page_answer(request, page)


def _by(path: str, handle: Any, summary: str, parameter: Parameter) -> Endpoint:
    parameters = (parameter, LIMIT, CURSOR)
    return Endpoint("GET", f"/tools/query/{path}", handle, Role.READER, "Queries", summary, parameters, answers=_FOUND)


def _required(name: str, description: str, **schema: Any) -> Parameter:
    return Parameter(name, description, {"type": "string", "maxLength": 1000, **schema}, required=True)


ENDPOINTS = (
    _by("by-type", query_by_type, "Tools of a type", _required("type", "Tool type, such as `extractor`.")),
    _by("by-tag", query_by_tag, "Tools with a tag", _required("tag", "Tag, such as `nlp`.")),
    _by(
        "by-keyword",
        query_by_keyword,
        "Tools whose description holds a phrase",
        _required("keyword", "Search phrase; upper and lower case are the same.", pattern=r"\S"),
    ),
    _by(
        "by-execution-mode",
        query_by_execution_mode,
        "Tools of an execution mode",
        _required("mode", "Mode, such as `batch`."),
    ),
    _by(
        "by-policy-uri",
        query_by_policy_uri,
        "Tools under a policy rule",
        _required("uri", "URI, such as `policies://validate/compliance`."),
    ),
    Endpoint(
        "POST", "/tools/query/generic", query_generic, Role.READER, "Queries", "Tools that match a filter",
        (LIMIT, CURSOR),
        Body(ref("Filter"), example={"tool_type": "extractor", "tool_tags": "nlp"}),
        _FOUND,
        description="MongoDB's filter language on the fields of ToolEntry: `$eq $ne $gt $gte $lt $lte $in $nin $exists "
        "$type $regex $all $size $elemMatch $and $or $nor $not` and dotted paths. Anything else is refused by name.",
    ),
    Endpoint(
        "GET", "/tools/search", search_tools, Role.READER, "Queries", "Full-text search, best first",
        (
            Parameter("q", "Words; without them the tool called `search` is answered, where there is one."),
            limited_to(_MAX_HITS, 10),
        ),
        answers={200: Answered("Hits, best first.", {"anyOf": [array_of(ref("Hit")), ref("ToolEntry")]})},
    ),
)  # fmt: skip

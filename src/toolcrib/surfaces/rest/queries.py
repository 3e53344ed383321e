"""The query endpoints: each a filter, all answered alike."""

from __future__ import annotations

import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.core.roles import Role
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.bodies import read_json
from toolcrib.surfaces.http.endpoints import CURSOR, LIMIT, Answered, Body, Endpoint, Parameter, array_of, ref
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.rest.answers import page_answer
from toolcrib.surfaces.rest.service import Service

_FOUND = {
    200: Answered(
        "What matches, ordered by tool_id.",
        array_of(ref("ToolEntry")),
        headers={"Link": 'The next page, rel="next", if there is one.'},
    )
}
_SPECIAL = re.compile(r"([.^$*+?{}\[\]\\|()])")


async def query_by_type(service: Service, request: Request) -> Response:
    return await page_answer(service, request, {"tool_type": parameters.text(request, "type")})


async def query_by_tag(service: Service, request: Request) -> Response:
    return await page_answer(service, request, {"tool_tags": parameters.text(request, "tag")})


async def query_by_keyword(service: Service, request: Request) -> Response:
    phrase = parameters.text(request, "keyword")
    if not phrase.strip():
        raise RequestError("the query parameter 'keyword' is empty; write what to look for")
    pattern = _SPECIAL.sub(r"\\\1", phrase.strip())
    return await page_answer(
        service, request, {"tool_search_description": {"$regex": pattern, "$options": "i"}}, large=True
    )


async def query_by_execution_mode(service: Service, request: Request) -> Response:
    return await page_answer(service, request, {"tool_execution_mode": parameters.text(request, "mode")})


async def query_by_policy_uri(service: Service, request: Request) -> Response:
    return await page_answer(service, request, {"tool_policy_rule_uri": parameters.text(request, "uri")})


async def query_generic(service: Service, request: Request) -> Response:
    where = await read_json(request)
    return await page_answer(service, request, where, large=True)


def _by(path: str, handle: Any, summary: str, name: str, description: str, **schema: Any) -> Endpoint[Service]:
    wanted = Parameter(name, description, {"type": "string", "maxLength": 1000, **schema}, required=True)
    asked = (wanted, LIMIT, CURSOR)
    return Endpoint("GET", f"/tools/query/{path}", handle, Role.READER, "Queries", summary, asked, answers=_FOUND)


ENDPOINTS = (
    _by("by-type", query_by_type, "Tools of a type", "type", "Tool type, such as `extractor`."),
    _by("by-tag", query_by_tag, "Tools with a tag", "tag", "Tag, such as `nlp`."),
    _by(
        "by-keyword", query_by_keyword, "Tools whose description holds a phrase",
        "keyword", "Search phrase; upper and lower case are the same.", pattern=r"\S",
    ),
    _by("by-execution-mode", query_by_execution_mode, "Tools of an execution mode", "mode", "Mode, such as `batch`."),
    _by(
        "by-policy-uri", query_by_policy_uri, "Tools under a policy rule",
        "uri", "URI, such as `policies://validate/compliance`.",
    ),
    Endpoint(
        "POST", "/tools/query/generic", query_generic, Role.READER, "Queries", "Tools that match a filter",
        (LIMIT, CURSOR),
        Body(ref("Filter"), example={"tool_type": "extractor", "tool_tags": "nlp"}),
        _FOUND,
        description="MongoDB's filter language on the fields of ToolEntry: `$eq $ne $gt $gte $lt $lte $in $nin $exists "
        "$type $regex $all $size $elemMatch $and $or $nor $not` and dotted paths. Anything else is refused by name.",
    ),
)  # fmt: skip

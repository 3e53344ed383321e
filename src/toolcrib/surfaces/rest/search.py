"""Search: the tools that fit some words best.

A tool may be called ``search`` too, so this path is tried before that of one tool.
"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import READS, SCANS, ask, in_thread
from toolcrib.catalogue import Hit
from toolcrib.core.roles import Role
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.endpoints import Answered, Endpoint, Parameter, array_of, limited_to, ref
from toolcrib.surfaces.http.entries import shown
from toolcrib.surfaces.http.problems import json_list_answer
from toolcrib.surfaces.rest.service import Service
from toolcrib.surfaces.rest.tools import tool_answer

_MAX_HITS = 1000


async def search_tools(service: Service, request: Request) -> Response:
    seen = service.seen_by(request)
    if "q" not in request.query_params and await ask(READS, seen, seen.__contains__, "search"):
        return await tool_answer(service, request, "search")  # a search without words is none
    words = parameters.text(request, "q")
    most = parameters.whole_number(request, "limit", 10, _MAX_HITS)
    return await in_thread(
        SCANS, lambda: json_list_answer(_shown(hit, service.public_url) for hit in seen.search(words, most))
    )


def _shown(hit: Hit, public_url: str) -> dict[str, Any]:
    return {
        "tool_id": hit.entry.name,
        "score": hit.score,
        "reason": hit.reason,
        "tool": shown(hit.entry.document, public_url),
    }


ENDPOINTS = (
    Endpoint(
        "GET", "/tools/search", search_tools, Role.READER, "Queries", "Full-text search, best first",
        (
            Parameter("q", "Words; without them the tool called `search` is answered, if there is one."),
            limited_to(_MAX_HITS, 10),
        ),
        answers={200: Answered("Hits, best first.", {"anyOf": [array_of(ref("Hit")), ref("ToolEntry")]})},
    ),
)  # fmt: skip

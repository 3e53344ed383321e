"""Tools as REST answers them: one, or a page with the link to the next."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.calling.blocking import READS, SCANS, in_thread
from toolcrib.catalogue import Entry
from toolcrib.catalogue.reading import CatalogueReader
from toolcrib.core.errors import unserved_rules
from toolcrib.surfaces.http import parameters
from toolcrib.surfaces.http.entries import entry_headers, shown
from toolcrib.surfaces.http.problems import json_answer, json_list
from toolcrib.surfaces.rest.service import Service


def entry_answer(service: Service, entry: Entry) -> Response:
    return json_answer(shown(entry.document, service.public_url), headers=entry_headers(entry))


def entry_done(message: str, entry: Entry, status: int = 200, *, named: bool = True) -> Response:
    """What was written, what that broke for callers, and which credentials it emptied.

    A warning is a header: the bodies of the answers are the registry's own, word for word.
    """
    said: dict[str, Any] = {"message": message}
    if named:
        said["tool_id"] = entry.name
    if entry.broke:
        said["broke"] = list(entry.broke)
    if entry.emptied:
        said["emptied_credentials"] = list(entry.emptied)
    headers = entry_headers(entry)
    if entry.unserved:
        headers["toolcrib-warning"] = f"the tool names {unserved_rules(entry.unserved)}"
    return json_answer(said, status, headers)


async def page_answer(service: Service, request: Request, where: object, *, large: bool = False) -> Response:
    """The page that was asked for, of the tools that match, as a JSON array; the ``Link`` header leads to the next.

    ``large`` says that many tools may have to be looked at for it.
    """
    limit, cursor = parameters.limit(request), parameters.cursor(request)
    pool = SCANS if large or limit > parameters.DEFAULT_LIMIT else READS
    content, following = await in_thread(pool, _page, service, service.seen_by(request), where, limit, cursor)
    answer = Response(content, media_type="application/json")
    if following is not None:
        kept = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
        answer.headers["link"] = f'<{request.url.path}?{urlencode([*kept, ("cursor", following)])}>; rel="next"'
    return answer


def _page(
    service: Service, seen: CatalogueReader, where: object, limit: int, cursor: str | None
) -> tuple[bytes, str | None]:
    """The tools as JSON, and the last of them if more follow."""
    last = None

    def page() -> Iterator[dict[str, Any]]:
        nonlocal last
        for entry in islice(found, limit):
            last = entry.name
            yield shown(entry.document, service.public_url)

    found = seen.entries(parameters.entry_filter(where), after=cursor, page=min(limit + 1, parameters.MOST_HELD))
    content = json_list(page())
    return content, last if next(found, None) is not None else None

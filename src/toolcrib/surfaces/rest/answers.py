"""Tools as REST answers them: one, or a page with the link to the next."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.catalogue import Entry, Page
from toolcrib.formats.toolentry import document_to_entry
from toolcrib.surfaces.http.problems import json_answer


def entry_answer(entry: Entry) -> Response:
    return json_answer(document_to_entry(entry.document), headers={"etag": f'"{entry.etag}"'})


def entry_done(message: str, entry: Entry, status: int = 200, *, named: bool = True) -> Response:
    """What was written, what that broke for callers, and which credentials it emptied."""
    said: dict[str, Any] = {"message": message}
    if named:
        said["tool_id"] = entry.name
    if entry.broke:
        said["broke"] = list(entry.broke)
    if entry.emptied:
        said["emptied_credentials"] = list(entry.emptied)
    return json_answer(said, status, {"etag": f'"{entry.etag}"'})


def page_answer(request: Request, page: Page) -> Response:
    """A page as a JSON array; the ``Link`` header leads to the next one."""
    answer = json_answer([document_to_entry(entry.document) for entry in page.entries])
    if page.next_cursor is not None:
        parameters = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
        query = urlencode([*parameters, ("cursor", page.next_cursor)])
        answer.headers["link"] = f'<{request.url.path}?{query}>; rel="next"'
    return answer

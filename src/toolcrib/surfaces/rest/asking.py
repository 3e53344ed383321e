"""What requests say: parameters checked, filters in ToolEntry's words, pages with their next link."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from toolcrib.catalogue import Entry, Page
from toolcrib.core.names import check_name
from toolcrib.core.query import Filter, parse, rename
from toolcrib.formats.toolentry import FIELD_PATHS, document_to_entry
from toolcrib.surfaces.errors import PreconditionFailedError, RequestError
from toolcrib.surfaces.rest.answers import json_answer, json_bytes

DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
_MAX_TEXT = 1000
_SPECIAL = re.compile(r"([.^$*+?{}\[\]\\|()])")


def tool_id(request: Request) -> str:
    return check_name(request.path_params["tool_id"])


def text(request: Request, name: str) -> str:
    """A query parameter that must be there."""
    value = request.query_params.get(name)
    if value is None:
        raise RequestError(f"the query parameter {name!r} is missing; write ?{name}=...")
    return _short(value, name)


def optional_text(request: Request, name: str) -> str:
    return _short(request.query_params.get(name, ""), name)


def _short(value: str, name: str) -> str:
    if len(value) > _MAX_TEXT:
        raise RequestError(f"the query parameter {name!r} is longer than {_MAX_TEXT} characters")
    return value


def flag(request: Request, name: str) -> bool:
    value = request.query_params.get(name, "false").lower()
    if value in ("true", "1", "yes"):
        return True
    if value in ("false", "0", "no", ""):
        return False
    raise RequestError(f"the query parameter {name!r} must be 'true' or 'false', not {value!r:.60}")


def whole_number(request: Request, name: str, default: int, most: int) -> int:
    value = request.query_params.get(name)
    if value is None:
        return default
    if value.isascii() and value.isdecimal() and len(value) <= 9 and 1 <= int(value) <= most:
        return int(value)
    raise RequestError(f"the query parameter {name!r} must be a whole number from 1 to {most}, not {value!r:.60}")


def limit(request: Request) -> int:
    return whole_number(request, "limit", DEFAULT_LIMIT, MAX_LIMIT)


def cursor(request: Request) -> str | None:
    value = request.query_params.get("cursor")
    return check_name(value) if value else None


def expected_etag(request: Request) -> str | None:
    """The etag that ``If-Match`` names; None where anything will do."""
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    tag = given.strip()
    if len(tag) < 2 or tag[0] != '"' or tag[-1] != '"' or '"' in tag[1:-1]:
        raise PreconditionFailedError(f"If-Match must be one strong ETag in quotes, not {tag!r:.60}")
    return tag[1:-1]


def entry_filter(where: object) -> Filter:
    """A filter in the names of ToolEntry, or InvalidQueryError."""
    return rename(parse(where), FIELD_PATHS)


def containing(phrase: str) -> dict[str, Any]:
    """The filter of a keyword search: the phrase anywhere in the description, upper and lower case alike."""
    return {"tool_search_description": {"$regex": _SPECIAL.sub(r"\\\1", phrase), "$options": "i"}}


def entry_bytes(entry: Entry) -> bytes:
    return json_bytes(document_to_entry(entry.document))


def entry_answer(entry: Entry, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    answer = json_answer(document_to_entry(entry.document), status, headers)
    answer.headers["etag"] = f'"{entry.etag}"'
    return answer


def page_answer(request: Request, page: Page) -> Response:
    """A page as a JSON array; the ``Link`` header leads to the next one."""
    answer = json_answer([document_to_entry(entry.document) for entry in page.entries])
    if page.next_cursor is not None:
        parameters = [(key, value) for key, value in request.query_params.multi_items() if key != "cursor"]
        query = urlencode([*parameters, ("cursor", page.next_cursor)])
        answer.headers["link"] = f'<{request.url.path}?{query}>; rel="next"'
    return answer

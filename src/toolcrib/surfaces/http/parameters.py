"""What requests say in their address and headers, checked; and filters in the names of ToolEntry."""

from __future__ import annotations

from starlette.requests import Request

from toolcrib.core.errors import InvalidNameError, ToolNotFoundError
from toolcrib.core.names import check_name
from toolcrib.core.query import Filter, parse, rename
from toolcrib.core.roles import Principal
from toolcrib.formats.toolentry import FIELD_PATHS
from toolcrib.surfaces.http.errors import PreconditionFailedError, RequestError
from toolcrib.surfaces.http.gate import PRINCIPAL

DEFAULT_LIMIT = 1000
MAX_LIMIT = 10_000
MOST_HELD = 100
"""Whole tools of one page at a time; of the others only what is sent."""
_MAX_TEXT = 1000


def principal(request: Request) -> Principal:
    """Who the gate let in."""
    found: Principal = request.scope[PRINCIPAL]
    return found


def tool_id(request: Request) -> str:
    """The tool that the path names. To read a name that no tool can have finds nothing; to write it is wrong."""
    name: str = request.path_params["tool_id"]
    try:
        return check_name(name)
    except InvalidNameError:
        if request.method in ("GET", "HEAD"):
            raise ToolNotFoundError(name) from None
        raise


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
    """The etag that ``If-Match`` names; None if anything will do."""
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    tag = given.strip()
    if len(tag) < 2 or tag[0] != '"' or tag[-1] != '"' or '"' in tag[1:-1]:
        raise PreconditionFailedError(f"If-Match must be one strong ETag in quotes, not {tag!r:.60}")
    return tag[1:-1]


def is_unchanged(request: Request, etag: bytes) -> bool:
    """Whether ``If-None-Match`` names the etag: the caller has what we would send."""
    for name, value in request.scope["headers"]:
        if name == b"if-none-match":
            return value.strip() == b"*" or etag in (tag.strip().removeprefix(b"W/") for tag in value.split(b","))
    return False


def entry_filter(where: object) -> Filter:
    """A filter in the names of ToolEntry, or InvalidQueryError."""
    return rename(parse(where), FIELD_PATHS)

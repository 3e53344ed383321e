"""How the HTTP doors answer: JSON, and errors as problem JSON (RFC 9457)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from toolcrib.core.errors import (
    UNEXPECTED,
    BreakingChangeError,
    InvalidArgumentsError,
    RateLimitedError,
    ToolcribError,
    ToolInUseError,
    UnauthenticatedError,
)
from toolcrib.core.json import as_json
from toolcrib.surfaces.http.errors import MethodNotAllowedError

_MAX_DETAIL = 1000


def json_bytes(value: Any) -> bytes:
    """``value`` as it is sent, whatever is in it: numbers that JSON lacks are told by their names."""
    try:
        return to_json(value, inf_nan_mode="strings")
    except ValueError:  # text that no encoding has, or what is of no kind that JSON knows
        return to_json(as_json(value))


def json_list(values: Iterable[Any]) -> bytes:
    """``values`` as a list, each written and let go of before the next is asked for.

    To write all at once, or to let go of all at once, would be one step of the interpreter, for which every other
    request would wait. Where there may be many, call it in a thread.
    """
    return b"[%b]" % b",".join(map(json_bytes, values))


def json_list_answer(values: Iterable[Any]) -> Response:
    return Response(json_list(values), media_type="application/json")


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(json_bytes(value), status, dict(headers or {}), media_type="application/json")


def problem_of(error: BaseException) -> dict[str, Any]:
    """An error as problem JSON. An unexpected one keeps its text to itself."""
    if not isinstance(error, ToolcribError):
        error = UNEXPECTED
    answer, detail = error.answer, str(error)
    problem = {
        "type": "about:blank",
        "title": answer.title,
        "status": answer.http,
        "detail": detail if len(detail) <= _MAX_DETAIL else f"{detail[:_MAX_DETAIL]}...",
        "code": error.code,
        "retryable": error.retryable,
    }
    return problem | _particulars(error)


def _particulars(error: ToolcribError) -> dict[str, Any]:
    if isinstance(error, BreakingChangeError):
        return {"changes": list(error.changes)}
    if isinstance(error, ToolInUseError):
        return {"users": list(error.users)}
    if isinstance(error, InvalidArgumentsError) and error.argument:
        return {"argument": error.argument}
    return {}


def problem_answer(error: BaseException, status: int | None = None) -> Response:
    """``status`` is said instead of the error's own."""
    problem = problem_of(error)
    if status is not None:
        problem["status"] = status
    headers: dict[str, str] = {}
    if isinstance(error, UnauthenticatedError):
        headers["www-authenticate"] = 'Bearer realm="toolcrib"'
    elif isinstance(error, RateLimitedError):
        headers["retry-after"] = str(max(1, math.ceil(error.seconds)))
    elif isinstance(error, MethodNotAllowedError):
        headers["allow"] = ", ".join(error.allowed)
    elif problem["status"] == 503:
        headers["retry-after"] = "5"
    return Response(json_bytes(problem), problem["status"], headers, media_type="application/problem+json")

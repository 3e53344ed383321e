"""Request bodies: bounded in size and in time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request

from toolcrib.surfaces.http.errors import BodyTooLargeError, RequestError, SlowClientError, UnsupportedMediaTypeError

_TAKEN_FOR_JSON = ("application/json", "application/x-www-form-urlencoded", "")
"""``curl -d`` says form if it was not told otherwise. A web page that would send one is stopped by its origin."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large and how slow a request's body may be. The sizes are settings."""

    json_bytes: int
    upload_bytes: int
    json_seconds: float = 30.0
    upload_seconds: float = 3600.0
    stall_seconds: float = 30.0


async def pieces(request: Request, most: int, seconds: float, stall_seconds: float) -> AsyncIterator[bytes]:
    """The body as it comes: at most ``most`` bytes, within ``seconds``, no pause longer than ``stall_seconds``."""
    declared = request.headers.get("content-length", "")
    if declared.isdecimal() and int(declared) > most:
        raise _too_large(most)
    received = 0
    stream = request.stream()
    deadline = asyncio.get_running_loop().time() + seconds
    while True:
        try:
            async with asyncio.timeout_at(min(deadline, asyncio.get_running_loop().time() + stall_seconds)):
                piece = await anext(stream, None)
        except TimeoutError:
            raise SlowClientError("the request's body came too slowly; send it faster or in smaller parts") from None
        except ClientDisconnect:
            raise RequestError("the connection was closed before the body was complete") from None
        if piece is None:
            return
        received += len(piece)
        if received > most:
            raise _too_large(most)
        if piece:
            yield piece


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body is larger than {most:,} bytes, which is the limit here")


async def read_json(request: Request, limits: Limits) -> Any:
    """The JSON value of the body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _TAKEN_FOR_JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedMediaTypeError(f"the body must be 'application/json', not {kind!r:.80}")
    body = bytearray()
    async for piece in pieces(request, limits.json_bytes, limits.json_seconds, limits.json_seconds):
        body += piece
    return parse_json(bytes(body))


def parse_json(body: bytes) -> Any:
    try:
        return from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise RequestError(f"the body is not JSON: {error}") from None


async def read_object(request: Request, limits: Limits) -> dict[str, Any]:
    value = await read_json(request, limits)
    if not isinstance(value, dict):
        raise RequestError(f"the body must be a JSON object, not {type(value).__name__}")
    return value

"""Request bodies: bounded in size and in time, whoever reads them."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

from pydantic_core import from_json
from starlette.requests import ClientDisconnect, Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolcrib.core.json import holds_more_values, is_finite
from toolcrib.core.query.budget import QueryLimits
from toolcrib.surfaces.http.errors import BodyTooLargeError, RequestError, SlowClientError, UnsupportedMediaTypeError

BODY = "toolcrib.body"
"""Where the body that comes in is left, in the ASGI scope."""
MOST_VALUES = 100_000
"""In one JSON body."""
_MAY_BE_ODD = re.compile(rb"NaN|Infinity|[0-9.][eE]\+?[0-9]{3}|(?<![0-9])[0-9]{309}")
"""What stands in every body with a number that JSON lacks or no float holds, and seldom in another."""
_TAKEN_FOR_JSON = ("application/json", "application/x-www-form-urlencoded", "")
"""``curl -d`` says form if it was not told otherwise. A web page that would send one is stopped by its origin."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How large and how slow a request's body may be, how many of those there may be, and what a query may take.

    The sizes, the number and the query's time are settings.
    """

    json_bytes: int
    upload_bytes: int
    json_seconds: float = 30.0
    upload_seconds: float = 3600.0
    stall_seconds: float = 30.0
    under_way: int = 1000
    query: QueryLimits | None = None


class Incoming:
    """The body of one request, for whoever answers it: an ASGI ``receive`` that keeps the limits.

    They are those of a JSON body until :func:`take_upload`.
    """

    __slots__ = ("_deadline", "_declared", "_limits", "_most", "_receive", "_received", "_stall", "complete")

    def __init__(self, receive: Receive, limits: Limits, declared: int) -> None:
        self._receive = receive
        self._limits = limits
        self._declared = declared
        self._most = limits.json_bytes
        self._stall = limits.json_seconds
        self._received = 0
        self._deadline = 0.0
        self.complete = False

    @classmethod
    def of(cls, scope: Scope, receive: Receive, limits: Limits) -> Incoming | None:
        """The body that a request announces, left in its scope; None if it announces none."""
        declared = None
        for name, value in scope["headers"]:
            if name == b"transfer-encoding":
                declared = 0
            elif name == b"content-length" and value != b"0":
                declared = int(value) if value.isdigit() else 0
        if declared is None:
            return None
        body: Incoming = cls(receive, limits, declared)
        scope[BODY] = body
        return body

    def allow_upload(self) -> None:
        self._most = self._limits.upload_bytes
        self._stall = self._limits.stall_seconds
        self._deadline = asyncio.get_running_loop().time() + self._limits.upload_seconds

    async def __call__(self) -> Message:
        if self.complete:
            return await self._receive()  # all that can come is that the client leaves
        now = asyncio.get_running_loop().time()
        self._deadline = self._deadline or now + self._limits.json_seconds
        self._check_size(self._declared)
        try:
            async with asyncio.timeout_at(min(self._deadline, now + self._stall)):
                message = await self._receive()
        except TimeoutError:
            raise SlowClientError("the request's body came too slowly; send it faster or in smaller parts") from None
        self._received += len(message.get("body", b""))
        self._check_size(self._received)
        self.complete = not message.get("more_body", False)
        if self.complete and self._received < self._declared:  # some servers pass this off as the end
            raise _cut_off()
        return message

    def _check_size(self, size: int) -> None:
        if size > self._most:
            raise BodyTooLargeError(f"the body is larger than {self._most:,} bytes, which is the limit here")


def take_upload(request: Request) -> None:
    """From here on the body may be as large and as slow as a bundle."""
    body: Incoming | None = request.scope.get(BODY)
    if body is not None:
        body.allow_upload()


async def pieces(request: Request) -> AsyncIterator[bytes]:
    """The body as it comes."""
    try:
        async for piece in request.stream():
            if piece:
                yield piece
    except ClientDisconnect:
        raise _cut_off() from None


def _cut_off() -> RequestError:
    return RequestError("the connection was closed before the body was complete")


def body_first(app: ASGIApp) -> ASGIApp:
    """An application of somebody else, asked once the body is here: what is wrong with it is ours to say."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        body = b"".join([piece async for piece in pieces(Request(scope, receive))])
        _check_values(body)
        if _MAY_BE_ODD.search(body):
            parse_json(body)
        coming = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return coming.pop() if coming else await receive()

        await app(scope, receive_again, send)

    return answer


async def read_json(request: Request) -> Any:
    """The JSON value of the body."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind not in _TAKEN_FOR_JSON and not (kind.startswith("application/") and kind.endswith("+json")):
        raise UnsupportedMediaTypeError(f"the body must be 'application/json', not {kind!r:.80}")
    body = bytearray()
    async for piece in pieces(request):
        body += piece
    return parse_json(bytes(body))


def parse_json(body: bytes) -> Any:
    _check_values(body)
    try:
        value = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise RequestError(f"the body is not JSON: {error}") from None
    if _MAY_BE_ODD.search(body) and not is_finite(value):
        raise RequestError("the body holds a number that is too large")
    return value


def _check_values(body: bytes) -> None:
    if holds_more_values(body, MOST_VALUES):
        raise BodyTooLargeError(f"the body holds more than {MOST_VALUES:,} values, which is the limit here")


async def read_object(request: Request) -> dict[str, Any]:
    value = await read_json(request)
    if not isinstance(value, dict):
        raise RequestError(f"the body must be a JSON object, not {type(value).__name__}")
    return value

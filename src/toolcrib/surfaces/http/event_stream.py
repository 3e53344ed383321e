"""Server-sent events: what a run tells, as it comes, each event one JSON object."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult
from toolcrib.surfaces.http.accepting import EVENTS
from toolcrib.surfaces.http.departures import while_connected
from toolcrib.surfaces.http.errors import RequestError
from toolcrib.surfaces.http.problems import json_bytes

QUIET_SECONDS = 15.0
"""So long nothing is said before a comment is: what stands between may close a connection on which nothing comes."""
SLOW_SECONDS = 60.0
"""So long a client may take nothing of what it is sent."""
_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


def event_text(event: ToolEvent) -> bytes:
    """One event as it is sent. JSON has no line ends, so it is one line of data."""
    return b"event: %b\ndata: %b\n\n" % (event.kind.encode(), json_bytes(event.to_json()))


class EventStream(Response):
    """Answers with ``events`` until they end. They are closed if the client leaves, or takes nothing for too long.

    ``ended`` is told of the result, whether or not the client is still there to take it.
    """

    def __init__(
        self, events: AsyncGenerator[ToolEvent, None], ended: Callable[[ToolResult], None] = lambda _: None
    ) -> None:
        super().__init__(status_code=200, headers=_HEADERS, media_type=EVENTS)
        del self.headers["content-length"]
        self._events = events
        self._ended = ended

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with aclosing(self._events):
            with suppress(RequestError):  # it has left: nobody is there to be told
                await while_connected(Request(scope, receive), self._write(send))

    async def _write(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        coming: asyncio.Task[ToolEvent | None] | None = None
        try:
            while True:
                coming = coming or asyncio.create_task(self._next())
                await asyncio.wait([coming], timeout=QUIET_SECONDS)
                if not coming.done():
                    await _say(send, b": still running\n\n")
                elif (event := coming.result()) is None:
                    break
                else:
                    coming = None
                    if event.result is not None:
                        self._ended(event.result)
                    await _say(send, event_text(event))
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.wait([coming])
        await send({"type": "http.response.body", "body": b""})

    async def _next(self) -> ToolEvent | None:
        return await anext(self._events, None)


async def _say(send: Send, text: bytes) -> None:
    try:
        async with asyncio.timeout(SLOW_SECONDS):
            await send({"type": "http.response.body", "body": text, "more_body": True})
    except TimeoutError:
        raise RequestError("the client takes nothing of what it is sent") from None

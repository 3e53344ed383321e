"""Work for a client who may leave before it is done."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from toolcrib.surfaces.http.errors import RequestError

if TYPE_CHECKING:
    from starlette.requests import Request

T = TypeVar("T")


async def while_connected(request: Request, work: Coroutine[Any, Any, T]) -> T:
    """What ``work`` returns. It is cancelled when the client closes the connection: nobody would read the answer.

    The request's body must have been read.
    """
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise RequestError("the connection was closed before there was an answer")
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.wait({working, gone})
        del working, gone, task  # an error holds this frame, and would be held by it


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass

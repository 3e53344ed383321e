"""Functions that yield: each item is told as it comes, and the result is the list of them."""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Generator
from contextlib import aclosing, closing
from typing import Any

from toolcrib.core.progress import Listener, ToolEvent


def collected(items: Generator[Any, Any, Any], listener: Listener | None) -> list[Any]:
    found: list[Any] = []
    with closing(items):
        for item in items:
            found.append(item)
            if listener is not None:
                listener(ToolEvent("item", item=item))
    return found


async def collected_async(items: AsyncGenerator[Any, Any], listener: Listener | None) -> list[Any]:
    found: list[Any] = []
    async with aclosing(items):
        async for item in items:
            found.append(item)
            if listener is not None:
                listener(ToolEvent("item", item=item))
    return found


async def awaited(value: Any, listener: Listener | None) -> Any:
    """What an awaitable or an async generator comes to."""
    return await (collected_async(value, listener) if isinstance(value, types.AsyncGeneratorType) else value)

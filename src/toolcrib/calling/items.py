"""Functions that yield: each item is told as it comes, and the result is the list of them."""

from __future__ import annotations

import types
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, closing, nullcontext
from typing import Any

from toolcrib.core.progress import Listener, ToolEvent


def is_lazy(value: Any) -> bool:
    """Whether its items come one after the other, and once: a generator, ``map(...)``, any iterator."""
    return hasattr(type(value), "__next__")


def collected(items: Iterator[Any], listener: Listener | None) -> list[Any]:
    found: list[Any] = []
    with closing(items) if isinstance(items, types.GeneratorType) else nullcontext():
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
    """What an awaitable, an async generator or an iterator comes to."""
    if hasattr(type(value), "__await__"):
        value = await value
    if isinstance(value, types.AsyncGeneratorType):
        return await collected_async(value, listener)
    return collected(value, listener) if is_lazy(value) else value


COMPLETE = frozenset({str, int, float, bool, bytes, list, tuple, dict, types.NoneType})
"""What most tools return: nothing more is to come of it."""


def is_incomplete(value: Any) -> bool:
    """Whether there is more to come of it, which ``awaited`` waits for."""
    kind = type(value)
    return kind not in COMPLETE and (is_lazy(value) or kind is types.AsyncGeneratorType or hasattr(kind, "__await__"))

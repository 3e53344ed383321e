"""What a call tells while it runs, as the protocol's notifications of progress."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import aclosing
from typing import Any

from toolcrib.calling.streaming import stream
from toolcrib.core.content import without_media
from toolcrib.core.context import ToolContext
from toolcrib.core.json import as_text
from toolcrib.core.progress import ToolEvent
from toolcrib.core.result import ToolResult

_LONGEST_MESSAGE = 2000

Report = Callable[[float, float | None, str | None], Awaitable[None]]
"""Sends one notification: how far it is, out of how much if that is known, and a message."""


async def reporting(
    report: Report, execute: Callable[[ToolContext], Coroutine[Any, Any, ToolResult]], context: ToolContext
) -> ToolResult:
    """What ``execute`` comes to, its progress and its items reported meanwhile. A slow client is not waited for."""
    far = Progress()
    async with aclosing(stream(execute, context, every_item=False)) as events:
        async for event in events:
            if event.result is not None:
                return event.result
            await report(*far.after(event))
    raise AssertionError("a stream ends with a result")


class Progress:
    """How far a call is, in numbers that only grow, as the protocol wants them."""

    def __init__(self) -> None:
        self._far = 0.0
        self._of_one = False
        self._is_told = False

    def after(self, event: ToolEvent) -> tuple[float, float | None, str | None]:
        """What to report of an event: its fraction of 1, or a step more if no fraction is known."""
        message = as_text(without_media(event.item)) if event.kind == "item" else event.message
        if event.fraction is not None and self._far < 1:
            self._of_one = True
            self._far = max(event.fraction, self._above)
        else:
            self._far = self._above if self._of_one else self._far + 1
        self._is_told = True
        return self._far, 1.0 if self._of_one else None, message[:_LONGEST_MESSAGE] or None

    @property
    def _above(self) -> float:
        return math.nextafter(self._far, math.inf) if self._is_told else 0.0

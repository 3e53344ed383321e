"""Waiting for what must come, instead of for some time."""

import asyncio
import inspect
import time
from collections.abc import Callable

PATIENCE = 60.0
"""Far more than anything takes, also on a busy machine."""


async def until(happened: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Return as soon as ``happened()``, which may be a coroutine, is true; AssertionError if it is not in time."""
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() > deadline  # before the question: who was asleep in between still asks once more
        answer = happened()
        if await answer if inspect.isawaitable(answer) else answer:
            return
        if late:
            raise AssertionError(f"nothing happened within {seconds:g} s")
        await asyncio.sleep(0.01)


def wait_until(happened: Callable[[], object], seconds: float = PATIENCE) -> None:
    """As :func:`until`, where there is no event loop."""
    deadline = time.monotonic() + seconds
    while True:
        late = time.monotonic() > deadline
        if happened():
            return
        if late:
            raise AssertionError(f"nothing happened within {seconds:g} s")
        time.sleep(0.01)

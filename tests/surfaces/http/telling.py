"""Tools that tell of themselves while they run, for a service in tests."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tests.support.waiting import until

from toolcrib import Image, ToolContext, tool

TELLING = tuple(f"tests.surfaces.http.telling:{name}" for name in ("crawl", "pauses", "hangs", "floods", "draws"))
"""What a service must list to run them."""


@tool
async def crawl(pages: int, context: ToolContext) -> AsyncIterator[str]:
    """Tell of each page, and yield it."""
    for page in range(1, pages + 1):
        context.progress(page / pages, f"page {page} of {pages}")
        yield f"text {page}"


@tool
async def pauses(free: str, context: ToolContext) -> str:
    """Tell of it, then wait for a file."""
    context.progress(0.5, "half")
    await until(Path(free).exists)
    return "went on"


@tool(isolation="process", timeout_seconds=3600)
def hangs(pid: str, context: ToolContext) -> None:
    """Leave the process id, tell of it, then hang."""
    Path(pid).write_text(str(os.getpid()), encoding="utf-8")
    context.progress(None, "hanging")
    time.sleep(3600)


@tool(timeout_seconds=3600)
async def floods(items: int, size: int, ended: str) -> AsyncIterator[str]:
    """Yield much, and note the end."""
    try:
        for _ in range(items):
            yield "x" * size
            await asyncio.sleep(0)
    finally:
        Path(ended).touch()


@tool
async def draws() -> list[Any]:
    """An image and some bytes."""
    return [Image(b"\x89PNG"), b"\xff"]

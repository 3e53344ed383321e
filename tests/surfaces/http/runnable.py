"""Tools that the service may import and run in tests."""

import asyncio
import time


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


async def wait(seconds: float) -> str:
    """Wait, then say so."""
    await asyncio.sleep(seconds)
    return "waited"


def block(seconds: float) -> str:
    """Wait in a thread."""
    time.sleep(seconds)
    return "blocked"


def fail() -> str:
    """Raise."""
    raise RuntimeError("it broke")

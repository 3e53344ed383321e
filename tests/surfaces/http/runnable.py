"""Tools that the service may import and run in tests."""

import time
from pathlib import Path

from tests.support.waiting import until


def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


async def wait(begun: str, free: str) -> str:
    """Note that the call has begun, wait for a file, then say so."""
    Path(begun).touch()
    await until(Path(free).exists)
    return "waited"


def block(seconds: float) -> str:
    """Wait in a thread."""
    time.sleep(seconds)
    return "blocked"


def fail() -> str:
    """Raise."""
    raise RuntimeError("it broke")

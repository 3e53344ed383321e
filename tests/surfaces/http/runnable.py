"""Tools that the service may import and run in tests."""

import time
from pathlib import Path

from tests.support.waiting import until

from toolcrib import tool

RUNNABLE = tuple(f"tests.surfaces.http.runnable:{name}" for name in ("shout", "wait", "block", "fail"))
"""What a service must list to run them."""


@tool
def shout(text: str) -> str:
    """Say it louder."""
    return text.upper()


@tool
async def wait(begun: str, free: str) -> str:
    """Note that the call has begun, wait for a file, then say so."""
    Path(begun).touch()
    await until(Path(free).exists)
    return "waited"


@tool
def block(seconds: float) -> str:
    """Wait in a thread."""
    time.sleep(seconds)
    return "blocked"


@tool
def fail() -> str:
    """Raise."""
    raise RuntimeError("it broke")

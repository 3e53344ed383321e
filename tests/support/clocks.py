"""Time that passes when it is told to."""

import asyncio


class Clock:
    """``clock()`` is the time, ``await clock.sleep(s)`` lets it pass; ``slept`` are the sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        await asyncio.sleep(0)
        self.now += seconds

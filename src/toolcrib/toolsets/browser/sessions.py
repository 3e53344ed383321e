"""Several sessions side by side, by name, in one browser."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any, Self

from toolcrib.toolsets.browser.chromium import Chromium
from toolcrib.toolsets.browser.failures import BrowserError
from toolcrib.toolsets.browser.session import BrowserSession


class BrowserSessions:
    """Opens sessions that share a browser process and nothing else. ``defaults`` are arguments of BrowserSession."""

    def __init__(self, chromium: str = "", *, headless: bool = True, **defaults: Any) -> None:
        self._chromium = Chromium(chromium, headless=headless)
        self._defaults = defaults
        self._sessions: dict[str, BrowserSession] = {}

    async def open(self, name: str, **options: Any) -> BrowserSession:
        """The session of that name, started; it is made with the options if there is none."""
        session = self._sessions.get(name)
        if session is None:
            session = BrowserSession(name=name, chromium=self._chromium, **{**self._defaults, **options})
            self._sessions[name] = session
        await session.start()
        return session

    def get(self, name: str) -> BrowserSession:
        if name not in self._sessions:
            raise BrowserError(f"no session is called {name!r}; open are {', '.join(self._sessions) or 'none'}")
        return self._sessions[name]

    async def close(self, name: str) -> None:
        session = self.get(name)
        del self._sessions[name]
        await session.close()

    async def close_all(self) -> None:
        sessions = list(self._sessions.values())
        self._sessions.clear()
        try:
            await asyncio.gather(*(session.close() for session in sessions))
        finally:
            await self._chromium.close()

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._sessions))

    def __len__(self) -> int:
        return len(self._sessions)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close_all()

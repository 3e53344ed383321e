"""Asking our code in the pages, and knowing which frame gave which handle out."""

from __future__ import annotations

import asyncio
import bisect
import re
from typing import TYPE_CHECKING, Any

from toolcrib.toolsets.browser.failures import ElementNotFoundError, playwright_error
from toolcrib.toolsets.browser.page import CALL, FIRST_CALL

if TYPE_CHECKING:
    from playwright.async_api import Frame

MUST_ANSWER = object()
_SETTLING_MS = 5000
_HANDLE = re.compile(r"e(\d+)")
_PASSING = ("context was destroyed", "detached", "navigation", "Cannot find context")


class PageLink:
    """One numbering of handles for all documents of a session, so that none ever means two elements."""

    def __init__(self) -> None:
        self._asking = asyncio.Lock()
        self._next_handle = 1
        self._owners: list[tuple[int, Frame]] = []

    def forget(self) -> None:
        """The frames are gone; their numbers stay taken."""
        self._owners.clear()

    def owner(self, target: str) -> Frame | None:
        """The frame that gave the handle out; None if the target is no handle or nobody did."""
        handle = _HANDLE.fullmatch(target.strip())
        if handle is None:
            return None
        at = bisect.bisect_right(self._owners, int(handle[1]), key=lambda owner: owner[0])
        return self._owners[at - 1][1] if at else None

    async def ask(self, frame: Frame, function: str, argument: Any, missing: Any) -> Any:
        async with self._asking:  # one after the other, because each may give handles out
            try:
                answer = await self._asked(frame, function, argument)
            except playwright_error() as error:
                if not any(sign in str(error) for sign in _PASSING):
                    raise
                if missing is not MUST_ANSWER:
                    return missing
                await frame.wait_for_load_state("domcontentloaded", timeout=_SETTLING_MS)
                answer = await self._asked(frame, function, argument)
            if answer["next"] > self._next_handle:
                self._owners.append((self._next_handle, frame))
                self._next_handle = answer["next"]
            return answer["value"]

    async def _asked(self, frame: Frame, function: str, argument: Any) -> Any:
        try:
            question = [function, argument, self._next_handle]
            return await frame.evaluate(CALL, question) or await frame.evaluate(FIRST_CALL, question)
        except playwright_error() as error:
            if "Cannot read properties of null" in str(error) and argument.get("handle"):
                raise ElementNotFoundError(
                    f"the element {argument['handle']!r} went away in the middle of the call; take a new snapshot"
                ) from None
            raise

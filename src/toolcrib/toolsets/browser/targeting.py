"""From what a caller calls an element to the element."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from toolcrib.toolsets.browser.failures import (
    BadInputError,
    ElementNotFoundError,
    ElementNotReadyError,
    is_done,
    is_late,
    obstacle,
    playwright_error,
)
from toolcrib.toolsets.browser.page import ENGINE_NAME

if TYPE_CHECKING:
    from playwright.async_api import Frame, Locator

    from toolcrib.toolsets.browser.session import BrowserSession

Purpose = Literal["click", "fill", "select", "check", "upload", "field", "any"]
_PAUSE = 0.1
_SURE = 0.8
_PATIENCE = 0.5
# Styled check boxes and file fields are hidden behind something prettier, and still work.
_MAY_BE_HIDDEN = frozenset({"check", "upload", "any"})


@dataclass(frozen=True, slots=True)
class Match:
    """The element that was meant, and how it was found."""

    frame: Frame
    found: dict[str, Any]

    @property
    def handle(self) -> str:
        return str(self.found["handle"])

    @property
    def visible(self) -> bool:
        return bool(self.found["visible"])

    @property
    def locator(self) -> Locator:
        return self.frame.locator(f"{ENGINE_NAME}={self.handle}")

    def __str__(self) -> str:
        name = f" {self.found['name']!r}" if self.found["name"] else ""
        return f"{self.found['role']}{name}"

    def as_dict(self) -> dict[str, Any]:
        hidden = {"found", "reachable", "visible"} if self.visible else {"found", "reachable"}
        return {key: value for key, value in self.found.items() if key not in hidden}


def told(match: Match | None) -> dict[str, Any] | None:
    """What was matched, for a result; None if the call named no element."""
    return match.as_dict() if match else None


async def find_named(session: BrowserSession, target: str, timeout: float) -> Match | None:
    """The element, if the call names one."""
    return await find(session, target, "any", timeout) if target else None


async def find(session: BrowserSession, target: str, purpose: Purpose, timeout: float = 5000) -> Match:
    """The element that a CSS selector, a handle or plain words mean; waits up to ``timeout`` ms for it to be there."""
    if not target.strip():
        raise BadInputError("the selector is empty; give a CSS selector, a handle from snapshot, or the element's name")
    start = time.monotonic()
    while True:
        match = await look(session, target, purpose)
        elapsed = time.monotonic() - start
        late = elapsed >= timeout / 1000
        if match is not None and (late or _good_enough(match, purpose, elapsed)):
            return match
        if late:
            raise await _not_found(session, target, purpose, timeout)
        await asyncio.sleep(_PAUSE)


def _good_enough(match: Match, purpose: Purpose, elapsed: float) -> bool:
    """A hidden element may come into view yet, and for a vague match a better one may still be loading."""
    if not match.found["reachable"] and purpose not in _MAY_BE_HIDDEN:
        return False
    return match.found.get("score", 1) >= _SURE or elapsed >= _PATIENCE


async def look(session: BrowserSession, target: str, purpose: Purpose) -> Match | None:
    """The element as it is now, or None; raises for a handle whose element is gone and for what is no selector."""
    hidden: Match | None = None
    for frame in session.frames_for(target):
        found = await session.ask(frame, "resolve", {"target": target, "purpose": purpose}, missing={"found": False})
        if found.get("stale"):
            raise ElementNotFoundError(
                f"the handle {target!r} belongs to an element that is gone; take a new snapshot",
                retryable=False,
                looked_for=target,
            )
        if found.get("invalid"):
            raise BadInputError(f"{target!r} is not a valid selector; correct it, or name the element in plain words")
        if found["found"]:
            match = Match(frame, found)
            if match.visible:
                return match
            hidden = hidden or match
    return hidden


async def _not_found(session: BrowserSession, target: str, purpose: Purpose, timeout: float) -> ElementNotFoundError:
    nearest: list[str] = []
    for frame in session.page.frames:
        nearest += await session.ask(frame, "nearest", {"target": target, "purpose": purpose}, missing=[])
    instead = f"; the nearest are: {'; '.join(nearest[:5])}" if nearest else "; the page has nothing of the kind"
    return ElementNotFoundError(
        f"nothing on {session.page.url} is {target!r} to {_VERBS[purpose]} (waited {timeout / 1000:g} s){instead}",
        looked_for=target,
        nearest=nearest[:5],
    )


_VERBS = {
    "click": "click", "fill": "type into", "select": "select from", "check": "check", "upload": "give a file",
    "field": "fill in", "any": "find",
}  # fmt: skip


@contextlib.asynccontextmanager
async def acting(session: BrowserSession, verb: str, match: Match) -> AsyncIterator[None]:
    """Tell of a failure in the middle of an action in terms of the element, and of what is in its way.

    An action that is done is no failure, also if the page that it leads to does not come in the element's time.
    """
    try:
        yield
    except playwright_error() as error:
        if is_done(error):
            return
        reason = obstacle(str(error))
        if not reason and is_late(error):
            hindrance = await session.ask(match.frame, "hindrance", {"handle": match.handle}, missing="")
            reason = hindrance or "it did not become ready in time"
        if not reason:
            raise
        raise ElementNotReadyError(
            f"the {match} is there, but could not be {verb}: {reason}", matched=match.as_dict(), obstacle=reason
        ) from None

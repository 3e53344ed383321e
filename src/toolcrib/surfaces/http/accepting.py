"""What a client takes as an answer, by its ``Accept`` headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

EVENTS = "text/event-stream"


def accepts_events(scope: Scope) -> bool:
    """Whether the client names events among what it takes; ``*/*`` does not."""
    return EVENTS in _accepted(scope)


def prefers_events(scope: Scope) -> bool:
    """Whether it names them, and not after JSON."""
    accepted = _accepted(scope)
    return EVENTS in accepted and "application/json" not in accepted[: accepted.index(EVENTS)]


def _accepted(scope: Scope) -> list[str]:
    named = b",".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1")
    return [kind.partition(";")[0].strip().lower() for kind in named.split(",")]

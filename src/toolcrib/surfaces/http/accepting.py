"""What a client takes as an answer, by its ``Accept`` headers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.types import Scope

EVENTS = "text/event-stream"
_WEIGHT = re.compile(r";\s*q\s*=\s*([01](?:\.[0-9]{0,3})?)\s*(?:;|$)")


def accepts_events(scope: Scope) -> bool:
    """Whether the client names events among what it takes; ``*/*`` does not."""
    return EVENTS in _accepted(scope)


def prefers_events(scope: Scope) -> bool:
    """Whether it names them, and not after JSON."""
    accepted = _accepted(scope)
    return EVENTS in accepted and "application/json" not in accepted[: accepted.index(EVENTS)]


def _accepted(scope: Scope) -> list[str]:
    """The kinds that the client names, the dearest first."""
    named = b",".join(value for name, value in scope["headers"] if name == b"accept").decode("latin-1").lower()
    weighed = [(kind.partition(";")[0].strip(), _weight(kind)) for kind in named.split(",")]
    return [kind for kind, weight in sorted(weighed, key=lambda each: -each[1]) if weight > 0]


def _weight(kind: str) -> float:
    """The ``q`` of a kind; one that is no number counts as none given."""
    given = _WEIGHT.search(kind)
    return float(given[1]) if given else 1.0

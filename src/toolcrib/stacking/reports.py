"""What a run tells while it goes on, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from toolcrib.stacking.step import StepStatistics


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request that came to nothing, where and why."""

    url: str
    tool: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is. ``known`` grows while pages bring new requests."""

    done: int
    failed: int
    in_flight: int
    known: int
    url: str
    ok: bool
    tool: str = ""
    note: str = ""
    """What a brick tells of work that is not done yet; otherwise a request has just ended."""


@dataclass(slots=True)
class RunReport:
    """What a run came to. ``skipped`` requests were done by an earlier run; ``failures`` holds the first hundred."""

    outcome: Literal["finished", "stopped"] = "finished"
    done: int = 0
    failed: int = 0
    skipped: int = 0
    items: int = 0
    """How many items came out at the end."""
    seconds: float = 0.0
    steps: list[StepStatistics] = field(default_factory=list)
    failures: list[FailedRequest] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return self.outcome == "finished" and self.failed == 0

"""What a run tells while it goes on, and what it came to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, runtime_checkable

from toolcrib.stacking.step import StepStatistics


@dataclass(frozen=True, slots=True)
class FailedRequest:
    """A request that came to nothing, where and why."""

    url: str
    tool: str
    kind: str
    reason: str


@dataclass(frozen=True, slots=True)
class UnmatchedSelector:
    """A selector that matched nothing on ``pages`` of the ``of`` pages that its step has read."""

    tool: str
    setting: str
    selector: str
    pages: int
    of: int

    def __str__(self) -> str:
        where = f"any of {self.of} pages" if self.pages == self.of > 1 else f"{self.pages} of {self.of} pages"
        if self.of == 1:
            where = "the one page that was read"
        return f"step {self.tool!r}: the selector {self.selector!r} of {self.setting!r} matched nothing on {where}"


@runtime_checkable
class Selecting(Protocol):
    """A brick that reads pages by selectors, and counts which of them match."""

    def unmatched(self) -> Sequence[UnmatchedSelector]: ...


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
    unmatched: list[UnmatchedSelector] = field(default_factory=list)
    """The row selectors that matched nothing on some page, and the field selectors that matched nothing at all."""

    @property
    def ok(self) -> bool:
        return self.outcome == "finished" and self.failed == 0

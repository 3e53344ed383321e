"""What a call tells while it runs: how far it is, the items that it yields, and at last its result."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from toolcrib.core.content import told_media
from toolcrib.core.json import as_json
from toolcrib.core.result import ToolResult


@dataclass(frozen=True, slots=True)
class ToolEvent:
    """``kind`` says which of the fields count; the last event of a call, and no other, has a ``result``."""

    kind: Literal["progress", "item", "result"]
    fraction: float | None = None
    """From 0 to 1; None if the tool does not know."""
    message: str = ""
    item: Any = None
    result: ToolResult | None = None

    def to_json(self) -> dict[str, Any]:
        """As a door sends it."""
        if self.result is not None:
            return {"kind": self.kind, "result": self.result.to_json()}
        if self.kind == "item":
            return {"kind": self.kind, "item": as_json(told_media(self.item))}
        return {"kind": self.kind, "fraction": self.fraction, "message": self.message}


Listener = Callable[[ToolEvent], None]
"""Hears what a call tells, perhaps from another thread than the one that listens."""


def progress_event(fraction: float | None, message: str) -> ToolEvent:
    """How far a tool says that it is; what lies outside of 0 to 1 counts as the nearest end."""
    if fraction is not None:
        try:
            number = float(fraction)
        except (TypeError, ValueError, OverflowError):
            raise TypeError(f"progress is a number from 0 to 1, or None, not {fraction!r:.60}") from None
        fraction = min(1.0, max(0.0, number)) if number == number else None  # noqa: PLR0124 - NaN is not itself
    return ToolEvent("progress", fraction, str(message))

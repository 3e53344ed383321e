"""What is told of a run while it goes on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from toolcrib.agents.transcript import CallRecord, Run, Step
from toolcrib.core.progress import ToolEvent


@dataclass(frozen=True, slots=True)
class AgentEvent:
    """``kind`` says which fields count; the last event of a run, and no other, has the ``run``.

    ``said``: the model's message, with its ``text``. ``call``: a call begins. ``progress``: a call tells something, as
    its ``event`` says. ``result``: it has ended, and the record has its result. ``end``: so has the run.
    """

    kind: Literal["said", "call", "progress", "result", "end"]
    step: int
    """The number of the model's message, from 1."""
    said: Step | None = None
    call: CallRecord | None = None
    event: ToolEvent | None = None
    run: Run | None = None

    @property
    def text(self) -> str:
        return "" if self.said is None else self.said.text

    def to_json(self) -> dict[str, Any]:
        """As a door sends it."""
        told: dict[str, Any] = {"kind": self.kind, "step": self.step}
        for name in ("said", "call", "event", "run"):
            if (part := getattr(self, name)) is not None:
                told[name] = part.to_json()
        return told

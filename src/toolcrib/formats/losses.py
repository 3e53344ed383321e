"""What a format could not say about a tool."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Loss:
    """``field`` is the spec's field, dotted where it is a part of a schema: ``parameters.properties.n.multipleOf``."""

    tool: str
    field: str
    reason: str

    def __str__(self) -> str:
        return f"{self.tool}: {self.field}: {self.reason}"

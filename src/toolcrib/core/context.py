"""What a tool may know of the call that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Give a function a parameter of this type and it is filled in at the call; models never see it.

    ``principal`` is who calls and ``roles`` what they are, ``values`` whatever the caller passed along.
    """

    principal: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()


NO_CONTEXT = ToolContext()

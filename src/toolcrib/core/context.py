"""What a tool may know of the call that runs it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from toolcrib.core.limits import TokenLimits
from toolcrib.core.roles import Principal


@dataclass(frozen=True, slots=True)
class ToolContext:
    """Give a function a parameter of this type and it is filled in at the call; models never see it.

    ``principal`` is who calls and ``roles`` what they are, ``values`` whatever the caller passed along.
    """

    principal: str = ""
    values: Mapping[str, Any] = field(default_factory=dict)
    roles: tuple[str, ...] = ()
    limits: TokenLimits | None = None
    """What the caller's token was made for."""

    @classmethod
    def of(cls, principal: Principal) -> Self:
        """The context of a call that a door takes from ``principal``."""
        return cls(principal.name, roles=principal.roles, limits=principal.limits)


NO_CONTEXT = ToolContext()

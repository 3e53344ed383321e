"""What a token may be used for, beside the roles of who holds it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

Action = Literal["create", "update", "delete", "run", "read"]
ACTIONS: tuple[Action, ...] = get_args(Action)
LIMIT_RULE = "token_limit"
"""The rule that a refusal by a token's limits names."""


@dataclass(frozen=True, slots=True)
class TokenLimits:
    """Only these tools, only tools with one of these tags, only these actions. What is empty limits nothing.

    Each limit that is given must hold: adding another kind never widens a token.
    """

    tools: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.tools or self.tags or self.actions)

    def refusal(self, action: str, document: Mapping[str, Any]) -> str:
        """Why the action on the tool of this document is outside of the limits; empty if it is within."""
        if self.actions and action not in self.actions:
            return f"it is for {_listed(self.actions)} only"
        if self.tools and document["name"] not in self.tools:
            return f"it is for {_listed(map(repr, self.tools))} only"
        if self.tags and not set(self.tags) & set(document.get("tags", ())):
            return f"it is for tools with the tag {_listed(map(repr, self.tags))} only"
        return ""


def _listed(texts: Iterable[str]) -> str:
    return " or ".join(texts)

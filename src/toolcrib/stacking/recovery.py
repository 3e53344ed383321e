"""What to do when a step fails: try again, then try another brick.

An error handling table maps kinds of failure to what follows::

    {"403_error": {"retry_with": "curl_cffi"}, "timeout": {"retry_count": 2}, "5xx_error": {"retry_count": 1}}

Kinds are ``<status>_error``, ``<digit>xx_error``, ``timeout``, ``connection_error`` and ``error`` (anything); the most
particular one that is in the table applies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, Field, ValidationError

from toolcrib.core.errors import DeniedError, ToolValidationError, UnavailableError
from toolcrib.core.spec import explain
from toolcrib.stacking.items import Item, Page

TIMEOUT = "timeout"
CONNECTION = "connection_error"
ANYTHING = "error"
REFUSED = "refused"
ROBOTS = "robots"

_STATUS_KIND = re.compile(r"[1-5](\d\d|xx)_error")


class Substitute(BaseModel, frozen=True, extra="forbid"):
    """A brick that stands in for the one that failed."""

    tool: str = Field(description="the brick")
    config: dict[str, Any] = Field(default_factory=dict, description="its settings")


class Remedy(BaseModel, frozen=True, extra="forbid"):
    """First ``retry_count`` more attempts, the wait before each twice the last; then the substitutes in turn."""

    retry_count: int = Field(0, ge=0, le=100, description="so many more attempts")
    retry_with: tuple[Substitute, ...] = Field((), description="then these bricks in turn, by name or as objects")
    delay_seconds: float = Field(0.2, ge=0, le=3600, description="the wait before the first of them")


@dataclass(frozen=True, slots=True)
class Failure:
    """One attempt that came to nothing. ``wait`` is how long the host asks to be left alone, where it does."""

    kind: str
    reason: str
    wait: float | None = None


class Recovery:
    """The error handling of a pipeline."""

    def __init__(self, remedies: Mapping[str, Remedy]) -> None:
        self.remedies = dict(remedies)

    @classmethod
    def parse(cls, table: Mapping[str, Any]) -> Recovery:
        remedies = {}
        for kind, entry in table.items():
            if kind not in (TIMEOUT, CONNECTION, ANYTHING) and not _STATUS_KIND.fullmatch(kind):
                raise ToolValidationError(
                    f"the error handling has a kind {kind!r} that does not exist; "
                    "use '403_error', '5xx_error', 'timeout', 'connection_error' or 'error'"
                )
            if not isinstance(entry, Mapping):
                raise ToolValidationError(f"the error handling of {kind!r} must be an object, not {entry!r:.60}")
            try:
                remedies[kind] = Remedy.model_validate(_with_substitutes(entry))
            except ValidationError as error:
                raise explain(error, {"name": kind}, "error handling of") from None
        return cls(remedies)

    def match(self, kind: str) -> str:
        """The most particular kind in the table that ``kind`` falls under, or ''."""
        by_class = f"{kind[0]}xx_error" if _STATUS_KIND.fullmatch(kind) else ""
        return next((one for one in (kind, by_class, ANYTHING) if one in self.remedies), "")

    @property
    def substitutes(self) -> list[tuple[str, Substitute]]:
        """Every substitute with the kind of failure it stands in at, in the order to try them."""
        return [(kind, one) for kind, remedy in self.remedies.items() for one in remedy.retry_with]


def failure_of(given: Sequence[Item], accepted: frozenset[int]) -> Failure | None:
    """The failure that a page tells by its status, unless that status is wanted."""
    for item in given:
        if isinstance(item, Page) and item.status >= 400 and item.status not in accepted:
            return Failure(f"{item.status}_error", f"{item.url} answered {item.status}")
    return None


def failure_from(error: Exception) -> Failure:
    text = str(error)
    if isinstance(error, TimeoutError):
        return Failure(TIMEOUT, text or "time ran out")
    if isinstance(error, DeniedError) and error.rule == "egress":
        return Failure(REFUSED, text)
    if isinstance(error, UnavailableError | ConnectionError):
        return Failure(CONNECTION, text or type(error).__name__)
    return Failure(ANYTHING, f"{type(error).__name__}: {text}" if text else type(error).__name__)


def _with_substitutes(entry: Mapping[str, Any]) -> dict[str, Any]:
    """A substitute may be written as a name, an object, or a list of either, and called an actor."""
    plain = dict(entry)
    if "retry_with_actor" in plain:
        plain.setdefault("retry_with", plain.pop("retry_with_actor"))
    if "retry_with" in plain:
        written = plain["retry_with"]
        several = written if isinstance(written, Sequence) and not isinstance(written, str) else [written]
        plain["retry_with"] = [{"tool": one} if isinstance(one, str) else one for one in several]
    return plain

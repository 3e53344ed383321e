"""What a provider allows in a tool's name, and how ours become that."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from toolcrib.core.errors import ExportError
from toolcrib.core.spec import ToolSpec

_DIGEST_LENGTH = 8
SEARCH_TOOLS, CALL_TOOL = "search_tools", "call_tool"
"""What our own search is called everywhere, and what runs the tools that it finds."""
READ_RESULT = "read_result"
"""The tool that reads what a long result left out; like the two above it is ours."""


@dataclass(frozen=True)
class NameRule:
    """``allowed`` is the inside of a character class, ``first`` one for the first character if that is narrower."""

    allowed: str
    max_length: int
    first: str = ""
    _valid: re.Pattern[str] = field(init=False, repr=False)
    _forbidden: re.Pattern[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        first = self.first or self.allowed
        valid = re.compile(f"[{first}][{self.allowed}]{{0,{self.max_length - 1}}}")
        object.__setattr__(self, "_valid", valid)
        object.__setattr__(self, "_forbidden", re.compile(f"[^{self.allowed}]"))

    def apply(self, name: str) -> str:
        """``name`` if it is allowed, and otherwise the nearest that is; the same answer every time."""
        if self._valid.fullmatch(name):
            return name
        allowed = self._forbidden.sub("_", name)
        if self.first and not re.match(f"[{self.first}]", allowed):
            allowed = f"tool_{allowed}"
        if len(allowed) <= self.max_length:
            return allowed
        # Cutting alone would make two long names one; a digest of the whole name keeps them apart.
        digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST_LENGTH]
        return f"{allowed[: self.max_length - _DIGEST_LENGTH - 1]}_{digest}"


ANY_NAME = NameRule(r"A-Za-z0-9_.\-", 128)
"""Whatever is a tool name here is one there."""


def exported_names(specs: Iterable[ToolSpec], rule: NameRule, provider: str) -> dict[str, str]:
    """Exported name -> tool name, in order; ExportError if two tools would share an exported name."""
    names: dict[str, str] = {}
    for spec in specs:
        exported = rule.apply(spec.name)
        if exported in names:
            raise collision(names[exported], spec.name, exported, provider)
        names[exported] = spec.name
    return names


def collision(first: str, second: str, exported: str, provider: str) -> ExportError:
    """What to tell of two tools that would be one to a model."""
    if first == second:
        return ExportError(f"tool {first!r} is in the list twice; hand each tool over once")
    return ExportError(
        f"tools {first!r} and {second!r} are both called {exported!r} for {provider}, "
        "which does not allow their own names; rename one of them or hand them over apart"
    )

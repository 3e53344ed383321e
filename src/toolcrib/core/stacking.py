"""The Lego rules: which tools may be stacked together.

For a pair, the first rule that speaks decides:

1. one of them refuses the other, by name or by type: no
2. one of them accepts the other, by name or by type: yes
3. both are of the same type: no
4. otherwise: yes

``strict`` puts a rule before the last: a tool that lists what it accepts accepts nothing else.
A list entry is a tool's name, ``type:x`` for every tool of type x, or ``type:*`` for every tool.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from toolcrib.core.spec import ToolSpec

TYPE_PREFIX = "type:"
ANY_TYPE = "type:*"


class Rule(StrEnum):
    """Which rule decided."""

    REFUSED = "refused"
    ACCEPTED = "accepted"
    SAME_TYPE = "same_type"
    NOT_LISTED = "not_listed"
    NOTHING_AGAINST = "nothing_against"


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two tools stack, by which rule, and why in words. ``left`` and ``right`` are in alphabetical order."""

    left: str
    right: str
    compatible: bool
    rule: Rule
    reason: str


@dataclass(frozen=True, slots=True)
class Report:
    """Every pair of a set of tools, judged. A set of fewer than two tools has no pairs and is compatible."""

    tools: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def compatible(self) -> bool:
        return all(verdict.compatible for verdict in self.verdicts)

    @property
    def conflicts(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.compatible)

    @property
    def reason(self) -> str:
        """The first conflict's reason, or a sentence that says there is none."""
        for verdict in self.verdicts:
            if not verdict.compatible:
                return verdict.reason
        if len(self.verdicts) == 1:
            return self.verdicts[0].reason
        return f"nothing speaks against any of the {len(self.verdicts)} pairs"


def judge(one: ToolSpec, other: ToolSpec, *, strict: bool = False) -> Verdict:
    """The verdict on a pair; the order of the two does not matter."""
    left, right = (one, other) if one.name <= other.name else (other, one)
    compatible, rule, reason = _decide(left, right, strict)
    return Verdict(left.name, right.name, compatible, rule, reason)


def check(specs: Iterable[ToolSpec], *, strict: bool = False) -> Report:
    """The verdicts on every pair of a set; a tool that is given twice counts once."""
    tools = list({spec.name: spec for spec in specs}.values())
    verdicts = tuple(judge(one, other, strict=strict) for one, other in combinations(tools, 2))
    return Report(tuple(tool.name for tool in tools), verdicts)


def _decide(left: ToolSpec, right: ToolSpec, strict: bool) -> tuple[bool, Rule, str]:
    for this, that in ((left, right), (right, left)):
        if entry := _named(that, this.incompatible_with):
            return False, Rule.REFUSED, f"{this.name!r} refuses {_spoken(that, entry)}"
    for this, that in ((left, right), (right, left)):
        if entry := _named(that, this.compatibilities):
            return True, Rule.ACCEPTED, f"{this.name!r} accepts {_spoken(that, entry)}"
    if left.tool_type and left.tool_type == right.tool_type:
        reason = f"{left.name!r} and {right.name!r} are both of type {left.tool_type!r} and neither accepts the other"
        return False, Rule.SAME_TYPE, reason
    if strict:
        for this, that in ((left, right), (right, left)):
            if this.compatibilities:
                return False, Rule.NOT_LISTED, f"{this.name!r} lists what it accepts, and {that.name!r} is not in it"
    return True, Rule.NOTHING_AGAINST, f"nothing speaks against {left.name!r} with {right.name!r}"


def _named(tool: ToolSpec, entries: tuple[str, ...]) -> str:
    """The entry that means ``tool``, or ''."""
    for entry in entries:
        if entry in (tool.name, ANY_TYPE) or (tool.tool_type and entry == TYPE_PREFIX + tool.tool_type):
            return entry
    return ""


def _spoken(tool: ToolSpec, entry: str) -> str:
    if entry == ANY_TYPE:
        return f"every tool, so also {tool.name!r}"
    if entry == tool.name:
        return repr(tool.name)
    return f"every tool of type {tool.tool_type!r}, so also {tool.name!r}"

"""The stacking rules: which tools may be used together.

For a pair, the first rule that speaks decides:

1. one of them refuses the other, by name or by type: no
2. one of them accepts the other, by name or by type: yes
3. both are of the same type: no
4. otherwise: yes

``strict`` puts a rule before the last: a tool that lists what it accepts accepts nothing else.
A list entry is a tool's name, ``type:x`` for every tool of type x, or ``type:*`` for every tool.

:func:`rules` is the only place that knows them. Verdicts (here), the store's filter (``catalogue.stacking``) and the
sets of the planner (``stacking.index``) only read what it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations
from operator import attrgetter

from toolcrib.core.spec import ToolSpec

_TYPE_PREFIX = "type:"
_ANY_TYPE = "type:*"


class Rule(StrEnum):
    """Which rule decided."""

    REFUSED = "refused"
    ACCEPTED = "accepted"
    SAME_TYPE = "same_type"
    NOT_LISTED = "not_listed"
    NOTHING_AGAINST = "nothing_against"


Condition = tuple[str, tuple[str, ...] | None]
"""Tools that have one of the values in a field of FIELDS; None stands for any value at all."""

Clause = tuple[Rule, bool, tuple[Condition, ...]]
"""A rule as one tool says it of the others: which it is, what it decides, and about whom: who meets a condition."""

CALLED = "called"
"""A field that every tool has and no spec shows: the entries that mean the tool, in the list of another."""

EVERY_TOOL: Condition = (CALLED, (_ANY_TYPE,))


def rules(spec: ToolSpec, *, strict: bool = False) -> Iterator[Clause]:
    """The rules in their order, as ``spec`` says them; the first that speaks of another tool decides about it."""
    itself, accepts, own_type = _entries_for(spec), spec.compatibilities, spec.tool_type
    yield Rule.REFUSED, False, ((CALLED, spec.incompatible_with), ("incompatible_with", itself))
    yield Rule.ACCEPTED, True, ((CALLED, accepts), ("compatibilities", itself))
    if own_type:
        yield Rule.SAME_TYPE, False, (("tool_type", (own_type,)),)
    if strict:
        yield Rule.NOT_LISTED, False, (EVERY_TOOL if accepts else ("compatibilities", None),)
    yield Rule.NOTHING_AGAINST, True, (EVERY_TOOL,)


def _entries_for(spec: ToolSpec) -> tuple[str, ...]:
    return (spec.name, _TYPE_PREFIX + spec.tool_type, _ANY_TYPE) if spec.tool_type else (spec.name, _ANY_TYPE)


FIELDS: Mapping[str, Callable[[ToolSpec], tuple[str, ...]]] = {
    CALLED: _entries_for,
    "tool_type": lambda spec: (spec.tool_type,),
    "compatibilities": attrgetter("compatibilities"),
    "incompatible_with": attrgetter("incompatible_with"),
}
"""What conditions are about, and how to read it from a tool."""


def spell_out(condition: Condition) -> tuple[Condition, ...]:
    """The same tools by fields that a spec has, for a store that knows no CALLED. One of the conditions holds."""
    field, entries = condition
    if field != CALLED or entries is None:
        return (condition,)
    if _ANY_TYPE in entries:
        return (EVERY_TOOL,)
    types = [entry.removeprefix(_TYPE_PREFIX) for entry in entries if entry.startswith(_TYPE_PREFIX)]
    return ("name", entries), ("tool_type", tuple(filter(None, types)))


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether two tools stack, by which rule, and why in words. ``left`` and ``right`` are in alphabetical order."""

    left: str
    right: str
    compatible: bool
    rule: Rule
    reason: str


@dataclass(frozen=True, slots=True)
class StackReport:
    """Every pair of a set of tools, judged. A set of fewer than two tools has no pairs and is compatible."""

    tools: tuple[str, ...]
    verdicts: tuple[Verdict, ...]

    @property
    def compatible(self) -> bool:
        return not self.conflicts

    @property
    def conflicts(self) -> tuple[Verdict, ...]:
        return tuple(verdict for verdict in self.verdicts if not verdict.compatible)

    @property
    def reason(self) -> str:
        """The first conflict's reason, or a sentence that says there is none."""
        telling = self.conflicts or self.verdicts
        if self.conflicts or len(telling) == 1:
            return telling[0].reason
        return f"nothing speaks against any of the {len(self.verdicts)} pairs"


def judge(one: ToolSpec, other: ToolSpec, *, strict: bool = False) -> Verdict:
    """The verdict on a pair; the order of the two does not matter."""
    left, right = (one, other) if one.name <= other.name else (other, one)
    rule, compatible, _ = next(clause for clause in rules(left, strict=strict) if _meets_one(right, clause[2]))
    return Verdict(left.name, right.name, compatible, rule, _REASONS[rule](left, right))


def check(specs: Iterable[ToolSpec], *, strict: bool = False) -> StackReport:
    """The verdicts on every pair of a set; a tool that is given twice counts once."""
    tools = list({spec.name: spec for spec in specs}.values())
    verdicts = tuple(judge(one, other, strict=strict) for one, other in combinations(tools, 2))
    return StackReport(tuple(tool.name for tool in tools), verdicts)


def _meets_one(spec: ToolSpec, conditions: Iterable[Condition]) -> bool:
    for field, values in conditions:
        held = FIELDS[field](spec)
        if held and (values is None or not set(values).isdisjoint(held)):
            return True
    return False


def _mention(left: ToolSpec, right: ToolSpec, field: str, verb: str) -> str:
    """Which of the two names the other in its list, and by which entry."""
    for this, that in ((left, right), (right, left)):
        meaning = _entries_for(that)
        entry = next((entry for entry in FIELDS[field](this) if entry in meaning), "")
        if entry:
            break
    if entry == that.name:
        return f"{this.name!r} {verb} {that.name!r}"
    every = "every tool" if entry == _ANY_TYPE else f"every tool of type {that.tool_type!r}"
    return f"{this.name!r} {verb} {every}, so also {that.name!r}"


def _not_listed(left: ToolSpec, right: ToolSpec) -> str:
    this, that = (left, right) if left.compatibilities else (right, left)
    return f"{this.name!r} lists what it accepts, and {that.name!r} is not in it"


_REASONS: Mapping[Rule, Callable[[ToolSpec, ToolSpec], str]] = {
    Rule.REFUSED: lambda left, right: _mention(left, right, "incompatible_with", "refuses"),
    Rule.ACCEPTED: lambda left, right: _mention(left, right, "compatibilities", "accepts"),
    Rule.SAME_TYPE: lambda left, right: (
        f"{left.name!r} and {right.name!r} are both of type {left.tool_type!r} and neither accepts the other"
    ),
    Rule.NOT_LISTED: _not_listed,
    Rule.NOTHING_AGAINST: lambda left, right: f"nothing speaks against {left.name!r} with {right.name!r}",
}

"""From wanted capabilities to the stacks that have them.

A stack is a set of tools of which every pair is compatible, which together have every wanted capability, and of which
none could be left out. The best stack has the fewest tools; among those, the fewest keys to configure; then the fewest
pairs that merely do not exclude each other, because a declared "accepts" is worth more than silence; then it comes
first in the alphabet, looking at the capabilities in the order they were asked for. The search is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import overload

from toolcrib.core.errors import InvalidArgumentsError, did_you_mean
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import Rule, StackReport, check, judge
from toolcrib.stacking.cover import Candidates, search


@dataclass(frozen=True, slots=True)
class Stack:
    """Tools that fit together and have what was asked, in the order of the capabilities they bring."""

    tools: tuple[ToolSpec, ...]
    brings: dict[str, tuple[str, ...]]
    """For each tool, the wanted capabilities it has."""
    strict: bool = False

    @property
    def report(self) -> StackReport:
        """Why they fit, pair by pair; judged when it is asked for."""
        return check(self.tools, strict=self.strict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(tool.name for tool in self.tools)

    @property
    def required_config(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(key for tool in self.tools for key in tool.required_config))

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why each tool is in it, why they fit, and what they need, a sentence each."""
        brought = [f"{tool.name!r} brings {', '.join(self.brings[tool.name])}" for tool in self.tools]
        fit = [verdict.reason for verdict in self.report.verdicts]
        needs = [f"{tool.name!r} needs the key {key!r}" for tool in self.tools for key in tool.required_config]
        return (*brought, *fit, *needs)


@dataclass(frozen=True, slots=True)
class Miss:
    """The nearest thing to a stack: the best one for as many of the wanted capabilities as fit together."""

    stack: Stack | None
    missing: tuple[str, ...]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan(Sequence[Stack]):
    """The best stacks, best first; if there is none, ``nearest`` says what comes closest and why not all."""

    wanted: tuple[str, ...]
    stacks: tuple[Stack, ...]
    nearest: Miss | None = None

    def __len__(self) -> int:
        return len(self.stacks)

    @overload
    def __getitem__(self, position: int) -> Stack: ...

    @overload
    def __getitem__(self, position: slice) -> tuple[Stack, ...]: ...

    def __getitem__(self, position: int | slice) -> Stack | tuple[Stack, ...]:
        return self.stacks[position]


class Planner:
    """Plans over a catalogue. Keep it if you ask more than once: it finds tools by capability."""

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        self._offering: dict[str, dict[str, ToolSpec]] = {}
        for spec in specs:
            for capability in spec.capabilities:
                self._offering.setdefault(capability, {})[spec.name] = spec

    def plan(self, wanted: Iterable[str], *, limit: int = 5, strict: bool = False) -> Plan:
        asked = tuple(dict.fromkeys(wanted))
        if not asked:
            raise InvalidArgumentsError("a plan needs at least one wanted capability")
        if limit < 1:
            raise InvalidArgumentsError(f"a plan's limit is at least 1, not {limit}")
        stacks = self._stacks(asked, limit, strict)
        return Plan(asked, tuple(stacks), None if stacks else self._nearest(asked, strict))

    def _stacks(self, asked: tuple[str, ...], limit: int, strict: bool) -> list[Stack]:
        if not all(capability in self._offering for capability in asked):
            return []
        offering = {name: spec for capability in asked for name, spec in self._offering[capability].items()}
        candidates = Candidates([offering[name] for name in sorted(offering)], asked, strict=strict)
        return [_stack(tools, asked, strict) for tools in search(candidates, limit)]

    def _nearest(self, asked: tuple[str, ...], strict: bool) -> Miss:
        offered = tuple(capability for capability in asked if capability in self._offering)
        # Two that no stack has together are in no larger stack either.
        apart = [set(pair) for pair in combinations(offered, 2) if not self._stacks(pair, 1, strict)]
        for size in range(len(offered), 0, -1):
            found = [
                stack
                for kept in combinations(offered, size)
                if not any(pair.issubset(kept) for pair in apart)
                for stack in self._stacks(kept, 1, strict)
            ]
            if found:
                best = min(found, key=lambda stack: rank(stack.tools))
                missing = tuple(each for each in asked if not any(each in tool.capabilities for tool in best.tools))
                return Miss(best, missing, tuple(self._obstacles(best, missing, strict)))
        return Miss(None, asked, tuple(self._not_offered(capability) for capability in asked))

    def _obstacles(self, best: Stack, missing: Iterable[str], strict: bool) -> Iterator[str]:
        for capability in missing:
            if capability not in self._offering:
                yield self._not_offered(capability)
                continue
            for name, spec in sorted(self._offering[capability].items()):
                verdicts = [judge(spec, tool, strict=strict) for tool in best.tools]
                conflicts = [verdict.reason for verdict in verdicts if not verdict.compatible]
                if conflicts:
                    yield f"{name!r} would bring {capability}, but {conflicts[0]}"

    def _not_offered(self, capability: str) -> str:
        return f"no tool offers {capability!r}{did_you_mean(capability, self._offering)}"


def plan(specs: Iterable[ToolSpec], wanted: Iterable[str], *, limit: int = 5, strict: bool = False) -> Plan:
    """The best ``limit`` stacks of ``specs`` that have every ``wanted`` capability."""
    return Planner(specs).plan(wanted, limit=limit, strict=strict)


def rank(tools: Sequence[ToolSpec]) -> tuple[int, int, int]:
    """What makes a stack better, most important first; less is better."""
    silent = sum(judge(one, other).rule is not Rule.ACCEPTED for one, other in combinations(tools, 2))
    return len(tools), sum(len(tool.required_config) for tool in tools), silent


def _stack(tools: Sequence[ToolSpec], asked: tuple[str, ...], strict: bool) -> Stack:
    brings = {tool.name: tuple(each for each in asked if each in tool.capabilities) for tool in tools}
    return Stack(tuple(tools), brings, strict)

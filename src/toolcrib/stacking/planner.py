"""From wanted capabilities to the stacks that have them.

A stack is a set of tools of which every pair is compatible, which together have every wanted capability, and of which
none could be left out. Stacks that can run here come first. Among them, as among the others, the best has the fewest
tools; then the fewest that are deprecated; then the fewest that cannot run here; then the fewest keys to configure;
then the fewest pairs that merely do not exclude each other, because a declared "accepts" is worth more than silence;
then it comes first in the alphabet, looking at the capabilities in the order they were asked for. The search is exact.

What can run here the planner is told: ``lacks`` says of a tool what stands in the way, a sentence each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, overload

from toolcrib.core.errors import InvalidArgumentsError, did_you_mean
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import Rule, StackReport, check, judge
from toolcrib.stacking.cover import Candidates, search

if TYPE_CHECKING:
    from toolcrib.stacking.pipeline import Bricks, Pipeline

Lacks = Callable[[ToolSpec], Sequence[str]]
"""What stands in the way of running a tool here: a package, a key, a brick. Empty if nothing does."""

_EMPTY = "there are no tools to plan with; 'tools add -f FILE' adds a tool, 'tools add --samples' those that come along"


@dataclass(frozen=True, slots=True)
class Stack:
    """Tools that fit together and have what was asked, in the order of the capabilities they bring."""

    tools: tuple[ToolSpec, ...]
    brings: dict[str, tuple[str, ...]]
    """For each tool, the wanted capabilities it has."""
    strict: bool = False
    lacks: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """For each tool that cannot run here, what stands in the way."""

    @property
    def runnable(self) -> bool:
        """Whether nothing that the planner was told of stands in the way of running it here."""
        return not self.lacks

    @property
    def missing(self) -> tuple[str, ...]:
        """What must be had before it can run here, a sentence each."""
        return tuple(dict.fromkeys(each for lacking in self.lacks.values() for each in lacking))

    def pipeline(
        self,
        *,
        start: str | Sequence[str] = (),
        config: Mapping[str, Mapping[str, Any]] | None = None,
        bricks: Bricks | None = None,
        **settings: Any,
    ) -> Pipeline:
        """The tools as a pipeline, in an order in which the items fit: fetch, then read, then store.

        ``config`` has the settings of tools by name; those that must be given and are not are examples. ``bricks`` are
        those that ship and those that are installed, unless others are given. Further arguments are those of
        Pipeline.of. Raises IncompatibleError if the tools make no row.
        """
        from toolcrib.stacking.drafting import drafted

        return drafted(self, start=start, config=config or {}, bricks=bricks, **settings)

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
        return (*brought, *fit, *needs, *(f"cannot run here: {said}" for said in self.missing))


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

    def __init__(self, specs: Iterable[ToolSpec], *, lacks: Lacks | None = None) -> None:
        self._offering: dict[str, dict[str, ToolSpec]] = {}
        self._find_lacks = lacks
        self._lacking: dict[str, tuple[str, ...]] = {}
        self._is_empty = True
        for spec in specs:
            self._is_empty = False
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
        """The best ones that can run here, then, if there are not enough, the best of the others."""
        if not all(capability in self._offering for capability in asked):
            return []
        offering = {name: spec for capability in asked for name, spec in self._offering[capability].items()}
        everybody = [offering[name] for name in sorted(offering)]
        able = [spec for spec in everybody if not self._lacks(spec)]
        unable = {spec.name for spec in everybody} - {spec.name for spec in able}
        found = search(Candidates(able, asked, strict=strict), limit) if _cover(able, asked) else []
        if len(found) < limit and unable:
            # All that can run here were found, and come again among the others: so many more are asked for.
            ranked = search(Candidates(everybody, asked, strict=strict, unable=unable), limit + len(found))
            found += [tools for tools in ranked if any(map(self._lacks, tools))][: limit - len(found)]
        return [self._stack(tools, asked, strict) for tools in found]

    def _lacks(self, spec: ToolSpec) -> tuple[str, ...]:
        if self._find_lacks is None and not spec.deprecated:
            return ()
        if spec.name not in self._lacking:
            found = () if self._find_lacks is None else tuple(self._find_lacks(spec))
            self._lacking[spec.name] = found or _deprecated(spec)
        return self._lacking[spec.name]

    def _stack(self, tools: Sequence[ToolSpec], asked: tuple[str, ...], strict: bool) -> Stack:
        brings = {tool.name: tuple(each for each in asked if each in tool.capabilities) for tool in tools}
        lacks = {tool.name: lacking for tool in tools if (lacking := self._lacks(tool))}
        return Stack(tuple(tools), brings, strict, lacks)

    def _nearest(self, asked: tuple[str, ...], strict: bool) -> Miss:
        if self._is_empty:
            return Miss(None, asked, (_EMPTY,))
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
                best = min(found, key=lambda stack: (not stack.runnable, rank(stack.tools)))
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


def _deprecated(spec: ToolSpec) -> tuple[str, ...]:
    instead = f"; use {spec.replaced_by!r} instead" if spec.replaced_by else ""
    return (f"{spec.name!r} is deprecated{instead}",) if spec.deprecated else ()


def plan(
    specs: Iterable[ToolSpec],
    wanted: Iterable[str],
    *,
    limit: int = 5,
    strict: bool = False,
    lacks: Lacks | None = None,
) -> Plan:
    """The best ``limit`` stacks of ``specs`` that have every ``wanted`` capability."""
    return Planner(specs, lacks=lacks).plan(wanted, limit=limit, strict=strict)


def rank(tools: Sequence[ToolSpec]) -> tuple[int, int, int]:
    """What makes a stack better, most important first; less is better."""
    silent = sum(judge(one, other).rule is not Rule.ACCEPTED for one, other in combinations(tools, 2))
    return len(tools), sum(len(tool.required_config) for tool in tools), silent


def _cover(specs: Iterable[ToolSpec], asked: Iterable[str]) -> bool:
    return set(asked).issubset(capability for spec in specs for capability in spec.capabilities)

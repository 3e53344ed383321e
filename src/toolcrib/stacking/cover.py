"""The search behind the planner: the best irredundant, pairwise compatible covers, by branch and bound.

Tools are bits in the order of their names, so sets of tools are integers and the pair rules are a few operations on
them. The search picks a tool for the first capability that is still uncovered, in the order of names; covers of equal
cost are therefore met in the order they are wanted in, and a branch that cannot do better than what is kept is cut.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Container, Iterator, Sequence
from functools import cache, cached_property, reduce
from operator import or_

from toolcrib.core.spec import ToolSpec
from toolcrib.stacking.index import StackingIndex, set_of

Cost = tuple[int, int]
"""Keys to configure, and pairs of which neither accepts the other. A tool that cannot run here outweighs all keys, one
that is deprecated all of those."""

_UNABLE = 1_000_000
_DEPRECATED = 1_000 * _UNABLE


class Candidates:
    """Tools that have at least one wanted capability, in the order of their names."""

    def __init__(
        self, specs: Sequence[ToolSpec], wanted: Sequence[str], *, strict: bool, unable: Container[str] = ()
    ) -> None:
        self.specs = specs
        self.all_wanted = (1 << len(wanted)) - 1
        self.keys = [
            len(spec.required_config) + _UNABLE * (spec.name in unable) + _DEPRECATED * spec.deprecated
            for spec in specs
        ]
        self.needing = _by_value(self.keys)
        self.covers = [0] * len(specs)
        self.having: list[int] = []
        for position, capability in enumerate(wanted):
            having = [tool for tool, spec in enumerate(specs) if capability in spec.capabilities]
            self.having.append(set_of(having))
            for tool in having:
                self.covers[tool] |= 1 << position
        index = cache(lambda: StackingIndex(specs))  # stacks of one tool need none
        self.related = cache(lambda tool: index().relate(tool, strict=strict))
        """Of a tool: those with which one accepts the other, and all that it stacks with."""

    @cached_property
    def sociable(self) -> int:
        """The tools that some other accepts, or that accept some other."""
        found, everybody = 0, (1 << len(self.specs)) - 1
        for tool in range(len(self.specs)):
            found |= self.related(tool)[0]
            if found == everybody:
                break
        return found


def search(candidates: Candidates, limit: int) -> list[list[ToolSpec]]:
    """The best ``limit`` covers, best first, the tools of each in the order they were picked."""
    found: list[list[ToolSpec]] = []
    least = _lower_bound(candidates.covers)
    for size in range(least(candidates.all_wanted), candidates.all_wanted.bit_count() + 1):
        if len(found) >= limit:
            break
        kept = _Search(candidates, least, size, limit - len(found)).run()
        found += [[candidates.specs[tool] for tool in tools] for tools in kept]
    return found


def _lower_bound(covers: Sequence[int]) -> Callable[[int], int]:
    """A function that says how many tools cover a set of capabilities at least, whatever their pairs."""
    distinct = set(covers)
    useful = [one for one in distinct if not any(one != other and one & other == one for other in distinct)]

    @cache
    def least(wanted: int) -> int:
        if not wanted:
            return 0
        first = wanted & -wanted
        return 1 + min(least(wanted & ~one) for one in useful if one & first)

    return least


class _Search:
    """All covers of one size, of which the best few are kept."""

    def __init__(self, candidates: Candidates, least: Callable[[int], int], size: int, limit: int) -> None:
        self._candidates = candidates
        self._least = least
        self._size = size
        self._limit = limit
        self._kept: list[tuple[Cost, int, list[int]]] = []
        self._to_beat: Cost | None = None
        self._met = 0

    def run(self) -> list[list[int]]:
        everybody = (1 << len(self._candidates.specs)) - 1
        self._extend([], self._candidates.all_wanted, everybody, (0, 0))
        return [picked for _, _, picked in self._kept]

    def _extend(self, picked: list[int], uncovered: int, open_tools: int, cost: Cost) -> None:
        """Try every open tool that has the first uncovered capability. ``open_tools`` fit all that is picked."""
        candidates = self._candidates
        left = self._size - len(picked)
        friends = [candidates.related(other)[0] for other in picked]
        for tool in self._choices(picked, uncovered, open_tools, left):
            if self._is_beaten(cost):
                return
            open_tools &= ~(1 << tool)  # a set is met once: what was tried here is closed further on
            rest = uncovered & ~candidates.covers[tool]
            if self._least(rest) > left - 1:
                continue
            silent = sum([not accepted >> tool & 1 for accepted in friends])  # noqa: C419  a list is quicker in the inner loop
            new_cost = (cost[0] + candidates.keys[tool], cost[1] + silent)
            if self._is_beaten(new_cost):
                if left == 1:
                    return  # the last choices come in the order of their cost
                continue
            if not rest:
                if left == 1 and self._each_is_needed([*picked, tool]):
                    self._keep(new_cost, [*picked, tool])
            else:
                still_open = open_tools & candidates.related(tool)[1]
                to_come = self._silent_to_come([*picked, tool], rest, still_open)
                if not self._is_beaten((new_cost[0], new_cost[1] + to_come)):
                    self._extend([*picked, tool], rest, still_open, new_cost)

    def _choices(self, picked: list[int], uncovered: int, open_tools: int, left: int) -> Iterator[int]:
        candidates = self._candidates
        if left == 1:
            for position in _bits(uncovered):
                open_tools &= candidates.having[position]
            yield from self._last_choices(picked, open_tools)
            return
        first = (uncovered & -uncovered).bit_length() - 1
        yield from _bits(open_tools & candidates.having[first])

    def _last_choices(self, picked: list[int], open_tools: int) -> Iterator[int]:
        """The last pick in the order of its cost, so that one look tells whether any is good enough."""
        levels = [open_tools]
        for other in picked:
            accepted, _ = self._candidates.related(other)
            levels = [
                (here & accepted) | (before & ~accepted)
                for here, before in zip([*levels, 0], [0, *levels], strict=True)
            ]
        for needing in self._candidates.needing:
            for level in levels:
                yield from _bits(level & needing)

    def _silent_to_come(self, picked: list[int], uncovered: int, open_tools: int) -> int:
        """At least so many pairs without an "accepts" must still come, whatever is picked from here."""
        candidates = self._candidates
        left = self._size - len(picked)
        silent = sum(
            self._least(self._not_brought_by(open_tools & candidates.related(tool)[0], uncovered)) for tool in picked
        )
        loners = self._least(self._not_brought_by(open_tools & candidates.sociable, uncovered))
        return silent + loners * (loners - 1) // 2 + loners * (left - loners)

    def _not_brought_by(self, tools: int, capabilities: int) -> int:
        """Those of the capabilities that none of the tools has."""
        having = self._candidates.having
        return sum(1 << position for position in _bits(capabilities) if not tools & having[position])

    def _is_beaten(self, cost: Cost) -> bool:
        """Whether a cover of at least this cost, met later, cannot be among the best."""
        return self._to_beat is not None and cost >= self._to_beat

    def _each_is_needed(self, tools: list[int]) -> bool:
        covers = self._candidates.covers
        without = (reduce(or_, [covers[other] for other in tools if other != one], 0) for one in tools)
        return self._candidates.all_wanted not in without

    def _keep(self, cost: Cost, picked: list[int]) -> None:
        self._met += 1
        insort(self._kept, (cost, self._met, picked))
        del self._kept[self._limit :]
        if len(self._kept) == self._limit:
            self._to_beat = self._kept[-1][0]


def _by_value(values: Sequence[int]) -> list[int]:
    """The sets of positions that hold the same value, the least value first."""
    return [set_of([at for at, one in enumerate(values) if one == value]) for value in sorted(set(values))]


def _bits(number: int) -> Iterator[int]:
    """The positions of the bits that are set, lowest first."""
    while number:
        lowest = number & -number
        yield lowest.bit_length() - 1
        number ^= lowest

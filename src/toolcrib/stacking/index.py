"""Tools in memory, so that the stacking rules answer for all of them at once.

Tools are bits in the order of their names, so a set of tools is an integer and a rule is a few operations on integers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import FIELDS, Condition, Rule, rules


class StackingIndex:
    """Tools in the order of their names, with the question ``find``."""

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        by_name = {spec.name: spec for spec in specs}
        self.specs = [by_name[name] for name in sorted(by_name)]
        self._positions = {spec.name: position for position, spec in enumerate(self.specs)}
        self._holding = {field: _Sets(map(read, self.specs)) for field, read in FIELDS.items()}

    def __len__(self) -> int:
        return len(self.specs)

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self.specs)

    def __contains__(self, name: object) -> bool:
        return name in self._positions

    def find(self, name: str, *, target_type: str | None = None, strict: bool = False) -> list[ToolSpec]:
        """The tools that stack with ``name``, in the order of their names; only those of ``target_type`` if given."""
        if name not in self._positions:
            raise ToolNotFoundError(name, self._positions)
        among = -1 if target_type is None else self._meeting([("tool_type", (target_type,))])
        if not among:
            return []
        _, compatible = self.relate(self._positions[name], strict=strict)
        return [self.specs[position] for position in _members(compatible & among)]

    def relate(self, position: int, *, strict: bool = False) -> tuple[int, int]:
        """Of the tool at ``position``: those with which one accepts the other, and all that it stacks with."""
        accepted = compatible = 0
        undecided = ((1 << len(self.specs)) - 1) ^ (1 << position)
        for rule, is_yes, conditions in rules(self.specs[position], strict=strict):
            spoken_of = undecided & self._meeting(conditions)
            undecided ^= spoken_of
            if is_yes:
                compatible |= spoken_of
            if rule is Rule.ACCEPTED:
                accepted = spoken_of
        return accepted, compatible

    def _meeting(self, conditions: Iterable[Condition]) -> int:
        """The tools that meet one of the conditions."""
        met = 0
        for field, values in conditions:
            sets = self._holding[field]
            known = sets.positions
            for value in known if values is None else values:
                if value in known:
                    met |= sets[value]
        return met


class _Sets(dict[str, int]):
    """By value, the set of tools that have it in a field. A set is made when it is first asked for."""

    def __init__(self, column: Iterable[tuple[str, ...]]) -> None:
        super().__init__()
        self.positions = positions = defaultdict[str, list[int]](list)
        for position, values in enumerate(column):
            for value in values:
                positions[value].append(position)

    def __missing__(self, value: str) -> int:
        self[value] = made = set_of(self.positions[value])
        return made


def set_of(positions: Sequence[int]) -> int:
    """The set of these positions, which ascend."""
    if len(positions) == 1:  # as for most names
        return 1 << positions[0]
    bits = bytearray(positions[-1] // 8 + 1 if positions else 0)
    for position in positions:
        bits[position >> 3] |= 1 << (position & 7)
    return int.from_bytes(bits, "little")


def _members(tools: int) -> Iterator[int]:
    """The positions in a set, lowest first. Its digits are read at once: arithmetic on a long integer is slow."""
    return (match.start() for match in re.finditer("1", f"{tools:b}"[::-1]))

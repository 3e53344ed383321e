"""Who stacks with whom, in one question per answer instead of one per pair.

The rules are those of :mod:`toolcrib.core.stacking`, turned round: for every name and type it is noted who accepts and
who refuses it. The work for a question then grows with the answer and with the exclusions, not with the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from toolcrib.core.errors import ToolNotFoundError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import ANY_TYPE, TYPE_PREFIX

_Groups = dict[str, dict[str, None]]
"""Ordered sets of tool names, by entry or type."""

_NOBODY: dict[str, None] = {}


class CompatibilityIndex:
    """Tools by name, with the question ``find``. Adding a tool again replaces it."""

    def __init__(self, specs: Iterable[ToolSpec] = ()) -> None:
        self._specs: dict[str, ToolSpec] = {}
        self._by_type: _Groups = {}
        self._accepted_by: _Groups = {}
        self._refused_by: _Groups = {}
        self._unlisted: _Groups = {}
        """By type, the tools that accept everything because they list nothing."""
        for spec in specs:
            self.add(spec)

    def add(self, spec: ToolSpec) -> None:
        self.remove(spec.name)
        self._specs[spec.name] = spec
        for groups, key in self._places(spec):
            groups.setdefault(key, {})[spec.name] = None

    def remove(self, name: str) -> None:
        """Forget a tool. An unknown name is a no-op."""
        spec = self._specs.pop(name, None)
        if spec is None:
            return
        for groups, key in self._places(spec):
            group = groups[key]
            group.pop(name, None)
            if not group:
                del groups[key]

    def __len__(self) -> int:
        return len(self._specs)

    def __contains__(self, name: object) -> bool:
        return name in self._specs

    def __iter__(self) -> Iterator[ToolSpec]:
        return iter(self._specs.values())

    def find(self, name: str, *, target_type: str | None = None, strict: bool = False) -> list[ToolSpec]:
        """Every tool that stacks with ``name``, by name; only those of ``target_type`` where one is given."""
        spec = self._specs.get(name)
        if spec is None:
            raise ToolNotFoundError(name, self._specs)
        types = list(self._by_type) if target_type is None else [target_type]
        refused = self._mentions(spec, spec.incompatible_with, self._refused_by)
        accepted = self._mentions(spec, spec.compatibilities, self._accepted_by)
        found: list[str] = []
        for tool_type in types:
            found += self._of_type(spec, tool_type, accepted, refused, strict)
        return [self._specs[one] for one in sorted(found)]

    def _of_type(
        self, spec: ToolSpec, tool_type: str, accepted: _Mentions, refused: _Mentions, strict: bool
    ) -> list[str]:
        everybody = self._by_type.get(tool_type, _NOBODY)
        if not everybody or refused.covers(tool_type):
            return []
        same = bool(tool_type) and tool_type == spec.tool_type
        if accepted.covers(tool_type):
            candidates: Iterable[str] = everybody
        elif same or (strict and spec.compatibilities):
            candidates = accepted.among(everybody)
        elif strict:
            candidates = {**self._unlisted.get(tool_type, _NOBODY), **dict.fromkeys(accepted.among(everybody))}
        else:
            candidates = everybody
        return [one for one in refused.removed_from(candidates) if one != spec.name]

    def _mentions(self, spec: ToolSpec, entries: tuple[str, ...], mentioned_by: _Groups) -> _Mentions:
        """Whom ``spec`` names in ``entries``, and who names ``spec``."""
        keys = [spec.name, ANY_TYPE, *([TYPE_PREFIX + spec.tool_type] if spec.tool_type else [])]
        groups = [dict.fromkeys(entries), *(mentioned_by[key] for key in keys if key in mentioned_by)]
        return _Mentions(groups)

    def _places(self, spec: ToolSpec) -> Iterator[tuple[_Groups, str]]:
        yield self._by_type, spec.tool_type
        if not spec.compatibilities:
            yield self._unlisted, spec.tool_type
        for entry in dict.fromkeys(spec.compatibilities):
            yield self._accepted_by, entry
        for entry in dict.fromkeys(spec.incompatible_with):
            yield self._refused_by, entry


class _Mentions:
    """Who is named, as groups that are asked rather than joined; the first group is a tool's own list."""

    __slots__ = ("_groups",)

    def __init__(self, groups: Sequence[Mapping[str, None]]) -> None:
        self._groups = [group for group in groups if group]

    def __contains__(self, name: str) -> bool:
        return any(name in group for group in self._groups)

    def covers(self, tool_type: str) -> bool:
        """Whether a whole type is meant."""
        return ANY_TYPE in self or bool(tool_type and TYPE_PREFIX + tool_type in self)

    def removed_from(self, names: Iterable[str]) -> Iterable[str]:
        for group in self._groups:
            names = [one for one in names if one not in group]
        return names

    def among(self, names: Mapping[str, None]) -> list[str]:
        """Those of the names that are meant, found from the smaller side."""
        if sum(map(len, self._groups)) < len(names):
            return [one for one in dict.fromkeys(chain(*self._groups)) if one in names]
        return [one for one in names if one in self]


def find_compatible(
    name: str,
    tools: CompatibilityIndex | Iterable[ToolSpec],
    target_type: str | None = None,
    *,
    strict: bool = False,
) -> list[ToolSpec]:
    """Every tool that stacks with ``name``. Keep an index where you ask more than once."""
    index = tools if isinstance(tools, CompatibilityIndex) else CompatibilityIndex(tools)
    return index.find(name, target_type=target_type, strict=strict)

"""The stacking rules as a filter, so that a store finds compatible tools by its indexes instead of judging pairs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toolcrib.core.query import Filter, parse
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import EVERY_TOOL, Condition, rules, spell_out

_MOST_VALUES = 1000
"""More would make one ``$in`` longer than the query language takes."""


def compatible_filter(spec: ToolSpec, target_type: str | None = None, *, strict: bool = False) -> Filter:
    """What the tools that stack with ``spec`` match."""
    wanted: list[dict[str, Any]] | None = None  # all of these hold; None: no tool is left
    for _, compatible, conditions in reversed(list(rules(spec, strict=strict))):
        spelled = [one for condition in conditions for one in spell_out(condition)]
        spoken_of = [part for condition in spelled for part in _parts(condition)]
        if EVERY_TOOL in spelled:
            wanted = [] if compatible else None
        elif compatible and wanted != []:
            wanted = [{"$or": spoken_of if wanted is None else [*spoken_of, {"$and": wanted}]}]
        elif not compatible and wanted is not None:
            wanted = [{"$nor": spoken_of}, *wanted]
    others = [{"name": {"$ne": spec.name}}, *([] if target_type is None else [{"tool_type": target_type}])]
    return parse({"$and": others + ([{"$nor": [{}]}] if wanted is None else wanted)})


def _parts(condition: Condition) -> Iterator[dict[str, Any]]:
    field, values = condition
    if values is None:
        yield {field: {"$not": {"$size": 0}}}
        return
    for start in range(0, len(values), _MOST_VALUES):
        yield {field: {"$in": list(values[start : start + _MOST_VALUES])}}

"""The Lego rules as a filter, so that the store finds a tool's partners by its indexes instead of judging pairs.

It says what :func:`toolcrib.core.stacking.judge` says; a test with generated tools holds the two together.
"""

from __future__ import annotations

from typing import Any

from toolcrib.core.query import Filter, parse
from toolcrib.core.spec import ToolSpec
from toolcrib.core.stacking import ANY_TYPE, TYPE_PREFIX

_MOST_NAMES = 1000


def partners_of(spec: ToolSpec, target_type: str | None = None, *, strict: bool = False) -> Filter:
    """The filter that the tools which stack with ``spec`` match."""
    refused = _mentioned(spec, spec.incompatible_with, "incompatible_with")
    accepted = _mentioned(spec, spec.compatibilities, "compatibilities")
    parts: list[dict[str, Any]] = [{"name": {"$ne": spec.name}}, {"$nor": refused}]
    if target_type is not None:
        parts.append({"tool_type": target_type})
    implied = [{"tool_type": {"$ne": spec.tool_type}}] if spec.tool_type else []
    if strict and spec.compatibilities:
        parts.append({"$or": accepted})  # it lists what it accepts and accepts nothing else
    elif strict:
        parts.append({"$or": [*accepted, {"$and": [*implied, {"compatibilities": {"$size": 0}}]}]})
    elif implied:
        parts.append({"$or": [*accepted, *implied]})
    return parse({"$and": parts})


def _mentioned(spec: ToolSpec, entries: tuple[str, ...], field: str) -> list[dict[str, Any]]:
    """Tools that ``spec`` mentions in ``entries``, and tools that mention it in ``field``."""
    itself = [spec.name, ANY_TYPE, *([TYPE_PREFIX + spec.tool_type] if spec.tool_type else [])]
    if ANY_TYPE in entries:
        return [{}]
    types = [entry.removeprefix(TYPE_PREFIX) for entry in entries if entry.startswith(TYPE_PREFIX)]
    clauses: list[dict[str, Any]] = [{field: {"$in": itself}}]
    for path, values in (("name", list(entries)), ("tool_type", [name for name in types if name])):
        starts = range(0, len(values), _MOST_NAMES)
        clauses.extend({path: {"$in": values[start : start + _MOST_NAMES]}} for start in starts)
    return clauses

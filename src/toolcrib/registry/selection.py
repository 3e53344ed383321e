"""Choosing among tools: filters, text search, and what a model can use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from toolcrib.core.errors import InvalidQueryError, did_you_mean
from toolcrib.core.query.patterns import match_from_start
from toolcrib.core.ranking import Search
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool

Test = Callable[[Any], bool]
"""Of a spec, or of what has the field of one that it asks for."""


def compile_filter(criteria: Mapping[str, Any]) -> Test:
    """A test that holds if every criterion that is not None does."""
    tests = [criterion(field, wanted) for field, wanted in criteria.items() if wanted is not None]
    return lambda spec: all(test(spec) for test in tests)


def criterion(field: str, wanted: Any) -> Test:
    """A test of one field.

    ``name_pattern`` is a regular expression matched from the start of the name. A field of several values (``tags``)
    must hold all that are given; any other field, also one of ``metadata``, must be equal.
    """
    if field == "name_pattern":
        try:
            matches = match_from_start(wanted)
        except InvalidQueryError as error:
            raise InvalidQueryError(f"name_pattern is wrong: {error}") from None
        return lambda spec: matches(spec.name)
    if field not in ToolSpec.model_fields:
        return lambda spec: field in spec.metadata and bool(spec.metadata[field] == wanted)
    if _holds_many(field):
        many = isinstance(wanted, Iterable) and not isinstance(wanted, str)
        everything = tuple(wanted) if many else (wanted,)
        return lambda spec: all(one in getattr(spec, field) for one in everything)
    return lambda spec: bool(getattr(spec, field) == wanted)


def _holds_many(field: str) -> bool:
    return isinstance(ToolSpec.model_fields[field].default, tuple)


def check_criteria(criteria: Mapping[str, Any], tools: Iterable[Tool]) -> None:
    """InvalidQueryError for a field that neither a spec nor any tool's metadata has: it is a slip of the pen."""
    unknown = [name for name in criteria if name != "name_pattern" and name not in ToolSpec.model_fields]
    for name in unknown:
        if not any(name in tool.spec.metadata for tool in tools):
            raise InvalidQueryError(f"tools have no field {name!r}{did_you_mean(name, ToolSpec.model_fields)}")


def search(tools: Iterable[Tool], text: str, limit: int | None, any_word: bool = False) -> list[Tool]:
    """The tools in which every word of ``text`` occurs, or any, the best first; all of them for no words."""
    wanted = Search.of(text)
    if not wanted.terms:
        return list(tools)[:limit]
    by_name = {tool.name: tool for tool in tools}
    held = {name: wanted.holds(tool.spec.index_words) for name, tool in by_name.items()}
    counts = [sum(map(bool, strengths)) for strengths in zip(*held.values(), strict=True)]
    enough = any if any_word else all
    ranked = wanted.rank({name: strengths for name, strengths in held.items() if enough(strengths)}, counts)
    return [by_name[found.name] for found in ranked[:limit]]


def why_not(spec: ToolSpec, capabilities: Collection[str]) -> str | None:
    """Why a model with these capabilities cannot use the tool; None if it can."""
    missing = [need for need in spec.required_capabilities if need not in capabilities]
    return f"needs {', '.join(missing)}, which the model lacks" if missing else None


def not_at_best(spec: ToolSpec, capabilities: Collection[str]) -> str | None:
    """Why the tool works with such a model, but not at its best."""
    missing = [want for want in spec.optimal_capabilities if want not in capabilities]
    return f"works best with {', '.join(missing)}, which the model lacks" if missing else None

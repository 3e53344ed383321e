"""Several schemas as one: what holds if all of them do, and whether no value fits two of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from toolcrib.core.json import same
from toolcrib.core.schema import JsonSchema
from toolcrib.core.schema_facts import ANNOTATIONS, followed, listed_values, named_types, without
from toolcrib.formats.schemas import properties_of, required_of

_HIGHEST = frozenset({"minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"})
_LOWEST = frozenset({"maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties"})
_LISTED = ("enum", "const")
_MOST_COMPARED = 100
_KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")


class ContradictionError(Exception):
    """Two schemas say of one keyword what no single schema can."""

    def __init__(self, keyword: str) -> None:
        super().__init__(keyword)
        self.keyword = keyword


def joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> JsonSchema:
    """The schema of the values that fit both; of two annotations the first counts."""
    made: JsonSchema = dict(one)
    if _closes_out(one, other) or _closes_out(other, one):
        raise ContradictionError("additionalProperties")
    for keyword, value in other.items():
        if keyword in _LISTED and (values := listed_values(made)) is not None:
            common = _common(values, [value] if keyword == "const" else value)
            if not common:
                raise ContradictionError(keyword)
            made = without(made, *_LISTED) | {"enum": common}
        elif keyword not in made:
            made[keyword] = value
        elif keyword == "properties":
            made[keyword] = _both(made[keyword], value)
        elif keyword == "required":
            made[keyword] = list(dict.fromkeys([*made[keyword], *value]))
        elif keyword == "type":
            made[keyword] = _common_type(made, other)
        elif keyword in _HIGHEST | _LOWEST and _are_numbers(made[keyword], value):
            made[keyword] = (max if keyword in _HIGHEST else min)(made[keyword], value)
        elif keyword not in ANNOTATIONS and not same(made[keyword], value):
            raise ContradictionError(keyword)
    return made


def _closes_out(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether ``one`` says something of the properties that only ``other`` names."""
    closed = one.get("additionalProperties", True) not in (True, {}) or "patternProperties" in one
    return closed and bool(properties_of(other).keys() - properties_of(one).keys())


def _both(one: Mapping[str, Any], other: Mapping[str, Any]) -> JsonSchema:
    return {
        **one,
        **{
            name: {"allOf": [one[name], schema]} if name in one and not same(one[name], schema) else schema
            for name, schema in other.items()
        },
    }


def _common_type(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | list[str]:
    first, second = _types(one), _types(other)
    both = [kind for kind in _KINDS if kind in first & second]
    if "number" in both:
        both.remove("integer")
    if not both:
        raise ContradictionError("type")
    return both[0] if len(both) == 1 else both


def _common(values: list[Any], others: list[Any]) -> list[Any]:
    texts = {json.dumps(other, sort_keys=True) for other in others}
    return [value for value in values if json.dumps(value, sort_keys=True) in texts]


def _types(schema: Mapping[str, Any]) -> set[str]:
    kinds = named_types(schema) or set(_KINDS)
    return kinds | {"integer"} if "number" in kinds else kinds


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(value, int | float) and not isinstance(value, bool) for value in values)


def apart(branches: Sequence[Any], root: Mapping[str, Any]) -> bool:
    """Whether it can be seen that no value fits two of the alternatives, so that any of them is one of them.

    Of very many it is not looked for: each is compared with each.
    """
    if len(branches) > _MOST_COMPARED:
        return False
    followed_all = [followed(branch, root) for branch in branches]
    return all(_apart(one, other) for one, other in combinations(followed_all, 2))


def _apart(one: Any, other: Any) -> bool:
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        return one is False or other is False
    if not _types(one) & _types(other):
        return True
    first, second = listed_values(one), listed_values(other)
    if first is not None and second is not None:
        return not any(same(a, b) for a in first for b in second)
    mine, theirs = properties_of(one), properties_of(other)
    if not _types(one) & _types(other) <= {"object"}:
        return False
    common = required_of(one) & required_of(other) & mine.keys() & theirs.keys()
    return any(_apart(mine[name], theirs[name]) for name in sorted(common))

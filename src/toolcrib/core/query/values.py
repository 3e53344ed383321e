"""How MongoDB compares JSON values: by kind first, then within the kind.

Integers and floats are one kind and compare by value; booleans are another; objects are ordered lists of pairs, so
the order of their keys counts. Strings compare by code point, which is also the order of their UTF-8 bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from toolcrib.core.query.budget import compared


class Missing:
    """What a path finds if there is nothing."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING: Final = Missing()

_KIND = {Missing: 0, type(None): 5, int: 10, float: 10, str: 15, dict: 20, list: 25, bool: 40}

INT32 = 2**31
INT64 = 2**63


def kind(value: Any) -> int:
    """The bracket within which values compare; the order of brackets orders values of different kinds."""
    return _KIND[type(value)]


def same(left: Any, right: Any) -> bool:
    """Whether the values are equal: ``1 == 1.0``, ``True != 1``, the order of keys counts."""
    if type(left) is str or type(right) is str:
        return bool(left == right)
    return kind(left) == kind(right) and compare(left, right) == 0


def compare(left: Any, right: Any) -> int:
    """Negative, zero or positive, for any two JSON values."""
    kinds = kind(left), kind(right)
    if kinds[0] != kinds[1]:
        return kinds[0] - kinds[1]
    if isinstance(left, dict | list):
        compared(min(len(left), len(right)))
    if isinstance(left, dict):
        return _compare_pairs(left.items(), right.items())
    if isinstance(left, list):
        return _compare_pairs((("", item) for item in left), (("", item) for item in right))
    if left is None or left is MISSING:
        return 0
    return int(left > right) - int(left < right)


def _compare_pairs(left: Iterable[tuple[str, Any]], right: Iterable[tuple[str, Any]]) -> int:
    lefts, rights = iter(left), iter(right)
    for left_key, left_value in lefts:
        pair = next(rights, None)
        if pair is None:
            return 1
        right_key, right_value = pair
        verdict = kind(left_value) - kind(right_value)
        verdict = verdict or (left_key > right_key) - (left_key < right_key)
        verdict = verdict or compare(left_value, right_value)
        if verdict:
            return verdict
    return 0 if next(rights, None) is None else -1


_TYPE_NAMES: dict[type, tuple[str, ...]] = {
    bool: ("bool",),
    float: ("double", "number"),
    str: ("string",),
    dict: ("object",),
    list: ("array",),
    type(None): ("null",),
    Missing: (),
}


def type_names(value: Any) -> tuple[str, ...]:
    """The names by which ``$type`` knows the value."""
    if type(value) is not int:
        return _TYPE_NAMES[type(value)]
    if -INT32 <= value < INT32:
        return ("int", "number")
    return ("long", "number") if -INT64 <= value < INT64 else ("decimal", "number")

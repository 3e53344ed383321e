"""What was expected beside what came, as JSON: the differences, each with its place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, TypeGuard

from toolcrib.core.errors import ToolValidationError, shown
from toolcrib.core.json import as_json, same

_MOST_TOLD = 20
_MOST_ALIKE = 40
"""Characters that two texts have in common at their beginning, when both are told."""
_MISSING = object()
_SCALARS = (str, int, float, bool, type(None))


class _Any:
    """Equal to everything: what stands in an expected value where any value may come."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 0

    def __repr__(self) -> str:
        return "ANY"


ANY = _Any()


def differences(expected: Any, came: Any, tolerance: float = 0.0) -> list[str]:
    """A sentence for each place where ``came`` is not what is expected; none if it is.

    Values are compared as JSON: ``True`` is not 1, 1.0 is, and a date is its text. An expected value may be ``ANY``, a
    type, a function that says whether a value will do, or an object with an ``==`` of its own such as
    ``pytest.approx``. Numbers may be off by ``tolerance``, of them or of 1, whichever is more.
    """
    return list(islice(_differences(expected, came, tolerance, ""), _MOST_TOLD))


def tolerance_of(text: str) -> float:
    """A tolerance that somebody has written down; ToolValidationError if it is none."""
    try:
        tolerance = float(text)
    except ValueError:
        tolerance = -1.0
    if not 0 <= tolerance < math.inf:
        raise ToolValidationError(f"a tolerance is a number from 0, such as 1e-9, not {text!r:.60}")
    return tolerance


def _differences(expected: Any, came: Any, tolerance: float, place: str) -> Iterator[str]:
    if isinstance(expected, Mapping) and isinstance(came, Mapping):
        for key in [*expected, *(key for key in came if key not in expected)]:
            inner = f"{place}.{key}" if place else str(key)
            yield from _differences(expected.get(key, _MISSING), came.get(key, _MISSING), tolerance, inner)
    elif isinstance(expected, list | tuple) and isinstance(came, list | tuple):
        for number in range(max(len(expected), len(came))):
            one, other = (values[number] if number < len(values) else _MISSING for values in (expected, came))
            yield from _differences(one, other, tolerance, f"{place}[{number}]")
    elif expected is _MISSING:
        yield f"{_at(place)}{shown(came)} came, and nothing is expected"
    elif came is _MISSING:
        yield f"{_at(place)}{shown(expected)} is expected, and nothing came"
    elif not _is_as(expected, came, tolerance):
        yield f"{_at(place)}{_unlike(expected, came)}"


def _unlike(expected: Any, came: Any) -> str:
    """Both, and of long texts what they have from shortly before they part."""
    if isinstance(expected, str) and isinstance(came, str):
        pairs = enumerate(zip(expected, came, strict=False))
        alike = next((place for place, (one, other) in pairs if one != other), min(len(expected), len(came)))
        if alike > _MOST_ALIKE:
            start = alike - _MOST_ALIKE // 2
            return f"from character {start} on {shown(expected[start:])} is expected, {shown(came[start:])} came"
    return f"{shown(expected)} is expected, {shown(came)} came"


def _at(place: str) -> str:
    return f"{place}: " if place else ""


def _is_as(expected: Any, came: Any, tolerance: float) -> bool:
    if isinstance(expected, type):
        return isinstance(came, expected)
    if callable(expected):
        try:
            return bool(expected(came))
        except Exception:  # noqa: BLE001 - it was made for other values: this one will not do
            return False
    if isinstance(expected, _SCALARS) and isinstance(came, _SCALARS):
        if _is_number(expected) and _is_number(came):
            is_near = bool(tolerance) and math.isclose(expected, came, rel_tol=tolerance, abs_tol=tolerance)
            return expected == came or is_near
        return same(expected, came)
    return bool(expected == came) or same(as_json(expected), came)


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)

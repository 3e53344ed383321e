"""Copies of JSON that share nothing with a spec."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


def copied(value: Any) -> Any:
    """A copy of a JSON value that can be changed without changing the spec it came from."""
    if type(value) is dict:
        entries: Iterable[tuple[Any, Any]] = value.items()
    elif type(value) is list:
        entries = enumerate(value)
    else:
        return value
    copy = value.copy()
    for key, item in entries:
        if type(item) in _CONTAINERS:
            copy[key] = copied(item)
    return copy


_CONTAINERS = frozenset({dict, list})

"""Copies of JSON that share nothing with a spec, and results of any kind as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from toolcrib.core.json import as_json, encodable


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


def as_text(value: Any) -> str:
    """``value`` as a model reads it: text stays text, everything else is JSON."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else encodable(value)
    if kind is int:
        return str(value)
    if isinstance(value, str):
        return encodable(value)
    return json.dumps(as_json(value), ensure_ascii=False)

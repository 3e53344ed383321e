"""Values as JSON: copies that share nothing with a spec, and results of any kind as text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from pydantic_core import to_jsonable_python

from toolcrib.core.json import is_unicode


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


def as_json(value: Any) -> Any:
    """``value`` as a JSON value, whatever a tool returned: the rest of the answer is worth more than one odd part."""
    try:
        jsonable = to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings", fallback=repr)
        text = json.dumps(jsonable, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return _encodable(repr(value))
    return jsonable if is_unicode(text) else json.loads(_encodable(text))


def as_text(value: Any) -> str:
    """``value`` as a model reads it: text stays text, everything else is JSON."""
    if isinstance(value, str):
        return _encodable(value)
    return json.dumps(as_json(value), ensure_ascii=False)


def _encodable(text: str) -> str:
    """Text that can be sent: half of a surrogate pair, which no encoding has, becomes a question mark."""
    return text.encode(errors="replace").decode()

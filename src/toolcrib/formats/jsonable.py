"""Values as JSON: copies that share nothing with a spec, and results of any kind as text."""

from __future__ import annotations

import json
from typing import Any

from pydantic_core import to_jsonable_python


def copied(value: Any) -> Any:
    """A copy of a JSON value that can be changed without changing the spec it came from."""
    if type(value) is dict:
        return {key: copied(item) if type(item) in _CONTAINERS else item for key, item in value.items()}
    if type(value) is list:
        return [copied(item) if type(item) in _CONTAINERS else item for item in value]
    return value


_CONTAINERS = frozenset({dict, list})


def as_json(value: Any) -> Any:
    """``value`` as a JSON value, whatever a tool returned: the rest of the answer is worth more than one odd part."""
    try:
        jsonable = to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="strings", fallback=repr)
        text = json.dumps(jsonable, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return _encodable(repr(value))
    return jsonable if _is_encodable(text) else json.loads(_encodable(text))


def as_text(value: Any) -> str:
    """``value`` as a model reads it: text stays text, everything else is JSON."""
    if isinstance(value, str):
        return _encodable(value)
    return json.dumps(as_json(value), ensure_ascii=False)


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _encodable(text: str) -> str:
    """Text that can be sent: half of a surrogate pair, which no encoding has, becomes a question mark."""
    return text.encode(errors="replace").decode()

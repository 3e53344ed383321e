"""What counts as JSON. A record that holds anything else could not be kept, sent or compared."""

from __future__ import annotations

import math
from typing import Any

MAX_DEPTH = 100


def check_json(value: Any, depth: int = MAX_DEPTH) -> Any:
    """``value`` unchanged; ValueError where it is not JSON, nested too deeply, or text that no encoding can carry."""
    if isinstance(value, str):
        if not value.isascii():
            _check_text(value)
        return value
    if value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a JSON number")
        return value
    if depth == 0:
        raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    if isinstance(value, list | tuple):
        for item in value:
            check_json(item, depth - 1)
        return value
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                raise ValueError(f"the key {key!r:.60} is not text")
            check_json(key)
            check_json(item, depth - 1)
        return value
    raise ValueError(f"{value!r:.60} is a {type(value).__name__}, which is not JSON")


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{text!r:.60} holds half of a surrogate pair") from None

"""Values as the environment and files write them, turned into what a setting holds."""

from __future__ import annotations

from typing import Any


def _as_text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"must be text, not {value!r}")
    return value


def _as_list(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if not isinstance(value, list | tuple) or not all(isinstance(part, str) for part in value):
        raise TypeError("must be a list of texts, in a variable separated by commas")
    return tuple(value)


def _as_flag(value: Any) -> bool:
    words = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in words:
        raise ValueError(f"must be true or false, not {value!r}")
    return words[value.lower()]


def _as_int(value: Any) -> int:
    try:
        number = int(value) if isinstance(value, str) else value
    except ValueError:
        number = None
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        raise ValueError(f"must be a whole number, not {value!r}")
    return number


def _as_number(value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = -1.0
    if isinstance(value, bool) or not 0 <= number < float("inf"):
        raise ValueError(f"must be a number that is not negative, not {value!r}")
    return number


CONVERTERS: dict[str, Any] = {
    "str": _as_text,
    "int": _as_int,
    "float": _as_number,
    "bool": _as_flag,
    "tuple[str, ...]": _as_list,
}

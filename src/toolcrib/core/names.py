"""The rules for names."""

from __future__ import annotations

import re

from toolcrib.core.errors import InvalidNameError, shown

MAX_LENGTH = 128

NAME_PATTERN = r"[A-Za-z0-9_][A-Za-z0-9_.\-]{0,127}"
_NAME = re.compile(NAME_PATTERN)
_KEBAB = re.compile(r"[a-z][a-z0-9-]*[a-z0-9]")


def check_name(name: object) -> str:
    """``name`` unchanged, or InvalidNameError."""
    if isinstance(name, str) and _NAME.fullmatch(name):
        return name
    raise InvalidNameError(
        f"{shown(name)} is not a tool name; use 1 to {MAX_LENGTH} letters, digits, '_', '-' or '.', "
        "starting with a letter, a digit or '_'"
    )


def check_kebab_name(name: object) -> str:
    """``name`` unchanged if it is kebab-case of 2 to 50 characters, or InvalidNameError."""
    if isinstance(name, str) and 2 <= len(name) <= 50 and _KEBAB.fullmatch(name):
        return name
    raise InvalidNameError(
        f"{shown(name)} is not a kebab-case tool name; use 2 to 50 lower-case letters, digits and '-', "
        "starting with a letter, such as 'read-file'"
    )

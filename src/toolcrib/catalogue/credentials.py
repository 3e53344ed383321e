"""Credentials in documents: sealed one by one in the store, masked in everything that leaves it.

The names stay readable, so that a reader sees which credentials a tool has; the values are sealed with the tool's
and the credential's name, so that none can be moved to another place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.errors import MissingConfigError, ToolValidationError
from toolcrib.core.json import MASK
from toolcrib.ports import Seal


def masked(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the document that shows the names of its credentials and nothing of their values."""
    return {**document, "credentials": dict.fromkeys(document.get("credentials", ()), MASK)}


def sealed(name: str, credentials: Mapping[str, Any], kept: Mapping[str, str], seal: Seal | None) -> dict[str, str]:
    """What to store for ``credentials``. A masked value means the one that is ``kept`` already."""
    return {key: _sealed_one(name, key, value, kept, seal) for key, value in credentials.items()}


def _sealed_one(name: str, key: str, value: Any, kept: Mapping[str, str], seal: Seal | None) -> str:
    if value == MASK:
        if key in kept:
            return kept[key]
        raise ToolValidationError(
            f"the credential {key!r} of {name!r} is a mask, not a value, and none is stored for it"
        )
    return _needed(seal, name).close(value, _context(name, key))


def opened(name: str, stored: Mapping[str, str], seal: Seal | None) -> dict[str, Any]:
    if not stored:
        return {}
    key_holder = _needed(seal, name)
    return {key: key_holder.open(text, _context(name, key)) for key, text in stored.items()}


def _needed(seal: Seal | None, name: str) -> Seal:
    if seal is None:
        raise MissingConfigError(f"{name!r} has credentials, and there is no key to seal them; set TOOLCRIB_SEAL_KEYS")
    return seal


def _context(name: str, key: str) -> str:
    return f"{name}\0{key}"

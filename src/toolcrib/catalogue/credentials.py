"""Credentials in documents: sealed one by one in the store, masked in everything that leaves it.

The names stay readable, so that a reader sees which credentials a tool has. A value is sealed with the tool's name,
its own, and the destination that it was given for: it opens there and nowhere else. Whoever sends the tool elsewhere
gives the credentials again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from toolcrib.catalogue.destinations import Destination, destination_of, kept_destination
from toolcrib.core.errors import (
    MissingConfigError,
    MissingDependencyError,
    SettingsError,
    StoreError,
    ToolValidationError,
)
from toolcrib.core.json import MASK
from toolcrib.core.spec import ToolSpec
from toolcrib.ports import Seal

NOTHING: Mapping[str, Any] = {"credentials": {}, "binding": {}}
"""What is kept of a tool that is not there yet."""


def masked(document: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of the document that shows the names of its credentials and nothing of their values."""
    return {**document, "credentials": dict.fromkeys(document.get("credentials", ()), MASK)}


def carried(spec: ToolSpec, kept: Mapping[str, Any]) -> ToolSpec:
    """``spec`` with the credentials of the document that is ``kept``, or with none if they were for somebody else."""
    stays = destination_of(spec.binding) == kept_destination(kept)
    credentials = dict.fromkeys(kept["credentials"], MASK) if stays else {}
    return spec if spec.credentials == credentials else spec.with_changes(credentials=credentials)


def emptied(spec: ToolSpec, kept: Mapping[str, Any]) -> tuple[str, ...]:
    """The credentials of the document that is ``kept`` which the spec is without."""
    return tuple(key for key in kept["credentials"] if key not in spec.credentials)


def sealed(spec: ToolSpec, kept: Mapping[str, Any], seal: Seal | None) -> dict[str, str]:
    """What to store for the spec's credentials.

    A masked value means the one in the document that is ``kept``. ToolValidationError if there is none, or if it was
    given for another destination.
    """
    to = destination_of(spec.binding)
    return {key: _sealed_one(spec.name, key, value, to, kept, seal) for key, value in spec.credentials.items()}


def resealed(document: Mapping[str, Any], seal: Seal | None) -> dict[str, str]:
    """The document's credentials, sealed anew for where they go now."""
    name, to = document["name"], kept_destination(document)
    return {
        key: _needed(seal, name).close(value, _context(name, key, to)) for key, value in opened(document, seal).items()
    }


def opened(document: Mapping[str, Any], seal: Seal | None) -> dict[str, Any]:
    """The credentials of a stored document in clear, for what its binding leads to."""
    name, stored = document["name"], document["credentials"]
    if not stored:
        return {}
    holder, to = _needed(seal, name), kept_destination(document)
    return {key: _opened_one(holder, text, name, key, to) for key, text in stored.items()}


def _sealed_one(name: str, key: str, value: Any, to: Destination, kept: Mapping[str, Any], seal: Seal | None) -> str:
    if value != MASK:
        return _needed(seal, name).close(value, _context(name, key, to))
    if key not in kept["credentials"]:
        raise ToolValidationError(
            f"the credential {key!r} of {name!r} is a mask, not a value, and none is stored for it"
        )
    if to != (given_for := kept_destination(kept)):
        raise ToolValidationError(
            f"the credential {key!r} of {name!r} was given for {given_for} and does not go to {to}; "
            "give its value again, or leave it out"
        )
    return _renewed(seal, kept["credentials"][key], name, key, to)


def _opened_one(seal: Seal, text: str, name: str, key: str, to: Destination) -> Any:
    try:
        return seal.open(text, _context(name, key, to))
    except StoreError:
        return seal.open(text, _context_before(name, key))


def _renewed(seal: Seal | None, text: str, name: str, key: str, to: Destination) -> str:
    """The sealed text of a value that stays, or what it becomes if the first release sealed it.

    A text that we cannot open is kept: it opens no more than before, and the rest of the tool can be changed.
    """
    if seal is None:
        return text
    try:
        seal.open(text, _context(name, key, to))
    except StoreError:
        try:
            return seal.close(seal.open(text, _context_before(name, key)), _context(name, key, to))
        except StoreError:
            return text
    except (SettingsError, MissingDependencyError):
        return text
    return text


def _needed(seal: Seal | None, name: str) -> Seal:
    if seal is None:
        raise MissingConfigError(f"{name!r} has credentials, and there is no key to seal them; set TOOLCRIB_SEAL_KEYS")
    return seal


def _context(name: str, key: str, to: Destination) -> str:
    return f"{name}\0{json.dumps([key, to.way, to.target])}"


def _context_before(name: str, key: str) -> str:
    """What the first release sealed with. Such a value opens where it stands, and only the store's owner can put it
    elsewhere: every write compares the destinations before it keeps a sealed text.
    """
    return f"{name}\0{key}"

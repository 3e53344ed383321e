"""What every store asks of a change before it writes it: the rules are here once, the backends only keep."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from typing import Any

from pydantic_core import from_json

from toolcrib.core.errors import (
    ConflictError,
    InvalidQueryError,
    ToolExistsError,
    ToolNotFoundError,
    ToolValidationError,
)
from toolcrib.core.json import MAX_RECORD_DEPTH, check_json, is_plain, is_unicode
from toolcrib.core.spec import same_definition
from toolcrib.ports import ANY, Change, Record

MAX_DOCUMENT_BYTES = 8_000_000
"""MongoDB's documents end at 16 MB; half of that leaves room for what a backend adds."""

TEXT_FIELDS = ("name", "description", "tool_type", "category", "execution_mode", "policy_rule_uri")
LABEL_FIELDS = ("tags", "capabilities")
"""Lists of texts that stores keep an index of."""


def new_etag() -> str:
    return secrets.token_hex(12)


def check_expected(change: Change, present: str | None, *, past: bool = False) -> None:
    """Raise unless the etag that is there, or None, is what the change expects; ``past``: something was once."""
    if change.purge and past and present is None and change.expected in (ANY, None):
        return
    if change.expected is ANY:
        if change.document is None and present is None:
            raise ToolNotFoundError(change.name)
    elif change.expected is None:
        if present is not None:
            raise ToolExistsError(change.name)
        if change.document is None:
            raise ToolNotFoundError(change.name)
    elif present is None:
        raise ToolNotFoundError(change.name)
    elif present != change.expected:
        raise ConflictError(f"{change.name!r} was changed by somebody else; read it again and repeat the change")


def owner_after(change: Change, owner: str) -> str:
    """Whose the tool is after the change, if it was ``owner``'s before; empty if it was not there."""
    if change.document is None:
        return ""
    return owner if change.owner is None else change.owner


def definition_after(document: Mapping[str, Any], version: int, past: Record | None) -> int:
    """The version that the definition dates from, once ``document`` is written as ``version`` over ``past``.

    What was written before anybody kept that dates from itself.
    """
    if past is not None and not past.deleted and same_definition(past.document, document):
        return past.definition or past.version
    return version


def check_after(name: str | None) -> None:
    """Raise unless a query can go on after ``name``."""
    if name is not None and not is_unicode(name):
        raise InvalidQueryError(f"{name!r} is not a name to go on from")


def kept_document(change: Change) -> tuple[str, dict[str, Any]]:
    """The change's document as JSON text and as a copy of its own; nothing for a deletion.

    ToolValidationError if some backend could not keep it faithfully.
    """
    document = change.document
    if document is None:
        return "{}", {}
    try:
        text, copy = _plain(document) or _checked(document)
        _check_fields(change.name, document)
    except ValueError as error:
        raise ToolValidationError(f"tool {change.name!r} cannot be stored: {error}") from None
    if len(text) > MAX_DOCUMENT_BYTES // 4 and len(text.encode()) > MAX_DOCUMENT_BYTES:
        raise ToolValidationError(
            f"tool {change.name!r} cannot be stored: it is larger than {MAX_DOCUMENT_BYTES} bytes"
        )
    return text, copy


def _plain(document: dict[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """A document that is JSON beyond doubt; None if each value must be looked at, which is slow."""
    try:
        text = _text(document)
        if not is_plain(text):
            return None
        copy = from_json(text.encode())
    except (TypeError, ValueError, RecursionError):
        return None
    return (text, copy) if copy == document else None


def _checked(document: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    check_json(document, MAX_RECORD_DEPTH)
    text = _text(document)
    return text, json.loads(text)


def _text(document: dict[str, Any]) -> str:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def _check_fields(name: str, document: dict[str, Any]) -> None:
    if document.get("name") != name:
        raise ValueError(f"its document is called {document.get('name')!r}")
    for field in TEXT_FIELDS:
        if not isinstance(document.get(field, ""), str):
            raise ValueError(f"field {field!r} is not text")
    for field in LABEL_FIELDS:
        values = document.get(field, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            raise ValueError(f"field {field!r} is not a list of texts")

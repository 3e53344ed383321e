"""A spec's fields, as the records of the dialects hold them."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any, TypeVar

from toolcrib.core.spec import ToolSpec

Words = TypeVar("Words", bound=Enum)


def fields_of(spec: ToolSpec, names: Iterable[str]) -> dict[str, Any]:
    """The fields of these names; lists in place of tuples, which a caller may change."""
    given = ((name, getattr(spec, name)) for name in names)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in given}


def as_word(words: type[Words], text: str) -> Words | str:
    """The dialect's word for a text; a text that is none of its words stays as it is."""
    return next((word for word in words if word.value == text), text)

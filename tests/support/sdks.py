"""What the providers' own SDKs say of the messages that they are given."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import TypeAdapter


def require_taken(kind: Any, message: Any) -> None:
    """Raises a ValidationError unless ``message`` is of ``kind``, one of an SDK's types of what is sent."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)  # it must live as long as what it checks is gone through
    _look_through(adapter.validate_python(message))


def _look_through(value: Any) -> None:
    """What a type calls an Iterable is only checked when it is gone through."""
    if isinstance(value, Mapping):
        value = value.values()
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        for each in value:
            _look_through(each)

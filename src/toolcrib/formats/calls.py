"""A model's call of a tool, whatever shape it came in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from toolcrib.core.errors import InvalidArgumentsError


class Call(NamedTuple):
    """``name`` is the exported name; :meth:`Handover.resolve` leads from it to the tool."""

    name: str
    arguments: dict[str, Any]
    call_id: str


def text_of(source: Mapping[str, Any], key: str, provider: str) -> str:
    value = source.get(key)
    if isinstance(value, str) and value:
        return value
    raise InvalidArgumentsError(f"the {provider} tool call has no {key!r}; it must be text, not {value!r:.60}")


def call_arguments(arguments: Any, name: str) -> dict[str, Any]:
    """The arguments as a dict of their own; no arguments are an empty one."""
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):
        return dict(arguments)
    raise InvalidArgumentsError(
        f"the arguments of {name!r} must be an object of names and values, not {arguments!r:.60}", tool=name
    )

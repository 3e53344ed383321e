"""How each provider's models speak: one file each, beside which stands what Toolcrib reads and writes in formats."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, cast

from toolcrib.core.errors import ExportError
from toolcrib.testing.script import Turn

Answer = tuple[str, Any]
"""The id of the call that is answered, and the answer."""


class Shape(Protocol):
    """What a provider's file offers."""

    FORMAT: str
    """The format in which Toolcrib reads its calls."""
    ANSWERED_NEXT: bool
    """Whether the answers must come before anything else is said."""

    def call_id(self, number: int) -> str:
        """An id as its models draw them."""
        ...

    def message(self, turn: Turn) -> Any:
        """What is appended to the conversation, as JSON values."""
        ...

    def response(self, turn: Turn) -> dict[str, Any]:
        """The body of its API's answer."""
        ...

    def sdk(self, turn: Turn) -> Any:
        """The message, made by the provider's own SDK."""
        ...

    def events(self, turn: Turn) -> Iterable[dict[str, Any]]:
        """The same as a stream, arguments in pieces where the provider sends pieces."""
        ...

    def answers(self, message: Mapping[str, Any]) -> Iterator[Answer]:
        """The answers to calls in a message of the conversation."""
        ...


_FILES = {
    "openai": "openai",
    "openrouter": "openai",
    "openai-responses": "openai_responses",
    "anthropic": "anthropic",
    "gemini": "gemini",
    "mistral": "mistral",
}

SHAPES: tuple[str, ...] = tuple(_FILES)
"""The providers whose models can be scripted."""


def shape_named(name: str) -> Shape:
    if name not in _FILES:
        raise ExportError(f"no model speaks {name!r}; there are {', '.join(map(repr, SHAPES))}")
    return cast(Shape, importlib.import_module(f"{__name__}.{_FILES[name]}"))


def in_pieces(text: str) -> tuple[str, str]:
    """A text as a stream brings it, cut where nobody would."""
    return text[:4], text[4:]

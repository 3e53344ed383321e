"""The words of a tool, field by field, and how much each field counts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from typing import Any

WEIGHTS: dict[str, float] = {
    "name": 4.0,
    "display_name": 4.0,
    "tags": 3.0,
    "capabilities": 3.0,
    "category": 2.0,
    "tool_type": 2.0,
    "description": 2.0,
    "parameters": 1.0,
    "usage_notes": 1.0,
    "manual": 0.5,
}
"""The fields that are searched. Credentials are not among them."""

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")

_LITTLE = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it",
    "me", "my", "of", "on", "or", "that", "the", "this", "to", "want", "what", "which", "with", "you",
})  # fmt: skip


def words(text: str) -> list[str]:
    """The words of a text in lower case, without accents or a plural's s; identifiers come apart."""
    return [singular(word) for word in raw_words(text)]


def raw_words(text: str) -> list[str]:
    """As :func:`words`, plurals as they stand."""
    plain = unicodedata.normalize("NFKD", _CAMEL.sub(" ", text))
    bare = "".join(character for character in plain if not unicodedata.combining(character))
    return _WORD.findall(bare.lower())


def search_words(text: str) -> list[str]:
    """The words that a search is about, each once: the little ones count only where there are no others."""
    found = list(dict.fromkeys(raw_words(text)))
    return [word for word in found if word not in _LITTLE] or found


def words_by_field(document: Mapping[str, Any]) -> dict[str, list[str]]:
    return {name: [word for text in _texts(name, document) for word in words(text)] for name in WEIGHTS}


def _texts(name: str, document: Mapping[str, Any]) -> Iterator[str]:
    value = document.get(name)
    if name == "parameters":
        properties = value.get("properties") if isinstance(value, Mapping) else None
        for parameter, schema in (properties or {}).items():
            yield parameter
            if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
                yield schema["description"]
    elif isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, str))


def singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word

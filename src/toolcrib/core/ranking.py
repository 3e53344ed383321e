"""What ranks first in a search: which words a tool has, how much each counts, and the one score.

The registry and every store rank with this module and with nothing else, so the same tools are found in the same order
with the same scores everywhere. A store keeps :func:`index_words` of each tool and finds candidates by them; it never
scores. All that a score needs beyond the tool itself is how many tools hold a word, counted up to ``ENOUGH``, which
every store can tell alike.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import chain, islice
from operator import mul
from typing import Any, NamedTuple

FIELDS: dict[str, int] = {
    "name": 8,
    "display_name": 8,
    "tags": 6,
    "capabilities": 6,
    "category": 4,
    "tool_type": 4,
    "description": 4,
    "parameters": 2,
    "usage_notes": 2,
    "manual": 1,
}
"""The fields that are searched and what they weigh. Credentials are not among them.

A change here, or in how text becomes terms, changes the words that stores keep: it needs a migration in each of them.
"""

ENOUGH = 300
"""A word that so many tools hold is common; how many more there are makes no difference."""

_HALF_STRENGTH = 4
_MOST_WORDS = 5000
_MOST_TERMS = 32
_LONGEST_TERM = 64
_LONGEST_TEXT = 100_000
_SHORTEST_PREFIX = 3
_PREFIX_SHARE = 0.5
_MOST_REASONS = 3

_WORD = re.compile(r"[^\W_]+")
_BLANKS = bytes(code if chr(code).isalnum() else ord(" ") for code in range(256))
"""Parts ASCII as ``_WORD`` does, in a tenth of the time: every tool that is written goes this way."""
_CAMEL = re.compile(r"[A-Z]+[^A-Z]*|[^A-Z]+")
"""The parts of a word, which ends where a capital follows a small letter: ``getWeather`` is two."""

_LITTLE = frozenset({
    "a", "an", "and", "are", "as", "at", "be", "by", "can", "do", "for", "from", "how", "i", "in", "is", "it",
    "me", "my", "of", "on", "or", "that", "the", "this", "to", "want", "what", "which", "with", "you",
})  # fmt: skip


class Lookup(NamedTuple):
    """Any one of some index words; with ``prefix``, any index word that begins with one of them."""

    words: tuple[str, ...]
    prefix: bool


class Candidate(NamedTuple):
    """A tool that may be an answer, and its index words."""

    name: str
    words: str


class Ranked(NamedTuple):
    name: str
    score: float


def terms_of(text: str) -> list[str]:
    """The terms of a text, each once: words in lower case, without accents or a plural's s; identifiers come apart."""
    text = text[:_LONGEST_TEXT]
    if text.isascii():
        words = text.encode().translate(_BLANKS).decode().split()
    else:
        plain = unicodedata.normalize("NFKD", text)
        words = _WORD.findall("".join(character for character in plain if not unicodedata.combining(character)))
    return list(dict.fromkeys(chain.from_iterable(map(_word_terms, dict.fromkeys(words)))))


def _word_terms(word: str) -> tuple[str, ...]:
    return _kept_terms(word) if len(word) <= _LONGEST_TERM else _parts(word)


@lru_cache(maxsize=20_000)
def _kept_terms(word: str) -> tuple[str, ...]:
    """As ``_parts``, remembered: only of short words, since strangers write them."""
    return _parts(word)


def _parts(word: str) -> tuple[str, ...]:
    return tuple(_singular(part.lower()[:_LONGEST_TERM]) for part in _CAMEL.findall(word))


def _singular(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return f"{word[:-3]}y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def index_words(document: Mapping[str, Any]) -> str:
    """What a store keeps of a tool: each of its terms once, after one digit that says how strongly it holds it.

    ``7weather 5city``: the fields that have ``weather`` weigh seven tenths. At most 5,000, of the weightiest fields.
    """
    weights: dict[str, int] = {}
    for field, weight in FIELDS.items():
        for term in _field_terms(field, document):
            weights[term] = weights.get(term, 0) + weight
    return " ".join(f"{_STRENGTH_OF[weight]}{term}" for term, weight in islice(weights.items(), _MOST_WORDS))


_STRENGTH_OF = [
    max(1, round(10 * weight / (weight + _HALF_STRENGTH))) for weight in range(sum(FIELDS.values()) + 1)
]  # fmt: skip
"""By the weight of all fields that have a term: the first field says the most, each further one less."""


def _field_terms(field: str, document: Mapping[str, Any]) -> list[str]:
    value = document.get(field)
    return terms_of("\n".join(_texts(field, value))) if value else []


def _texts(field: str, value: Any) -> Iterator[str]:
    if field == "parameters":
        properties = value.get("properties") if isinstance(value, Mapping) else None
        for parameter, schema in (properties if isinstance(properties, Mapping) else {}).items():
            yield parameter
            if isinstance(schema, Mapping) and isinstance(schema.get("description"), str):
                yield schema["description"]
    elif isinstance(value, str):
        yield value
    elif isinstance(value, list | tuple):
        yield from (item for item in value if isinstance(item, str))


@dataclass(frozen=True)
class Search:
    """A search for ``terms``, at most 32. The last one may be unfinished, because people search while they type."""

    text: str
    terms: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Search:
        """Little words count only if there are no others."""
        found = terms_of(text)
        telling = [term for term in found if term not in _LITTLE] or found
        return cls(text.strip().casefold(), tuple(telling[:_MOST_TERMS]))

    def lookup(self, term: str) -> Lookup:
        """What finds the tools that hold a term: its index words, the strongest first."""
        return Lookup(tuple(f"{strength}{term}" for strength in range(9, 0, -1)), prefix=term == self._prefix)

    def holds(self, words: str) -> list[float]:
        """How strongly a tool with these index words holds each of the terms, from 0 to 0.9."""
        found = {term: int(strength) for strength, term in self._pattern.findall(f" {words} ")}
        strengths: list[float] = [found.get(term, 0) for term in self.terms]
        if self._prefix:
            begun = max((strength for term, strength in found.items() if term.startswith(self._prefix)), default=0)
            strengths[-1] = max(strengths[-1], begun * _PREFIX_SHARE)
        return [strength / 10 for strength in strengths]

    def rank(self, held: Mapping[str, Sequence[float]], counts: Sequence[int]) -> list[Ranked]:
        """Tools by name, each with what :meth:`holds` said, best first and equals by name.

        ``counts`` says for each term how many tools hold it. A score is the share of the search that a tool holds, rare
        terms counting more; 1 is for its very name.
        """
        rarities = [1 / (1 + math.log1p(min(count, ENOUGH))) for count in counts]
        whole = sum(rarities)
        ranked = []
        for name, strengths in held.items():
            share = sum(map(mul, rarities, strengths)) / whole
            ranked.append(Ranked(name, 1.0 if name.casefold() == self.text else share))
        return sorted(ranked, key=lambda found: (-found.score, found.name))

    def reason(self, document: Mapping[str, Any]) -> str:
        """Which terms were found in which fields, the weightiest field first."""
        parts = []
        for field in FIELDS:
            having = _field_terms(field, document)
            hits = [term for term in self.terms if term in having]
            if self._prefix and self._prefix not in hits and any(term.startswith(self._prefix) for term in having):
                hits.append(self._prefix)
            if hits:
                parts.append(f"{', '.join(map(repr, hits))} in {field}")
        return "; ".join(parts[:_MOST_REASONS])

    @cached_property
    def _prefix(self) -> str:
        """The last term if it may be unfinished."""
        last = self.terms[-1] if self.terms else ""
        return last if len(last) >= _SHORTEST_PREFIX else ""

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        """Finds the terms among index words, with their strengths."""
        terms = [*self.terms, f"{self._prefix}[^ ]*"] if self._prefix else self.terms
        return re.compile(f" ([1-9])({'|'.join(terms)})(?= )")

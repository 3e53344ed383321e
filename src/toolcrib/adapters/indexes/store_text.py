"""Search by the full-text index that a store keeps itself, in the same transaction as its tools.

Nothing can be stale, however many processes write. The store answers which tools hold all of some words; a search in
plain language has words that the best tool lacks, so each word is asked for alone as well and the answers are joined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from toolcrib.adapters.indexes.memory import reason
from toolcrib.adapters.indexes.words import WEIGHTS, search_words, singular, words_by_field
from toolcrib.core.query import parse
from toolcrib.ports import Match, Store

_MOST_WORDS = 12
_WIDER = 5
_AT_ONCE = 1000
_SATURATION = 1.2


class TextStore(Store, Protocol):
    def search_text(self, text: str, *, limit: int = 10) -> list[Match]:
        """Tools that hold every word of ``text``, best first, scores from 0 to 1."""
        ...


class StoreTextIndex:
    """The store finds the candidates; the score is the share of the search that a tool's fields hold, rare words first.

    The store's own scores are not used: they mean something only within one answer.
    """

    def __init__(self, store: TextStore) -> None:
        self.remote = store.remote
        self._store = store

    def add(self, documents: Iterable[Mapping[str, Any]]) -> None:
        """Nothing to do: the store indexes what it commits."""

    def remove(self, names: Iterable[str]) -> None:
        """Nothing to do: the store forgets what it deletes."""

    def search(self, text: str, *, limit: int = 10) -> list[Match]:
        terms = search_words(text)[:_MOST_WORDS]
        if not terms or limit <= 0:
            return []
        found = {term: self._alone(term, limit * _WIDER) for term in terms}
        together = {match.name for match in self._store.search_text(" ".join(terms), limit=limit * _WIDER)}
        rarities = {singular(term): 1 / (1 + math.log1p(len(names))) for term, names in found.items()}
        candidates = sorted(together.union(*found.values()))
        matches = [_judged(name, fields, rarities) for name, fields in self._fields(candidates)]
        return sorted(matches, key=lambda match: (-match.score, match.name))[:limit]

    def _alone(self, term: str, limit: int) -> set[str]:
        """The tools that have the word in one of its forms."""
        forms = dict.fromkeys((term, singular(term), f"{singular(term)}s"))
        return {match.name for form in forms for match in self._store.search_text(form, limit=limit)}

    def _fields(self, names: list[str]) -> Iterator[tuple[str, dict[str, list[str]]]]:
        for start in range(0, len(names), _AT_ONCE):
            for record in self._store.query(parse({"name": {"$in": names[start : start + _AT_ONCE]}})):
                yield record.name, words_by_field(record.document)


def _judged(name: str, fields: Mapping[str, list[str]], rarities: Mapping[str, float]) -> Match:
    score = 0.0
    for term, rarity in rarities.items():
        weight = sum(WEIGHTS[field] for field, having in fields.items() if term in having)
        score += rarity * weight / (weight + _SATURATION)
    return Match(name, score / sum(rarities.values()), reason(fields, list(rarities)))

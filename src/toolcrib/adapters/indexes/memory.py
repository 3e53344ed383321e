"""Full-text search in memory: BM25 over weighted fields."""

from __future__ import annotations

import heapq
import math
import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.adapters.indexes.words import WEIGHTS, search_words, singular, words_by_field
from toolcrib.ports import Match

_SATURATION = 1.2
_LENGTH_SHARE = 0.5
_PREFIX_SHARE = 0.5


class MemoryIndex:
    """Scores are the share of the best possible match of the same words, so they compare across searches.

    The last word of a search also matches as a prefix, because people search while they type.
    """

    remote = False

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._fields: dict[str, dict[str, list[str]]] = {}
        self._lengths: dict[str, int] = {}
        self._total = 0
        self._weights: dict[str, dict[str, float]] = {}
        """word -> tool -> how often, weighted by field"""

    def add(self, documents: Iterable[Mapping[str, Any]]) -> None:
        with self._lock:
            for document in documents:
                self._drop(document["name"])
                self._add(document)

    def remove(self, names: Iterable[str]) -> None:
        with self._lock:
            for name in names:
                self._drop(name)

    def search(self, text: str, *, limit: int = 10) -> list[Match]:
        with self._lock:
            terms = list(dict.fromkeys(map(singular, search_words(text))))
            wanted = self._wanted(terms)
            best_possible = sum(rarity for rarity, _ in wanted) * (_SATURATION + 1)
            if not best_possible or not self._lengths:
                return []
            scores: dict[str, float] = {}
            mean = self._total / len(self._lengths)
            for rarity, found in wanted:
                for name, weight in found.items():
                    relative = self._lengths[name] / mean
                    scores[name] = scores.get(name, 0.0) + rarity * self._saturated(weight, relative)
            best = heapq.nsmallest(limit, scores.items(), key=lambda item: (-item[1], item[0]))
            return [Match(name, min(1.0, score / best_possible), self._reason(name, terms)) for name, score in best]

    def __len__(self) -> int:
        return len(self._fields)

    def _add(self, document: Mapping[str, Any]) -> None:
        name, fields = document["name"], words_by_field(document)
        self._fields[name] = {field: found for field, found in fields.items() if found}
        self._lengths[name] = sum(map(len, fields.values()))
        self._total += self._lengths[name]
        for field, found in fields.items():
            for word, count in Counter(found).items():
                tools = self._weights.setdefault(word, {})
                tools[name] = tools.get(name, 0.0) + count * WEIGHTS[field]

    def _drop(self, name: str) -> None:
        for word in {word for found in self._fields.pop(name, {}).values() for word in found}:
            tools = self._weights[word]
            del tools[name]
            if not tools:
                del self._weights[word]
        self._total -= self._lengths.pop(name, 0)

    def _wanted(self, terms: list[str]) -> list[tuple[float, dict[str, float]]]:
        """For each word of the search: how rare it is, and the tools that have it."""
        found = [dict(self._weights.get(term, {})) for term in terms]
        if terms and len(terms[-1]) >= 3:
            for word, tools in self._weights.items():
                if word.startswith(terms[-1]) and word != terms[-1]:
                    for name, weight in tools.items():
                        found[-1][name] = max(found[-1].get(name, 0.0), weight * _PREFIX_SHARE)
        total = len(self._fields)
        return [(math.log(1 + (total - len(tools) + 0.5) / (len(tools) + 0.5)), tools) for tools in found]

    def _saturated(self, weight: float, relative_length: float) -> float:
        slack = _SATURATION * (1 - _LENGTH_SHARE + _LENGTH_SHARE * relative_length)
        return weight * (_SATURATION + 1) / (weight + slack)

    def _reason(self, name: str, terms: list[str]) -> str:
        return reason(self._fields[name], terms)


def reason(fields: Mapping[str, list[str]], terms: list[str]) -> str:
    """Which of the words were found in which fields, the weightiest field first."""
    parts = []
    for field in WEIGHTS:
        having = fields.get(field, [])
        hits = [
            term for term in dict.fromkeys(terms) if any(word == term or _begins(word, term, terms) for word in having)
        ]
        if hits:
            parts.append(f"{', '.join(map(repr, hits))} in {field}")
    return "; ".join(parts[:3])


def _begins(word: str, term: str, terms: list[str]) -> bool:
    return term == terms[-1] and len(term) >= 3 and word.startswith(term)

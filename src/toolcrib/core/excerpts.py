"""The beginning of a text and the outline of a JSON value: what a reader is shown who has no room for all of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from toolcrib.core.json import MAX_DEPTH, as_text, pointer_to

_SIZES = (
    (5000, 5000, 50_000),
    (1000, 1000, 20_000),
    (200, 300, 5000),
    (50, 100, 2000),
    (20, 60, 500),
    (10, 50, 200),
    (5, 40, 100),
    (3, 25, 60),
    (2, 15, 40),
    (1, 8, 20),
    (1, 2, 8),
)
"""So many items of a list, keys of an object and characters of a text are shown: the first line that fits."""
_LONGEST_KEY = 200
_MOST_TOLD = 5
_NEAR_THE_END = 0.8
"""A text is cut at the last line end, or else between two words, if that lies in the last fifth of what fits."""


@dataclass(frozen=True, slots=True)
class Shortened:
    """A part of a value that is not shown whole. ``shown`` and ``whole`` are numbers of ``unit``."""

    path: tuple[str | int, ...]
    shown: int
    whole: int
    unit: str

    @property
    def pointer(self) -> str:
        return pointer_to(*self.path)

    @property
    def next_pointer(self) -> str:
        """Where the first part lies that is not shown, or all of it if its name cannot be told."""
        return pointer_to(*self.path, self.shown) if self.unit == "items" else self.pointer

    def __str__(self) -> str:
        where = repr(self.pointer) if self.path else "the whole"
        return f"{where} shows {self.shown:,} of {self.whole:,} {self.unit}"


@dataclass(frozen=True, slots=True)
class Outline:
    """A value of the same shape, in which long lists, objects and texts are cut; ``shortened`` says which."""

    value: Any
    shortened: tuple[Shortened, ...]


def beginning(text: str, most: int) -> str:
    """At most so many characters of it, whole lines or else whole words if that costs little."""
    if len(text) <= most:
        return text
    least = int(most * _NEAR_THE_END)
    for end in ("\n", " "):
        place = text.rfind(end, least, most)
        if place >= 0:
            return text[: place + 1]
    return text[:most]


def outline(value: Any, most: int) -> Outline:
    """A JSON value in at most so many characters of JSON; empty if not even the smallest outline fits."""
    for size in _SIZES:
        shortener = _Shortener(*size, most)
        try:
            made = shortener.shorten(value, ())
        except _TooLongError:
            continue
        if len(as_text(made)) <= most:
            return Outline(made, tuple(_told(shortener.found)))
    return Outline(_empty(value), tuple(_all_of(value)))


def _told(found: list[Shortened]) -> list[Shortened]:
    """Those nearest to the root, and of the items of one list the first."""
    alike: dict[tuple[str | int, ...], Shortened] = {}
    for one in sorted(found, key=lambda one: len(one.path)):
        alike.setdefault(tuple(0 if isinstance(key, int) else key for key in one.path), one)
    return list(alike.values())[:_MOST_TOLD]


def _empty(value: Any) -> Any:
    return type(value)() if isinstance(value, dict | list | str) else value


def _all_of(value: Any) -> Iterator[Shortened]:
    for kind, unit in ((dict, "keys"), (list, "items"), (str, "characters")):
        if isinstance(value, kind):
            yield Shortened((), 0, len(value), unit)


class _TooLongError(Exception):
    """The outline is longer than it may be."""


class _Shortener:
    """Walks over no more than it shows."""

    def __init__(self, items: int, keys: int, characters: int, most: int) -> None:
        self._items = items
        self._keys = keys
        self._characters = characters
        self._left = most
        self.found: list[Shortened] = []

    def shorten(self, value: Any, path: tuple[str | int, ...]) -> Any:
        if isinstance(value, str):
            shown = value[: self._characters]
            self._note(path, len(shown), len(value), "characters")
            self._spend(len(shown) + 2)
            return shown
        if isinstance(value, dict):
            keys = [] if len(path) >= MAX_DEPTH else self._keys_of(value)
            self._note(path, len(keys), len(value), "keys")
            self._spend(2 + sum(map(len, keys)) + 6 * len(keys))
            return {key: self.shorten(value[key], (*path, key)) for key in keys}
        if isinstance(value, list):
            items = [] if len(path) >= MAX_DEPTH else value[: self._items]
            self._note(path, len(items), len(value), "items")
            self._spend(2 + 2 * len(items))
            return [self.shorten(item, (*path, place)) for place, item in enumerate(items)]
        self._spend(1)
        return value

    def _keys_of(self, value: dict[str, Any]) -> list[str]:
        """The first of them; who has a very long one is left out."""
        shown: list[str] = []
        for key in value:
            if len(shown) == self._keys:
                break
            if len(key) <= _LONGEST_KEY:
                shown.append(key)
        return shown

    def _note(self, path: tuple[str | int, ...], shown: int, whole: int, unit: str) -> None:
        if shown < whole:
            self.found.append(Shortened(path, shown, whole, unit))

    def _spend(self, characters: int) -> None:
        self._left -= characters
        if self._left < 0:
            raise _TooLongError

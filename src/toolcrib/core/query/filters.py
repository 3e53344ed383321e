"""The filter language as a tree, and what it means for one document.

A :class:`Filter` is a question about a document, a :class:`Test` one about a single value; :class:`At` asks a test of
what a path reaches, through arrays as MongoDB goes through them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from toolcrib.core.query.budget import compared
from toolcrib.core.query.patterns import Pattern
from toolcrib.core.query.values import MISSING, compare, kind, same, type_names

Path = tuple[str, ...]
Comparison = Literal["$eq", "$gt", "$gte", "$lt", "$lte"]

_VERDICTS: dict[str, Callable[[int], bool]] = {
    "$eq": lambda order: order == 0,
    "$gt": lambda order: order > 0,
    "$gte": lambda order: order >= 0,
    "$lt": lambda order: order < 0,
    "$lte": lambda order: order <= 0,
}


class Test(ABC):
    """A question about one value."""

    __test__: ClassVar[bool] = False
    __slots__ = ()
    looks_into_arrays: ClassVar[bool] = True
    """Whether an array passes when one of its elements does."""

    @abstractmethod
    def holds(self, value: Any) -> bool: ...


class Filter(ABC):
    """A question about a document. Made by :func:`toolcrib.core.query.parse`."""

    __slots__ = ()

    @abstractmethod
    def matches(self, document: Mapping[str, Any]) -> bool: ...


@dataclass(frozen=True, slots=True)
class Compare(Test):
    """Equality or order, within one kind of value. Nothing at all equals null."""

    operator: Comparison
    value: Any

    def holds(self, value: Any) -> bool:
        if self.value is None:
            return (value is None or value is MISSING) and self.operator not in {"$gt", "$lt"}
        if self.operator == "$eq":
            return same(value, self.value)
        return kind(value) == kind(self.value) and _VERDICTS[self.operator](compare(value, self.value))


@dataclass(frozen=True, slots=True)
class OneOf(Test):
    values: tuple[Any, ...]
    _texts: frozenset[str] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_texts", frozenset(value for value in self.values if isinstance(value, str)))

    def holds(self, value: Any) -> bool:
        if isinstance(value, str):
            return value in self._texts
        if value is MISSING:
            return None in self.values
        compared(len(self.values))
        return any(same(value, wanted) for wanted in self.values)


@dataclass(frozen=True, slots=True)
class Present(Test):
    def holds(self, value: Any) -> bool:
        return value is not MISSING


@dataclass(frozen=True, slots=True)
class HasType(Test):
    names: tuple[str, ...]

    def holds(self, value: Any) -> bool:
        return any(name in self.names for name in type_names(value))


@dataclass(frozen=True, slots=True)
class Like(Test):
    pattern: Pattern

    def holds(self, value: Any) -> bool:
        return isinstance(value, str) and self.pattern.search(value)


@dataclass(frozen=True, slots=True)
class SizeIs(Test):
    looks_into_arrays: ClassVar[bool] = False
    size: int

    def holds(self, value: Any) -> bool:
        return isinstance(value, list) and len(value) == self.size


@dataclass(frozen=True, slots=True)
class AnyObject(Test):
    """``$elemMatch`` with a filter: an element that is an object (or an array, read by index) matches it."""

    looks_into_arrays: ClassVar[bool] = False
    where: Filter

    def holds(self, value: Any) -> bool:
        return isinstance(value, list) and any(map(self._matches, _counted(value)))

    def _matches(self, element: Any) -> bool:
        if isinstance(element, list):
            compared(len(element))
            element = {str(index): item for index, item in enumerate(element)}
        return isinstance(element, dict) and self.where.matches(element)


@dataclass(frozen=True, slots=True)
class AnyValue(Test):
    """``$elemMatch`` with operators: one element passes all of them."""

    looks_into_arrays: ClassVar[bool] = False
    tests: tuple[Test, ...]

    def holds(self, value: Any) -> bool:
        return isinstance(value, list) and any(all(test.holds(item) for test in self.tests) for item in _counted(value))


@dataclass(frozen=True, slots=True)
class Fails(Test):
    """The value does not pass all of the tests. Only inside :class:`AnyValue`; elsewhere :class:`Not` says it."""

    looks_into_arrays: ClassVar[bool] = False
    tests: tuple[Test, ...]

    def holds(self, value: Any) -> bool:
        return not all(test.holds(value) for test in self.tests)


@dataclass(frozen=True, slots=True)
class At(Filter):
    path: Path
    test: Test

    def matches(self, document: Mapping[str, Any]) -> bool:
        test, path = self.test, self.path
        if len(path) == 1:  # most are, so they do without a generator
            value = document.get(path[0], MISSING)
            if not isinstance(value, list):
                return test.holds(value)
        return any(test.holds(value) for value in _reached(document, path, test.looks_into_arrays))


@dataclass(frozen=True, slots=True)
class And(Filter):
    filters: tuple[Filter, ...]

    def matches(self, document: Mapping[str, Any]) -> bool:
        return all(part.matches(document) for part in self.filters)


@dataclass(frozen=True, slots=True)
class Or(Filter):
    filters: tuple[Filter, ...]

    def matches(self, document: Mapping[str, Any]) -> bool:
        return any(part.matches(document) for part in self.filters)


@dataclass(frozen=True, slots=True)
class Not(Filter):
    filter: Filter

    def matches(self, document: Mapping[str, Any]) -> bool:
        return not self.filter.matches(document)


ALL = And(())
"""Matches every document."""
NOTHING = Or(())


def _reached(document: Mapping[str, Any], path: Path, into_arrays: bool) -> Iterator[Any]:
    """What ``path`` reaches: MISSING if it breaks off at something that is no array."""
    for position, segment in enumerate(path, 1):
        value = document.get(segment, MISSING)
        if isinstance(value, list):
            yield from _reached_in_array(value, path[position:], into_arrays)
            return
        if position == len(path):
            yield value
        elif isinstance(value, dict):
            document = value
        else:
            yield MISSING
            return


def _counted(array: list[Any]) -> list[Any]:
    """The array itself, each of whose values is about to be looked at."""
    compared(len(array))
    return array


def _reached_in_array(array: list[Any], rest: Path, into_arrays: bool) -> Iterator[Any]:
    if not rest:
        if into_arrays:
            yield from _counted(array)
        yield array
        return
    for element in _counted(array):
        if isinstance(element, dict):
            yield from _reached(element, rest, into_arrays)
    index = as_index(rest[0])
    if index is not None and index < len(array):
        element = array[index]
        if len(rest) == 1:
            yield element
        elif isinstance(element, list):
            yield from _reached_in_array(element, rest[1:], into_arrays)
        elif isinstance(element, dict):
            yield from _reached(element, rest[1:], into_arrays)


def as_index(segment: str) -> int | None:
    """The array index that a path segment may mean: ``"0"`` and ``"12"``, but not ``"01"``."""
    if segment.isascii() and segment.isdigit() and len(segment) <= 9 and str(int(segment)) == segment:
        return int(segment)
    return None

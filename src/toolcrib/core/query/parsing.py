"""From plain data to a filter, checked: what is not in the language is refused by name."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from toolcrib.core.errors import InvalidQueryError, QueryBudgetError, did_you_mean, shown
from toolcrib.core.json import check_json, is_unicode
from toolcrib.core.query.filters import (
    NOTHING,
    And,
    AnyObject,
    AnyValue,
    At,
    Compare,
    Comparison,
    Fails,
    Filter,
    HasType,
    Like,
    Not,
    OneOf,
    Or,
    Path,
    Present,
    SizeIs,
    Test,
)
from toolcrib.core.query.patterns import Pattern
from toolcrib.core.query.values import INT64

MAX_NESTING = 20
MAX_CLAUSES = 500
MAX_LIST = 1000
MAX_VALUES = 20_000
"""In the lists of a whole filter."""
MAX_PATTERNS = 20
MAX_PATTERN_TEXT = 2000
"""Characters of all the regular expressions of a filter."""
MAX_TEXT = 10_000
MAX_PATH = 512
MAX_SEGMENTS = 32

FORBIDDEN = ("credentials",)
"""Paths that no filter may ask about, with everything below them."""

_TYPE_NUMBERS = {
    1: "double", 2: "string", 3: "object", 4: "array", 8: "bool", 10: "null", 16: "int", 18: "long", 19: "decimal",
}  # fmt: skip
_TYPE_NAMES = frozenset({*_TYPE_NUMBERS.values(), "number"})
_COMPARISONS: dict[str, Comparison] = {"$eq": "$eq", "$gt": "$gt", "$gte": "$gte", "$lt": "$lt", "$lte": "$lte"}
_OPERATORS = (*_COMPARISONS, "$ne", "$in", "$nin", "$exists", "$type", "$regex", "$options", "$all", "$size",
              "$elemMatch", "$not")  # fmt: skip
_LOGIC = ("$and", "$or", "$nor")


def parse(where: object, *, forbidden: Sequence[str] = FORBIDDEN) -> Filter:
    """The filter that ``where`` says, or InvalidQueryError that names the operator or field it trips over."""
    return _Parser(tuple(tuple(path.split(".")) for path in forbidden)).document(where, (), 0)


def check_path(path: Path, forbidden: Sequence[Path]) -> Path:
    """``path`` unchanged, or InvalidQueryError if it is, leads to or lies below a forbidden one."""
    for secret in forbidden:
        if path[: len(secret)] == secret[: len(path)]:
            raise InvalidQueryError(f"the field {'.'.join(path)!r} cannot be queried")
    return path


class _Parser:
    def __init__(self, forbidden: tuple[Path, ...]) -> None:
        self.forbidden = forbidden
        self.clauses = 0
        self.values = 0
        self.patterns = 0
        self.pattern_text = 0

    def document(self, where: object, base: Path, depth: int) -> Filter:
        """A filter on a document that lies at ``base``."""
        if not isinstance(where, Mapping):
            raise InvalidQueryError(f"a filter is an object such as {{'tags': 'web'}}, not {shown(where)}")
        self.count(depth)
        parts = [self.entry(key, value, base, depth) for key, value in where.items()]
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def count(self, depth: int) -> None:
        self.clauses += 1
        if self.clauses > MAX_CLAUSES:
            raise InvalidQueryError(f"the filter has more than {MAX_CLAUSES} clauses")
        if depth > MAX_NESTING:
            raise InvalidQueryError(f"the filter is nested more than {MAX_NESTING} deep")

    def listed(self, operand: object, operator: str, name: str) -> tuple[Any, ...]:
        """The values of a list, which count among those of the whole filter."""
        values = literals(operand, operator, name)
        self.values += len(values)
        if self.values > MAX_VALUES:
            raise QueryBudgetError(
                f"the lists of the filter have more than {MAX_VALUES} values; ask for fewer at a time"
            )
        return values

    def like(self, operand: object, options: object, name: str) -> Like:
        pattern = _pattern(operand, options, name)
        self.patterns += 1
        self.pattern_text += len(pattern.source)
        if self.patterns > MAX_PATTERNS:
            raise QueryBudgetError(
                f"the filter has more than {MAX_PATTERNS} regular expressions; put some into one, as in 'a|b'"
            )
        if self.pattern_text > MAX_PATTERN_TEXT:
            raise QueryBudgetError(
                f"the regular expressions of the filter have more than {MAX_PATTERN_TEXT} characters in all; "
                "make them shorter"
            )
        return Like(pattern)

    def entry(self, key: object, value: object, base: Path, depth: int) -> Filter:
        if not isinstance(key, str):
            raise InvalidQueryError(f"a field name is text, not {shown(key)}")
        if key in _LOGIC:
            return self.logic(key, value, base, depth)
        if key.startswith("$"):
            raise InvalidQueryError(f"the operator {shown(key)} is not known here{did_you_mean(key, _LOGIC)}")
        path = self.path(key, base)
        if isinstance(value, Mapping) and _is_operators(value, key):
            return self.tests_at(path, value, base, depth)
        self.count(depth)
        return At(path, Compare("$eq", literal(value, key)))

    def logic(self, operator: str, value: object, base: Path, depth: int) -> Filter:
        if not isinstance(value, list | tuple) or not value:
            raise InvalidQueryError(f"{operator} takes a list of filters that is not empty, not {shown(value)}")
        parts = tuple(self.document(part, base, depth + 1) for part in value)
        if operator == "$and":
            return And(parts)
        return Or(parts) if operator == "$or" else Not(Or(parts))

    def path(self, text: str, base: Path) -> Path:
        segments = tuple(text.split("."))
        if not all(segments) or "\0" in text or not is_unicode(text):
            raise InvalidQueryError(f"{shown(text)} is not a field name; name fields like 'metadata.owner'")
        if len(text) > MAX_PATH or len(segments) > MAX_SEGMENTS:
            raise InvalidQueryError(f"the field name {shown(text)} is too long")
        check_path(base + segments, self.forbidden)
        return segments

    def tests_at(self, path: Path, tests: Mapping[str, Any], base: Path, depth: int) -> Filter:
        """All of the operators asked of what ``path`` reaches."""
        parts: list[Filter] = []
        for operator, operand in tests.items():
            self.count(depth)
            name = ".".join(path)
            match operator:
                case "$ne":
                    parts.append(Not(At(path, Compare("$eq", literal(operand, name)))))
                case "$nin":
                    parts.append(Not(At(path, OneOf(self.listed(operand, "$nin", name)))))
                case "$exists":
                    present = At(path, Present())
                    parts.append(present if _truth(operand, name) else Not(present))
                case "$not":
                    parts.append(Not(self.tests_at(path, _operators_of_not(operand, name), base, depth + 1)))
                case "$all":
                    parts.append(self.all_of(path, operand, base, depth))
                case "$options":
                    if "$regex" not in tests:
                        raise InvalidQueryError(f"$options of {name!r} stands without a $regex")
                case _:
                    parts.append(At(path, self.test(operator, operand, tests, base + path, depth)))
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def all_of(self, path: Path, operand: object, base: Path, depth: int) -> Filter:
        name = ".".join(path)
        if not isinstance(operand, list | tuple):
            raise InvalidQueryError(f"$all of {name!r} takes a list, not {shown(operand)}")
        if not operand:
            return NOTHING
        if any(isinstance(item, Mapping) and "$elemMatch" in item for item in operand):
            if not all(isinstance(item, Mapping) and set(item) == {"$elemMatch"} for item in operand):
                raise InvalidQueryError(f"$all of {name!r} mixes $elemMatch with other values")
            _check_length(operand, "$all", name)
            tests = [self.element(item["$elemMatch"], base + path, depth) for item in operand]
            return And(tuple(At(path, test) for test in tests))
        return And(tuple(At(path, Compare("$eq", value)) for value in self.listed(operand, "$all", name)))

    def test(self, operator: str, operand: object, siblings: Mapping[str, Any], base: Path, depth: int) -> Test:
        """One operator that asks about a value as it is."""
        name = ".".join(base)
        if operator in _COMPARISONS:
            value = literal(operand, name)
            if operator != "$eq" and _holds_object(value):
                raise InvalidQueryError(f"{operator} of {name!r} takes no object: objects have no order")
            return Compare(_COMPARISONS[operator], value)
        simple: dict[str, Callable[[], Test]] = {
            "$in": lambda: OneOf(self.listed(operand, "$in", name)),
            "$type": lambda: HasType(_types(operand, name)),
            "$size": lambda: SizeIs(_size(operand, name)),
            "$regex": lambda: self.like(operand, siblings.get("$options", ""), name),
            "$elemMatch": lambda: self.element(operand, base, depth),
        }
        if operator not in simple:
            raise InvalidQueryError(
                f"the operator {shown(operator)} of {name!r} is not known{did_you_mean(str(operator), _OPERATORS)}"
            )
        return simple[operator]()

    def element(self, operand: object, base: Path, depth: int) -> Test:
        name = ".".join(base)
        if not isinstance(operand, Mapping):
            raise InvalidQueryError(f"$elemMatch of {name!r} takes an object, not {shown(operand)}")
        if operand and next(iter(operand)) not in _LOGIC and _is_operators(operand, name):
            return AnyValue(self.value_tests(operand, base, depth + 1))
        return AnyObject(self.document(operand, base, depth + 1))

    def value_tests(self, tests: Mapping[str, Any], base: Path, depth: int) -> tuple[Test, ...]:
        """Operators asked of one element of an array, which is not looked into."""
        name = ".".join(base)
        parts: list[Test] = []
        for operator, operand in tests.items():
            self.count(depth)
            match operator:
                case "$ne":
                    parts.append(Fails((Compare("$eq", literal(operand, name)),)))
                case "$nin":
                    parts.append(Fails((OneOf(self.listed(operand, "$nin", name)),)))
                case "$exists":
                    parts.append(Present() if _truth(operand, name) else Fails((Present(),)))
                case "$not":
                    parts.append(Fails(self.value_tests(_operators_of_not(operand, name), base, depth + 1)))
                case "$all":
                    raise InvalidQueryError(f"$all inside $elemMatch of {name!r} is not allowed")
                case "$options":
                    if "$regex" not in tests:
                        raise InvalidQueryError(f"$options of {name!r} stands without a $regex")
                case _:
                    parts.append(self.test(operator, operand, tests, base, depth))
        return tuple(parts)


def _is_operators(value: Mapping[Any, Any], name: str) -> bool:
    """Whether an object holds operators; one that holds operators and fields is refused."""
    operators = [isinstance(key, str) and key.startswith("$") for key in value]
    if any(operators) and not all(operators):
        raise InvalidQueryError(f"the value of {name!r} mixes operators and fields; use $eq to compare with an object")
    return any(operators)


def _operators_of_not(operand: object, name: str) -> Mapping[str, Any]:
    if not isinstance(operand, Mapping) or not operand or not _is_operators(operand, name):
        raise InvalidQueryError(f"$not of {name!r} takes an object of operators, not {shown(operand)}")
    return operand


def literals(values: object, operator: str, name: str) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple):
        raise InvalidQueryError(f"{operator} of {name!r} takes a list, not {shown(values)}")
    _check_length(values, operator, name)
    for value in values:
        if isinstance(value, Mapping) and any(str(key).startswith("$") for key in value):
            raise InvalidQueryError(
                f"{operator} of {name!r} takes values, not operators such as {shown(value)}; "
                "use $or, or $eq to compare with an object that has such a key"
            )
    return tuple(literal(value, name) for value in values)


def _check_length(values: Collection[Any], operator: str, name: str) -> None:
    if len(values) > MAX_LIST:
        raise InvalidQueryError(f"{operator} of {name!r} has {len(values)} values; {MAX_LIST} are allowed")


def literal(value: object, name: str) -> Any:
    """A JSON value to compare with, copied and checked."""
    try:
        check_json(value)
    except ValueError as error:
        raise InvalidQueryError(f"{name!r} is compared with what is not JSON: {error}") from None
    return _copied(value, name)


def _copied(value: Any, name: str) -> Any:
    if isinstance(value, list | tuple):
        _check_length(value, "a list compared", name)
        return [_copied(item, name) for item in value]
    if isinstance(value, dict):
        _check_length(value, "an object compared", name)
        return {_copied(key, name): _copied(item, name) for key, item in value.items()}
    if isinstance(value, str):
        if len(value) > MAX_TEXT:
            raise InvalidQueryError(f"a text compared with {name!r} is longer than {MAX_TEXT} characters")
        return str(value)
    if isinstance(value, int) and not -INT64 <= value < INT64:
        raise InvalidQueryError(f"a number compared with {name!r} does not fit into 64 bits")
    return value if value is None or isinstance(value, bool) else int(value) if isinstance(value, int) else float(value)


def _holds_object(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, list) and any(map(_holds_object, value)))


def _truth(operand: object, name: str) -> bool:
    if isinstance(operand, bool) or (isinstance(operand, int) and operand in (0, 1)):
        return bool(operand)
    raise InvalidQueryError(f"$exists of {name!r} takes true or false, not {shown(operand)}")


def _size(operand: object, name: str) -> int:
    if isinstance(operand, float) and operand.is_integer():
        operand = int(operand)
    if isinstance(operand, int) and not isinstance(operand, bool) and 0 <= operand < 2**31:
        return operand
    raise InvalidQueryError(f"$size of {name!r} takes a whole number from 0 up, not {shown(operand)}")


def _types(operand: object, name: str) -> tuple[str, ...]:
    wanted = operand if isinstance(operand, list | tuple) else [operand]
    if not wanted:
        raise InvalidQueryError(f"$type of {name!r} takes at least one type")
    _check_length(wanted, "$type", name)
    return tuple(_type(item, name) for item in wanted)


def _type(wanted: object, name: str) -> str:
    if isinstance(wanted, str) and wanted in _TYPE_NAMES:
        return wanted
    if isinstance(wanted, int | float) and not isinstance(wanted, bool) and wanted in _TYPE_NUMBERS:
        return _TYPE_NUMBERS[int(wanted)]
    raise InvalidQueryError(
        f"$type of {name!r} knows no {shown(wanted)}; the types are {', '.join(sorted(_TYPE_NAMES))}"
    )


def _pattern(operand: object, options: object, name: str) -> Pattern:
    if not isinstance(operand, str) or not isinstance(options, str):
        wrong = operand if not isinstance(operand, str) else options
        raise InvalidQueryError(f"$regex of {name!r} and its $options are texts, not {shown(wrong)}")
    if "\0" in operand or not is_unicode(operand):
        raise InvalidQueryError(f"$regex of {name!r} holds a character that is not text")
    return Pattern(operand, options)

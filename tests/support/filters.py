"""A filter written back as plain data, to be parsed again."""

from collections.abc import Sequence
from typing import Any

from toolcrib.core.query.filters import (
    And,
    AnyObject,
    AnyValue,
    At,
    Compare,
    Fails,
    Filter,
    HasType,
    Like,
    Not,
    OneOf,
    Or,
    Present,
    SizeIs,
    Test,
)


def to_mongo(where: Filter) -> dict[str, Any]:
    """The filter as MongoDB reads it; ``parse`` of the result means the same."""
    match where:
        case At(path, test):
            return {".".join(path): test_to_mongo(test)}
        case And(()):
            return {}
        case And(parts):
            return {"$and": [to_mongo(part) for part in parts]}
        case Or(()):
            return {"$nor": [{}]}
        case Or(parts):
            return {"$or": [to_mongo(part) for part in parts]}
        case Not(part):
            return {"$nor": [to_mongo(part)]}
    raise TypeError(f"{where!r} is not a filter")


def test_to_mongo(test: Test) -> dict[str, Any]:
    """The operators that ask ``test`` of a value."""
    match test:
        case Compare(operator, value):
            return {operator: value}
        case OneOf(values):
            return {"$in": list(values)}
        case Like(pattern):
            return {"$regex": pattern.source, "$options": pattern.options}
        case AnyObject(where):
            return {"$elemMatch": to_mongo(where)}
        case AnyValue(tests):
            return {"$elemMatch": values_to_mongo(tests)}
        case Fails(tests):
            return _failing_to_mongo(tests)
    return _shape_to_mongo(test)


def _shape_to_mongo(test: Test) -> dict[str, Any]:
    match test:
        case Present():
            return {"$exists": True}
        case HasType(names):
            return {"$type": list(names)}
        case SizeIs(size):
            return {"$size": size}
    raise TypeError(f"{test!r} is not a test")


def _failing_to_mongo(tests: tuple[Test, ...]) -> dict[str, Any]:
    match tests:
        case (Present(),):
            return {"$exists": False}
        case (Compare("$eq", value),):
            return {"$ne": value}
        case (OneOf(values),):
            return {"$nin": list(values)}
    return {"$not": values_to_mongo(tests)}


def values_to_mongo(tests: Sequence[Test]) -> dict[str, Any]:
    """Several tests of one value; each operator occurs once because an object holds each key once."""
    operators: dict[str, Any] = {}
    for test in tests:
        operators |= test_to_mongo(test)
    return operators

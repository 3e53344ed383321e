"""The filter language for a MongoDB server: passed through, except what the server must not or cannot see as it is.

Keys that begin with a dollar sign are kept under another name (see :func:`encode`), and a regular expression goes to
the server only if it is quick there; otherwise the server gets a weaker question and the answers are checked here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bson.decimal128 import Decimal128
from bson.regex import Regex

from toolcrib.core.query import filters as q
from toolcrib.core.query.portable import server_side
from toolcrib.core.query.syntax import OPTIONS
from toolcrib.core.query.values import INT64
from toolcrib.core.ranking import Lookup

_DOLLAR = "$"
_STAND_IN = "＄"
"""A full-width dollar sign: MongoDB reads ``$ref`` and ``$id`` in a document as a reference, JSON Schema does not."""
_HEXADECIMAL = _STAND_IN + "␀"


def encode(value: Any) -> Any:
    """A JSON value as MongoDB keeps it."""
    match value:
        case dict():
            return {encode_key(key): encode(item) for key, item in value.items()}
        case list() | tuple():
            return [encode(item) for item in value]
        case int() if not -INT64 <= value < INT64:
            return Decimal128(str(value))
    return value


def decode(value: Any) -> Any:
    """The JSON value that :func:`encode` was given."""
    match value:
        case dict():
            return {_decode_key(key): decode(item) for key, item in value.items()}
        case list():
            return [decode(item) for item in value]
        case Decimal128():
            return int(value.to_decimal())
    return value


def encode_key(key: str) -> str:
    if "\0" in key:  # BSON cannot have it
        return _HEXADECIMAL + key.encode().hex()
    return _STAND_IN + key if key.startswith((_DOLLAR, _STAND_IN)) else key


def _decode_key(key: str) -> str:
    if key.startswith(_HEXADECIMAL):
        return bytes.fromhex(key.removeprefix(_HEXADECIMAL)).decode()
    return key[1:] if key.startswith(_STAND_IN) else key


def server_filter(where: q.Filter, prefix: str = "") -> tuple[dict[str, Any], bool]:
    """What to ask the server, and whether its answer is exact; if it is not, it holds every match and more.

    ``prefix`` is where the document stands in the server's; its name is the server's ``_id``, which has an index.
    """
    match where:
        case q.At(path, test):
            operators, exact = _test(test)
            name = "_id" if prefix and path == ("name",) else prefix + ".".join(map(encode_key, path))
            if isinstance(operators, dict):
                return {name: operators}, exact
            return {"$and": [{name: part} for part in operators]} if operators else {}, exact
        case q.And(parts):
            return _all_of(parts, prefix)
        case q.Or(parts):
            questions = [server_filter(part, prefix) for part in parts]
            if not questions:
                return {"$nor": [{}]}, True
            return {"$or": [question for question, _ in questions]}, all(exact for _, exact in questions)
        case q.Not(inner):
            question, exact = server_filter(inner, prefix)
            return ({"$nor": [question]}, True) if exact else ({}, False)
    raise TypeError(f"{where!r} is not a filter")


def _all_of(parts: Sequence[q.Filter], prefix: str) -> tuple[dict[str, Any], bool]:
    questions = [server_filter(part, prefix) for part in parts]
    asked = [question for question, _ in questions if question]
    exact = all(exact for _, exact in questions)
    if len(asked) <= 1:
        return asked[0] if asked else {}, exact
    return {"$and": asked}, exact


_Operators = dict[str, Any] | list[dict[str, Any]]


def _test(test: q.Test) -> tuple[_Operators, bool]:
    """The operators that ask ``test`` of a value, as one object or as several that must all hold."""
    match test:
        case q.Compare(operator, value):
            return {operator: encode(value)}, True
        case q.OneOf(values):
            return {"$in": encode(values)}, True
        case q.Like(pattern):
            texts, exact = server_side(pattern)
            asked = [{"$regex": text, "$options": OPTIONS} for text in texts]
            return asked[0] if len(asked) == 1 else asked, exact
        case q.AnyObject(where):
            question, exact = server_filter(where)
            return {"$elemMatch": question}, exact
        case q.AnyValue(tests):
            operators, exact = _values(tests)
            return {"$elemMatch": operators or {"$exists": True}}, exact
        case q.Fails(tests):
            operators, exact = _values(tests)
            return ({"$not": operators}, True) if exact else ([], False)
    return _shape(test), True


def _shape(test: q.Test) -> dict[str, Any]:
    match test:
        case q.Present():
            return {"$exists": True}
        case q.HasType(names):
            return {"$type": list(names)}
        case q.SizeIs(size):
            return {"$size": size}
    raise TypeError(f"{test!r} is not a test")


def _values(tests: Sequence[q.Test]) -> tuple[dict[str, Any], bool]:
    """Tests of one value as one object of operators.

    Two negations cannot share an object; not both can be asked then, and the answer is checked here.
    """
    operators: dict[str, Any] = {}
    all_exact = True
    for test in tests:
        asked, exact = _test(test)
        if isinstance(asked, list) or operators.keys() & asked.keys():
            exact = False
        else:
            operators |= asked
        all_exact = all_exact and exact
    return operators, all_exact


def any_word(lookup: Lookup) -> list[str | Regex[str]]:
    """For ``$in``. A Python pattern would carry flags, and for those MongoDB reads the whole index."""
    return [Regex(f"^{word}") for word in lookup.words] if lookup.prefix else list(lookup.words)

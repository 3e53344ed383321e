"""JSON in one place: reading it, any value as JSON, what may be kept, copies, equality, references into it, the mask.

What passes :func:`check_json` can be kept by every store, sent through every door and compared. The limits are those of
the narrowest of them, MongoDB's BSON: 100 levels, and whole numbers of 34 digits.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections import Counter, deque
from collections.abc import ItemsView, Iterable, KeysView, Mapping, Sequence, ValuesView
from dataclasses import fields, is_dataclass
from types import NoneType
from typing import Any
from urllib.parse import unquote

from pydantic_core import SchemaSerializer, core_schema, from_json, to_json, to_jsonable_python

MAX_DEPTH = 80
"""How deep one value may nest: a field of a spec, a schema, a value in a filter."""
MAX_RECORD_DEPTH = 90
"""How deep the record around such values may nest. A spec adds three levels (``examples``, one of them, its ``input``),
an entry that carries a spec in its metadata two more; the other ten of BSON's 100 are for MongoDB's rows and events."""
MAX_INTEGER = 10**34
"""The first whole number that BSON's decimals cannot hold."""
MASK = "********"
"""What is shown instead of a secret."""

_PARTS = SchemaSerializer(core_schema.any_schema())
"""Takes models and dataclasses apart, down to Python's own kinds."""
_ODD_NUMBER = re.compile("NaN|Infinity")
_LONG_NUMBER = re.compile("[0-9]{35}")
_Path = tuple[Any, ...]


def read_json(text: str | bytes, *, unique_keys: bool = False) -> Any:
    """The value of a JSON text from anywhere; ValueError says why it is none.

    Of two equal keys in an object the last counts, as everywhere; ``unique_keys`` refuses them.
    """
    if not unique_keys:
        try:
            return from_json(text)  # far quicker
        except ValueError:
            pass  # json takes it after all, or says why it does not
    try:
        return json.loads(text, object_pairs_hook=_with_unique_keys if unique_keys else None)
    except RecursionError:
        raise ValueError("it is nested too deep") from None


def write_json(value: Any) -> bytes:
    """The JSON text of a JSON value."""
    try:
        return to_json(value, inf_nan_mode="constants")
    except ValueError:  # half of a surrogate pair: it can be written, if not as it is
        return json.dumps(value).encode()


def _with_unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        raise ValueError(f"the key {twice!r:.60} stands twice in one object")
    return found


def as_json(value: Any) -> Any:
    """``value`` as a JSON value, whatever a tool returned: the rest of it is worth more than one odd part.

    Bytes become base64, numbers that JSON lacks their names, and what is of no kind that JSON knows its ``repr``.
    """
    try:
        text, jsonable = json.dumps(value, ensure_ascii=False), to_jsonable_python(value)
    except Exception:  # noqa: BLE001 - it holds more than JSON, or a stranger's object that may raise anything
        jsonable = _jsonable_of(value)
        try:
            text = json.dumps(jsonable, ensure_ascii=False)
        except (ValueError, RecursionError):
            return _described(value)
    if _ODD_NUMBER.search(text) or not is_unicode(text):
        return json.loads(encodable(json.dumps(jsonable, ensure_ascii=False)), parse_constant=str)
    return jsonable


def in_order(value: Any, jsonable: Any) -> Any:
    """``jsonable``, which is ``value`` in JSON, with what was a set in one order: each process has its own."""
    return _in_order(_PARTS.to_python(value), jsonable)


def _in_order(value: Any, jsonable: Any) -> Any:
    if isinstance(value, set | frozenset) and isinstance(jsonable, list):
        return _sorted(jsonable)
    if isinstance(value, list | tuple) and isinstance(jsonable, list) and len(value) == len(jsonable):
        return list(map(_in_order, value, jsonable))
    if isinstance(value, dict) and isinstance(jsonable, dict) and len(value) == len(jsonable):
        return dict(zip(jsonable, map(_in_order, value.values(), jsonable.values()), strict=True))
    return jsonable


def _sorted(items: list[Any]) -> list[Any]:
    try:
        return sorted(items)
    except TypeError:
        return sorted(items, key=as_text)


def _jsonable_of(value: Any) -> Any:
    """``value`` made of the kinds that JSON has, though perhaps with text or numbers that it lacks."""
    try:
        return to_jsonable_python(_with_base64(value), bytes_mode="base64", fallback=_unknown)
    except Exception:  # noqa: BLE001 - a stranger's object may raise anything when it is looked at
        return _jsonable_of_parts(value)


def _jsonable_of_parts(value: Any) -> Any:
    """As above, without the serializers of models, which take bytes for text unless they are configured otherwise."""
    try:
        return to_jsonable_python(_with_base64(_PARTS.to_python(value)), bytes_mode="base64", fallback=_unknown)
    except Exception:  # noqa: BLE001 - as above
        return _described(value)


def _with_base64(value: Any) -> Any:
    """Bytes, wherever they are in it, as the base64 that everybody reads: pydantic's has the alphabet of addresses."""
    if type(value) in _HOLD_NONE:
        return value
    if isinstance(value, _BYTES):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, dict):
        return {key: _with_base64(item) for key, item in value.items()}
    if isinstance(value, _LISTS):
        return [_with_base64(item) for item in value]
    if is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "__pydantic_serializer__"):
        return {field.name: _with_base64(getattr(value, field.name)) for field in fields(value)}
    return value


_HOLD_NONE = frozenset({str, int, float, bool, NoneType})
_BYTES = (bytes, bytearray, memoryview)
_LISTS = (list, tuple, set, frozenset, deque)


def _unknown(value: Any) -> Any:
    """What stands for a value of no kind that JSON knows: what a mapping, a view of one or a range holds; its repr."""
    if isinstance(value, Mapping):
        return _with_base64(dict(value))
    listed = isinstance(value, KeysView | ValuesView | ItemsView | range)
    return _with_base64(list(value)) if listed else _described(value)


def _described(value: Any) -> str:
    """What stands for a value that JSON cannot hold: its ``repr``, if it has one."""
    try:
        return encodable(repr(value))
    except RecursionError:
        return f"<{type(value).__name__} that is nested too deep>"
    except Exception:  # noqa: BLE001 - as above
        return f"<{type(value).__name__} that cannot be shown>"


def encodable(text: str) -> str:
    """Text that can be sent: half of a surrogate pair, which no encoding has, becomes a question mark."""
    return text.encode(errors="replace").decode()


def as_text(value: Any) -> str:
    """``value`` as a model reads it: text stays text, everything else is JSON."""
    kind = type(value)
    if kind is str:
        return value if value.isascii() else encodable(value)
    if kind is int and -MAX_INTEGER < value < MAX_INTEGER:  # str refuses what has thousands of digits
        return str(value)
    if isinstance(value, str):
        return encodable(value)
    return json.dumps(as_json(value), ensure_ascii=False)


def check_json(value: Any, limit: int = MAX_DEPTH) -> Any:
    """``value`` unchanged; ValueError says what in it is not JSON, too deep, or not text that can be encoded."""
    if type(value) is str and value.isascii():
        return value
    _check(value, (), limit)
    return value


def refuse_flag(value: Any) -> Any:
    """``value``, of which a number is expected: Python takes true for 1, JSON does not. ValueError if it is a flag."""
    if isinstance(value, bool):
        raise ValueError("true and false are not numbers")
    return value


def holds_more_values(text: bytes, most: int) -> bool:
    """Whether a JSON text holds more values than ``most``, told by its commas; those in texts do not count.

    To read a JSON text is one step of the interpreter, however many values there are in it, and everybody else waits.
    """
    if text.count(b",") < most:
        return False
    plain = text.replace(b"\\\\", b"").replace(b'\\"', b"")
    return plain.count(b'"') > 4 * most or sum(part.count(b",") for part in plain.split(b'"')[::2]) >= most


def is_finite(value: Any) -> bool:
    """Whether every number in a value that was read from JSON is one: what no float can hold becomes infinity."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, float) and not math.isfinite(one):
            return False
        if isinstance(one, dict | list):
            todo += one.values() if isinstance(one, dict) else one
    return True


def copied(value: Any) -> Any:
    """A JSON value that can be changed without changing the one that it was copied from."""
    if type(value) is dict:
        entries: Iterable[tuple[Any, Any]] = value.items()
    elif type(value) is list:
        entries = enumerate(value)
    else:
        return value
    copy = value.copy()
    for key, item in entries:
        if type(item) in _CONTAINERS:
            copy[key] = copied(item)
    return copy


_CONTAINERS = frozenset({dict, list})


def is_plain(text: str) -> bool:
    """Whether the value of this JSON text passes :func:`check_json` beyond doubt: quick, and seldom False."""
    return text.count("{") + text.count("[") <= MAX_DEPTH and "\\ud" not in text and not _LONG_NUMBER.search(text)


def _check(value: Any, path: _Path, limit: int) -> None:
    if isinstance(value, str):
        if not is_unicode(value):
            raise _wrong(f"{value!r:.60} holds half of a surrogate pair", path)
    elif isinstance(value, list | tuple | dict):
        if len(path) >= limit:
            raise ValueError(f"it is nested more than {limit} deep")
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict):
                _check_key(key, path)
            _check(item, (*path, key), limit)
    elif isinstance(value, float):
        if not math.isfinite(value):
            raise _wrong(f"{value} is not a JSON number", path)
    elif isinstance(value, int):
        if not -MAX_INTEGER < value < MAX_INTEGER:
            raise _wrong("a whole number has more than 34 digits", path)
    elif value is not None:
        raise _wrong(f"{value!r:.60} is a {type(value).__name__}, which is not JSON", path)


def _check_key(key: Any, path: _Path) -> None:
    if not isinstance(key, str):
        raise _wrong(f"the key {key!r:.60} is not text", path)
    _check(key, path, 0)


def _wrong(complaint: str, path: _Path) -> ValueError:
    where = ".".join(map(str, path))
    return ValueError(f"{complaint} (at {where!r:.200})" if where else complaint)


def is_unicode(text: str) -> bool:
    """Whether the text can be encoded: half of a surrogate pair cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are the same; Python takes True for 1."""
    if one is other:
        return True
    if type(one) is not type(other):
        return bool(one == other) and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def lookup(root: Any, reference: object) -> Any:
    """What a reference inside ``root`` such as ``#/$defs/Address`` leads to, or None."""
    if not isinstance(reference, str) or not (reference == "#" or reference.startswith("#/")):
        return None
    keys = pointer_keys(unquote(reference))
    node, followed = walk(root, keys)
    return node if followed == len(keys) else None


def pointer_keys(pointer: str) -> list[str]:
    """The keys of a JSON pointer such as ``/rows/10/name``, behind whatever stands before its first slash."""
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def pointer_to(*keys: str | int) -> str:
    """The JSON pointer of what these keys lead to."""
    return "".join(f"/{str(key).replace('~', '~0').replace('/', '~1')}" for key in keys)


_LONGEST_INDEX = 12


def walk(root: Any, keys: Sequence[str]) -> tuple[Any, int]:
    """Where ``keys`` lead from ``root``, as far as they do, and how many of them were followed."""
    node = root
    for followed, key in enumerate(keys):
        if isinstance(node, Mapping) and key in node:
            node = node[key]
        elif isinstance(node, list) and _is_index(key) and int(key) < len(node):
            node = node[int(key)]
        else:
            return node, followed
    return node, len(keys)


def _is_index(key: str) -> bool:
    return len(key) <= _LONGEST_INDEX and key.isascii() and key.isdecimal()

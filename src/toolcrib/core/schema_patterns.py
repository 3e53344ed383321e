"""What the patterns of a JSON Schema cost, known before they are compiled and before a text is tried.

Both are one step of the interpreter, which nothing interrupts and for which everybody waits. Most patterns are tried in
time that grows with the text. Those that look around (``(?!...)``) or back (``\\1``) are tried by going back and forth:
so often at most, but each time over all of the text, or over all of it at each of its characters.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, NamedTuple

import jsonschema_rs

from toolcrib.core.defaults import item_schemas
from toolcrib.core.json import lookup
from toolcrib.core.references import with_pointers
from toolcrib.core.schema_cost import HERE, ITEMS, MEMBERS, schemas_under, texts

BACKTRACKS = 10_000
"""How often a pattern may go back; after that it does not match."""
MOST_STEPS = 100_000_000
"""Some tenths of a second at the worst: 1 to 4 ns a step."""
MOST_COMPILED = 100_000_000
_MOST_VISITS = 100_000
_SIZES = (*(quarters << power for power in range(7, 20) for quarters in (4, 5, 6, 7)), 1 << 22, 10 << 20)
"""Bytes of a compiled pattern; the last is as many as the library takes."""
_UNKNOWN = _SIZES[-1] + 1
"""The size of what is no pattern without its looks."""
_LEAST_BYTES, _BYTES_A_STEP = 20_000, 32
_FEW, _STEPS_OF_FEW = 8, 16
"""A pattern of so few parts has so few states that the library finds nearly each next one in a table."""
_LOOKS = re.compile(r"\(\?<?[=!]")
_LOOKS_BACK = re.compile(r"\\(?:[1-9]|k<)")
_HAS_COMMENTS = re.compile(r"\(\?[a-zA-Z]*x")
"""What stands in a comment would be taken for parts of the pattern, and the rest of it for parts of a class."""

_Where = tuple[Any, Any]
"""A schema and a value that it is applied to."""


class Cost(NamedTuple):
    """Steps for each character of a text, and for each pair of them."""

    linear: int
    square: int = 0

    def of(self, text: str) -> int:
        length = 1 + (len(text) if text.isascii() else len(text.encode(errors="replace")))
        return length * (self.linear + length * self.square)


def compiled_size(schema: Mapping[str, Any]) -> int:
    """Bytes of all patterns of a schema once they are compiled; no further than MOST_COMPILED."""
    size = 0
    for pattern in _patterns(schema):
        size += max(_size(pattern), _LEAST_BYTES)
        if size > MOST_COMPILED:
            break
    return size


def pattern_steps(schema: Mapping[str, Any]) -> Callable[[Any], int] | None:
    """Counts from above how many steps the patterns take for a value; None if the schema has no patterns."""
    walk = _Walk(with_pointers(schema))
    return walk.steps if walk.whole.linear else None


class _Part(NamedTuple):
    """One schema: what it costs by itself, and the schemas inside of it from which a pattern can be reached."""

    text: Cost
    names: Cost
    """For each name of a member."""
    here: list[Any]
    own: dict[str, Any]
    members: list[Any]
    member_names: list[Any]
    items: list[Any]
    first_items: list[Any]


class _Walk:
    """Goes with a value through a schema: only there is a pattern tried where it stands."""

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._leading = set[int]()
        _leads(root, self._leading)
        self._parts: dict[int, _Part] = {}
        text = str(root)
        self._may_be_anywhere = "$dynamicRef" in text or "$recursiveRef" in text
        self.whole = _together(_patterns(root))
        self._multiplies = "$ref" in text and (self.whole.square > 0 or self.whole.linear >= BACKTRACKS)

    def steps(self, value: Any) -> int:
        """As if every pattern were tried on every text, where following them would take too long."""
        taken, visits = 0, 0
        todo: list[_Where] = [] if self._may_be_anywhere else [(self._root, value)]
        while todo and taken <= MOST_STEPS:
            node, inner = todo.pop()
            part = self._part(node)
            visits += 1 + (len(inner) if isinstance(inner, dict | list) else 0)
            if isinstance(inner, str):
                taken += part.text.of(inner)
            elif isinstance(inner, dict) and part.names.linear:
                taken += sum(map(part.names.of, inner))
            for where in _applied(part, inner):
                visits += 1
                if visits > _MOST_VISITS:
                    return MOST_STEPS + 1 if self._multiplies else taken + self._from_above(value)
                todo.append(where)
        return self._from_above(value) if self._may_be_anywhere else taken

    def _from_above(self, value: Any) -> int:
        return sum(map(self.whole.of, texts(value)))

    def _part(self, node: Any) -> _Part:
        part = self._parts.get(id(node))
        if part is None:
            pattern, named, own = node.get("pattern"), node.get("patternProperties"), node.get("properties")
            first_items = item_schemas(node)[0]
            part = self._parts[id(node)] = _Part(
                cost_of(pattern) if isinstance(pattern, str) else Cost(0),
                _together(named) if isinstance(named, dict) else Cost(0),
                self._those([*schemas_under(node, HERE), lookup(self._root, node.get("$ref"))]),
                {key: one for key, one in own.items() if id(one) in self._leading} if isinstance(own, dict) else {},
                self._those(schemas_under(node, MEMBERS)),
                self._those([node.get("propertyNames")]),
                self._those([*schemas_under(node, ITEMS), node.get("items")]),
                first_items if self._those(first_items) else [],
            )
        return part

    def _those(self, schemas: Iterable[Any]) -> list[Any]:
        """Those of them from which a pattern can be reached."""
        return [schema for schema in schemas if id(schema) in self._leading]


def _applied(part: _Part, value: Any) -> Iterator[_Where]:
    """The schemas inside of a schema that may be applied to the value, or to what is in it."""
    yield from ((schema, value) for schema in part.here)
    if isinstance(value, dict):
        if part.own:
            yield from ((part.own[key], inner) for key, inner in value.items() if key in part.own)
        yield from ((schema, inner) for schema in part.members for inner in value.values())
        yield from ((schema, key) for schema in part.member_names for key in value)
    elif isinstance(value, list | tuple):
        yield from ((schema, inner) for schema in part.items for inner in value)
        yield from (one for one in zip(part.first_items, value, strict=False) if isinstance(one[0], dict))


def _together(patterns: Iterable[str]) -> Cost:
    costs = [cost_of(pattern) for pattern in patterns]
    return Cost(sum(cost.linear for cost in costs), sum(cost.square for cost in costs))


@lru_cache(4096)
def cost_of(pattern: str) -> Cost:
    """What it costs to try a pattern."""
    size = _size(pattern)
    parts = _TOKEN.findall(pattern)
    linear = max(1, size // _BYTES_A_STEP) if not _has_few(parts) else _STEPS_OF_FEW
    looks = sum(map(_looks, parts))
    backtracks = _LOOKS_BACK.search(pattern) or _HAS_COMMENTS.search(pattern) or _keeps(parts)
    if size == _UNKNOWN or backtracks or _looks_within(parts):
        return Cost(linear, BACKTRACKS)
    if not looks or _looks_first(parts):
        return Cost(linear * (1 + looks))
    return Cost(linear + looks * BACKTRACKS)


def _leads(schema: Any, leading: set[int]) -> bool:
    """Whether there is a pattern in the schema; ``leading`` gets each part of it from which one can be reached."""
    inner = schema.values() if isinstance(schema, dict) else schema if isinstance(schema, list) else ()
    below = [_leads(one, leading) for one in inner if isinstance(one, dict | list)]
    found = any(below)
    if isinstance(schema, dict):
        found = (
            found
            or isinstance(schema.get("pattern"), str)
            or any(schema.get(one) for one in ("patternProperties", "$ref"))
        )
        if found:
            leading.add(id(schema))
    return found


def _patterns(schema: Any) -> Iterator[str]:
    todo = [schema]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            if isinstance(pattern := node.get("pattern"), str):
                yield pattern
            if isinstance(named := node.get("patternProperties"), dict):
                yield from named
            todo += node.values()
        elif isinstance(node, list):
            todo += node


@lru_cache(4096)
def _size(pattern: str) -> int:
    """About how many bytes the compiled pattern takes, told without what looks around or back."""
    plain = _LOOKS_BACK.sub("", _LOOKS.sub("(?:", pattern))
    first = bisect_left(_SIZES, True, key=partial(_compiles, plain))
    return _SIZES[first] if first < len(_SIZES) else _UNKNOWN


def _compiles(pattern: str, size: int) -> bool:
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=jsonschema_rs.RegexOptions(size))
    except ValueError:
        return False
    return True


def _has_few(parts: list[str]) -> bool:
    return "{" not in parts and sum(part not in "^$()|*+?:" for part in parts) <= _FEW


def _keeps(parts: list[str]) -> bool:
    """Whether a repetition gives nothing back. ECMAScript has none; the library takes them."""
    return any(part in "*+?}" and after == "+" for part, after in pairwise(parts))


def _looks(part: str) -> bool:
    return _LOOKS.fullmatch(part) is not None


def _looks_within(parts: list[str]) -> bool:
    """Whether it looks around inside of a group, or again and again: over all of the text, each time."""
    depth, looking, ended = 0, False, False
    for part in parts:
        if (ended and part in "*+?{") or (depth and _looks(part)):
            return True
        depth, looking = _deeper(depth, part), looking or _looks(part)
        ended = looking and depth == 0
        looking = looking and depth > 0
    return False


def _looks_first(parts: list[str]) -> bool:
    """Whether it looks around at the beginning of the text alone, and never comes back to do it again."""
    depth, beginning = 0, parts[:1] == ["^"]
    for part in parts[1:]:
        if depth == 0 and (part == "|" or (_looks(part) and not beginning)):
            return False
        beginning = beginning and (depth > 0 or _looks(part))
        depth = _deeper(depth, part)
    return parts[:1] == ["^"]


def _deeper(depth: int, part: str) -> int:
    """How deep in groups what follows is."""
    return depth + 1 if part.startswith("(") else depth - 1 if part == ")" else depth


_TOKEN = re.compile(r"\\.|\[(?:\\.|[^\]\\])*\]|\(\?<?[=!]|.", re.DOTALL)
"""What opens a group, and every other character; an escaped one and a class of them count as one."""

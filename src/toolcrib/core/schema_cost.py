"""What it costs to check a value against a JSON Schema, known before it is checked.

Nothing can interrupt a check, and references multiply: of twenty schemas that each refer twice to the next one, the
last is applied a million times. So the cost is counted beforehand, from above: along one way into a value, everything
that applies to the same place adds up, level by level. A list of values to compare with costs as much as it is long.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from toolcrib.core.defaults import item_schemas
from toolcrib.core.json import MAX_DEPTH, lookup
from toolcrib.core.references import NAMED, with_pointers

CAP = 10**9
"""Costs are not counted further."""
_MAX_COUNTED = 200_000
"""How many schemas are looked at, each once for each level; deeper values cost too much then."""

HERE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas", "dependencies")
"""Whose schemas are applied to the value itself."""
MEMBERS = ("patternProperties", "additionalProperties", "unevaluatedProperties")
"""To any of its members, or to all."""
ITEMS = ("contains", "additionalItems", "unevaluatedItems")
"""To any of its items; ``items`` too, if it is one schema."""
_COMPARED = ("enum", "const")
_SCALAR, _CONTAINER, _NUMBER = 2, 20, 40
"""What it costs to compare with a value, in times of what it costs to apply a schema. 1 and 1.5 take long."""


class _Part(NamedTuple):
    """One schema: what it costs itself, and the numbers of those it applies: to the same value, to each member or item,
    to one of them."""

    own: int
    here: list[int]
    members: tuple[list[int], list[int]]
    items: tuple[list[int], list[int]]


def costs(schema: Mapping[str, Any], *, comparing: bool = True) -> list[int]:
    """How many schemas are applied along one way into a value, by how deep it nests; deeper ones cost as the last.

    With ``comparing`` the values that they compare with count too.
    """
    parts = _parts(with_pointers(schema), comparing)
    order = _inner_first(parts)
    below, found = [0] * len(parts), list[int]()
    for _ in range(min(MAX_DEPTH + 1, max(4, _MAX_COUNTED // len(parts)))):
        objects, arrays = [0] * len(parts), [0] * len(parts)
        for number in order:
            part = parts[number]
            for costs_here, (all_of, one_of) in ((objects, part.members), (arrays, part.items)):
                inside = sum(below[inner] for inner in all_of) + max((below[inner] for inner in one_of), default=0)
                costs_here[number] = min(CAP, part.own + inside + sum(costs_here[inner] for inner in part.here))
        now = list(map(max, objects, arrays))
        found.append(now[0])
        if now == below or now[0] >= CAP:
            return found
        below = now
    return found if len(found) > MAX_DEPTH else [*found, CAP]


def size_and_depth(value: Any) -> tuple[int, int]:
    """How many ways lead into a JSON value until they end, and how deep it nests."""
    size, depth, level = 0, -1, [value]
    while level and depth < 1000:
        size, depth = size + sum(not isinstance(one, dict | list | tuple) or not one for one in level), depth + 1
        level = [inner for outer in level if isinstance(outer, dict | list | tuple) for inner in _inside(outer)]
    return size, depth


def characters(value: Any) -> int:
    """How long all texts in a JSON value are together."""
    return sum(map(len, texts(value)))


def texts(value: Any) -> Iterator[str]:
    """The texts in a JSON value, with the names of members."""
    todo = [value]
    while todo:
        one = todo.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            todo += [*one, *one.values()]
        elif isinstance(one, list | tuple):
            todo += one


def _compared(value: Any) -> int:
    """What it costs to compare with a value or a list of values. One of a list of texts is found by its hash."""
    if isinstance(value, list) and all(isinstance(one, str) for one in value):
        return _CONTAINER
    found, todo = 0, [value]
    while todo:
        one = todo.pop()
        if isinstance(one, dict | list | tuple):
            found += _CONTAINER
            todo += _inside(one)
        else:
            found += _NUMBER if isinstance(one, int | float) and not isinstance(one, bool) else _SCALAR
    return found


def _inside(value: Any) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _parts(root: Mapping[str, Any], comparing: bool) -> list[_Part]:
    """Every schema that can be applied, the whole document first."""
    numbers: dict[int, int] = {}
    todo: list[Mapping[str, Any]] = []

    def numbered(schemas: Iterable[Any]) -> list[int]:
        found = []
        for schema in schemas:
            if isinstance(schema, Mapping):
                if id(schema) not in numbers:
                    numbers[id(schema)] = len(numbers)
                    todo.append(schema)
                found.append(numbers[id(schema)])
        return found

    anchors = _dynamic_anchors(root)
    numbered([root])
    parts: list[_Part] = []
    while len(parts) < len(todo):
        schema = todo[len(parts)]
        parts.append(
            _Part(
                1 + sum(_compared(schema[keyword]) for keyword in _COMPARED if comparing and keyword in schema),
                numbered([*_referred(schema, root, anchors), *schemas_under(schema, HERE)]),
                (
                    numbered(schemas_under(schema, (*MEMBERS, "propertyNames"))),
                    numbered(schemas_under(schema, ("properties",))),
                ),
                (numbered([*schemas_under(schema, ITEMS), schema.get("items")]), numbered(item_schemas(schema)[0])),
            )
        )
    return parts


def schemas_under(schema: Mapping[str, Any], keywords: Iterable[str]) -> Iterator[Any]:
    """The schemas that keywords hold: one, a list or a mapping of them."""
    for keyword in keywords:
        value = schema.get(keyword)
        if isinstance(value, list):
            yield from value
        elif isinstance(value, Mapping):
            yield from value.values() if keyword in NAMED else (value,)


def _referred(schema: Mapping[str, Any], root: Mapping[str, Any], anchors: Mapping[str, list[Any]]) -> Iterator[Any]:
    if "$ref" in schema:
        yield lookup(root, schema["$ref"])
    if "$recursiveRef" in schema:
        yield root
    if isinstance(dynamic := schema.get("$dynamicRef"), str):
        yield lookup(root, dynamic)
        yield from anchors.get(dynamic.rpartition("#")[2], ())


def _dynamic_anchors(root: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    todo: list[Any] = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, Mapping) and isinstance(name := node.get("$dynamicAnchor"), str):
            found.setdefault(name, []).append(node)
        if isinstance(node, Mapping | list):
            todo += node.values() if isinstance(node, Mapping) else node
    return found


def _inner_first(parts: list[_Part]) -> list[int]:
    """The numbers so that what applies to the same value comes before what applies it; a circle is cut open."""
    order: list[int] = []
    begun, ended = set[int](), set[int]()
    todo = [(number, False) for number in range(len(parts))]
    while todo:
        number, done = todo.pop()
        if done:
            if number not in ended:
                ended.add(number)
                order.append(number)
        elif number not in begun:
            begun.add(number)
            todo.append((number, True))
            todo += ((inner, False) for inner in parts[number].here if inner not in begun)
    return order

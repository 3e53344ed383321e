"""Which defaults a JSON Schema fills in, found once for a tool: its own, and those behind ``$ref`` and ``allOf``.

A schema that refers to itself gives a graph with a circle in it; filling in ends because a value does.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from itertools import count
from typing import Any

from toolcrib.core.errors import InvalidSchemaError
from toolcrib.core.json import lookup

Key = str | int

_MAX_STEPS = 100_000
"""How many schemas are looked at, each as often as others refer to it."""


class Defaults:
    """What one schema fills in: members that are absent, and what lies inside the members and items that are there."""

    __slots__ = ("absent", "inside", "items")

    def __init__(self) -> None:
        self.absent: dict[str, Any] = {}
        self.inside: dict[Key, list[Defaults]] = {}
        """By name, or by position if an array has a schema for each of its first items."""
        self.items: list[Defaults] = []

    def fill(self, value: Any) -> Any:
        """``value`` with the defaults in it; as a copy, if anything can be filled in."""
        if isinstance(value, dict):
            filled = dict(value)
            for name, default in self.absent.items():
                if name not in filled:
                    filled[name] = copy.deepcopy(default)
            for key in self.inside.keys() & value.keys():
                filled[key] = filled_in(value[key], self.inside[key])
            return filled
        if isinstance(value, list):
            return [filled_in(item, self.inside.get(index, self.items)) for index, item in enumerate(value)]
        return value


def filled_in(value: Any, parts: list[Defaults]) -> Any:
    for part in parts:
        value = part.fill(value)
    return value


def find_defaults(schema: Mapping[str, Any]) -> Defaults:
    """The defaults of a whole document."""
    known: dict[int, Defaults] = {}
    todo: list[tuple[Mapping[str, Any], Defaults]] = []

    def of(part: Mapping[str, Any]) -> Defaults:
        if id(part) not in known:
            known[id(part)] = Defaults()
            todo.append((part, known[id(part)]))
        return known[id(part)]

    found = of(schema)
    steps = count()
    while todo:
        node, defaults = todo.pop()
        for part in _counted(applying(node, schema), steps):
            for name, member in properties(part).items():
                behind = _counted(applying(member, schema), steps)
                for default in (inner["default"] for inner in behind if "default" in inner):
                    defaults.absent.setdefault(name, default)
                defaults.inside.setdefault(name, []).append(of(member))
            first, rest = item_schemas(part)
            for position, item in enumerate(first):
                defaults.inside.setdefault(position, []).extend([of(item)] if isinstance(item, Mapping) else [])
            if isinstance(rest, Mapping):
                defaults.items.append(of(rest))
    _prune(list(known.values()))
    return found


def _counted(parts: Iterator[Mapping[str, Any]], steps: Iterator[int]) -> Iterator[Mapping[str, Any]]:
    for part in parts:
        if next(steps) >= _MAX_STEPS:
            raise InvalidSchemaError(
                f"a JSON Schema has parts that many others refer to: written out they are more than {_MAX_STEPS:,}; "
                "refer to them from fewer places"
            )
        yield part


def _prune(nodes: list[Defaults]) -> None:
    """Take out the ways that lead to no default, so that a call does not walk them."""
    above: dict[Defaults, list[Defaults]] = {}
    for node in nodes:
        for inner in (*node.items, *(part for parts in node.inside.values() for part in parts)):
            above.setdefault(inner, []).append(node)
    useful: set[Defaults] = set()
    todo = [node for node in nodes if node.absent]
    while todo:
        node = todo.pop()
        if node not in useful:
            useful.add(node)
            todo += above.get(node, ())
    for node in nodes:
        node.items = [part for part in node.items if part in useful]
        kept = {key: [part for part in parts if part in useful] for key, parts in node.inside.items()}
        node.inside = {key: parts for key, parts in kept.items() if parts or isinstance(key, int)}


def applying(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The schema and those that hold along with it, behind ``$ref`` and ``allOf``; the nearest first."""
    seen: set[int] = set()
    todo: list[Any] = [schema]
    while todo:
        part = todo.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        branches = part.get("allOf")
        todo += reversed(branches) if isinstance(branches, list) else ()
        if "$ref" in part:
            todo.append(lookup(root, part["$ref"]))


def properties(schema: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    members = schema.get("properties")
    if not isinstance(members, Mapping):
        return {}
    return {name: member for name, member in members.items() if isinstance(member, Mapping)}


def item_schemas(schema: Mapping[str, Any]) -> tuple[list[Any], Any]:
    """The schemas of an array's first items, and that of the rest; before 2020-12 a list of ``items`` said so."""
    items = schema.get("items")
    if isinstance(items, list):
        return items, schema.get("additionalItems")
    first = schema.get("prefixItems")
    return first if isinstance(first, list) else [], items


def required_names(schema: Mapping[str, Any]) -> list[str]:
    """What a document requires at its root."""
    return list(dict.fromkeys(name for part in applying(schema, schema) for name in part.get("required", ())))


def required_defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The required arguments that a call may leave out, because their default goes in before the check."""
    absent = find_defaults(schema).absent
    return {name: absent[name] for name in required_names(schema) if name in absent}

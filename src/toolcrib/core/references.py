"""References inside a JSON Schema, however they are written: by pointer, by ``$anchor``, by ``$id``."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote, urljoin

from toolcrib.core.errors import InvalidSchemaError

NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
"""What holds schemas by names."""
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""What holds values, which may look like schemas and are none."""
_MAX_POINTER = 2000
"""How long the way to a part with a name may be: a long way to each of many parts is more than anybody can write."""

_Way: TypeAlias = "tuple[_Way, tuple[object, ...]] | None"
"""The keys that lead to a part, the last ones outermost; made into text only for the few parts that have a name."""


def with_pointers(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """``schema`` with every ``$ref`` as a pointer from its root, so that ``lookup`` follows it; itself if they are.

    A ``$dynamicRef`` leads to a place that depends on the value, and stays what it is.
    """
    places = dict(_places(schema))
    if not places:
        return schema
    places.setdefault("", "")
    whole = copy.deepcopy(dict(schema))
    for part, base, _ in list(_parts(whole)):
        part.pop("$id", None)
        if isinstance(reference := part.get("$ref"), str):
            address, _, fragment = reference.partition("#")
            target = urljoin(base, address) if address else base
            inside = "" if not fragment or fragment.startswith("/") else f"#{fragment}"
            if (place := places.get(target + inside)) is not None:
                part["$ref"] = f"#{place}{'' if inside else fragment}"
    return whole


def _places(schema: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The names that a document gives to its parts, each with the pointer to the part."""
    for part, base, way in _parts(schema):
        address, _, fragment = _text(part, "$id").partition("#")  # until draft-07 '#name' was an anchor
        names = [base] if address else []
        anchors = (fragment, _text(part, "$anchor"), _text(part, "$dynamicAnchor"))
        names += [f"{base}#{anchor}" for anchor in anchors if anchor]
        if names:
            pointer = _pointer(way)
            yield from ((name, pointer) for name in names)


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str, _Way]]:
    """Every schema in a document, with the address that its references start from and the way to it."""
    todo: list[tuple[Any, str, _Way]] = [(schema, "", None)]
    while todo:
        part, base, way = todo.pop()
        if not isinstance(part, Mapping):
            continue
        if address := _text(part, "$id").partition("#")[0]:
            base = urljoin(base, address)
        yield part, base, way
        for keyword, value in part.items():
            if isinstance(value, list) and keyword not in _VALUES:
                todo += ((inner, base, (way, (keyword, position))) for position, inner in enumerate(value))
            elif isinstance(value, Mapping) and keyword in NAMED:
                todo += ((inner, base, (way, (keyword, name))) for name, inner in value.items())
            elif keyword not in _VALUES:
                todo.append((value, base, (way, (keyword,))))


def _pointer(way: _Way) -> str:
    steps: list[object] = []
    while way is not None:
        steps += reversed(way[1])
        way = way[0]
    pointer = "".join(f"/{_escaped(str(step)[: _MAX_POINTER + 1])}" for step in reversed(steps))
    if len(pointer) > _MAX_POINTER:
        raise InvalidSchemaError(
            f"the part of a JSON Schema at {pointer[:60]!r}... has an '$id' or an anchor and lies behind names of more "
            f"than {_MAX_POINTER:,} characters; use shorter ones"
        )
    return pointer


def _text(part: Mapping[str, Any], keyword: str) -> str:
    value = part.get(keyword)
    return value if isinstance(value, str) else ""


def _escaped(key: str) -> str:
    return quote(key.replace("~", "~0").replace("/", "~1"), safe="~")

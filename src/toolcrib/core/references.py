"""References inside a JSON Schema, however they are written: by pointer, by ``$anchor``, by ``$id``."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, urljoin

_NAMED = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"})
_VALUES = frozenset({"const", "enum", "default", "examples"})
"""What holds values, which may look like schemas and are none."""


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
    for part, base, pointer in _parts(schema):
        address, _, fragment = _text(part, "$id").partition("#")  # until draft-07 '#name' was an anchor
        if address:
            yield base, pointer
        for anchor in (fragment, _text(part, "$anchor"), _text(part, "$dynamicAnchor")):
            if anchor:
                yield f"{base}#{anchor}", pointer


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[Any, str, str]]:
    """Every schema in a document, with the address that its references start from and the pointer to it."""
    todo: list[tuple[Any, str, str]] = [(schema, "", "")]
    while todo:
        part, base, pointer = todo.pop()
        if not isinstance(part, Mapping):
            continue
        if address := _text(part, "$id").partition("#")[0]:
            base = urljoin(base, address)
        yield part, base, pointer
        for keyword, value in part.items():
            below = f"{pointer}/{_escaped(keyword)}"
            if isinstance(value, list) and keyword not in _VALUES:
                todo += ((inner, base, f"{below}/{position}") for position, inner in enumerate(value))
            elif isinstance(value, Mapping) and keyword in _NAMED:
                todo += ((inner, base, f"{below}/{_escaped(name)}") for name, inner in value.items())
            elif keyword not in _VALUES:
                todo.append((value, base, below))


def _text(part: Mapping[str, Any], keyword: str) -> str:
    value = part.get(keyword)
    return value if isinstance(value, str) else ""


def _escaped(key: str) -> str:
    return quote(key.replace("~", "~0").replace("/", "~1"), safe="~")

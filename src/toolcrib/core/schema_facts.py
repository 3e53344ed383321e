"""What can be read off a JSON Schema without a value: types, finite values, alternatives, limits, references."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from toolcrib.core.json import lookup
from toolcrib.core.schema import JsonSchema, compile_schema

Schema = Mapping[str, Any] | bool

ANNOTATIONS = frozenset({
    "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id",
    "$defs", "definitions", "$anchor",
})  # fmt: skip
_TYPES = frozenset({"string", "number", "boolean", "null", "array", "object"})
_SIZES = (
    ("string", "minLength", "maxLength"),
    ("array", "minItems", "maxItems"),
    ("object", "minProperties", "maxProperties"),
)


def constraints(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ANNOTATIONS}


def listed_values(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values of an ``enum`` or a ``const``, or None if they are not listed."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def named_types(schema: Mapping[str, Any]) -> set[str]:
    """The types that a schema names; none if it does not say."""
    named = schema.get("type", ())
    return {named} if isinstance(named, str) else set(named)


def finite_values(schema: Mapping[str, Any]) -> list[Any] | None:
    """All the values a schema can take, if they can be counted; too many rather than too few."""
    if (values := listed_values(schema)) is not None:
        return values
    kinds = named_types(schema)
    if kinds and kinds <= {"boolean", "null"}:
        return ([True, False] if "boolean" in kinds else []) + ([None] if "null" in kinds else [])
    return None


def alternatives(schema: Mapping[str, Any]) -> list[Schema]:
    for key in ("anyOf", "oneOf"):
        if key in schema:
            rest = without(schema, key)
            return [joined(choice, rest) for choice in schema[key]]
    return []


def joined(one: Schema, other: Mapping[str, Any]) -> Schema:
    """Both at once, or only ``one``, which takes more, if they speak of the same."""
    if one is False:
        return False
    first = {} if one is True else constraints(one)
    second = constraints(other)
    return {**first, **second} if not _related(first, second) else first


def _related(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    groups = (
        {"properties", "patternProperties", "additionalProperties"},
        {"items", "prefixItems"},
        {"if", "then", "else"},
    )
    return bool(one.keys() & other.keys()) or any(group & one.keys() and group & other.keys() for group in groups)


def types_of(schema: Mapping[str, Any]) -> frozenset[str]:
    return frozenset("number" if kind == "integer" else kind for kind in named_types(schema) or _TYPES)


def lost_types(old: Mapping[str, Any], new: Mapping[str, Any]) -> set[str]:
    now = named_types(new)
    if "number" in now:
        now.add("integer")
    return (named_types(old) or set(_TYPES)) - now if now else set()


def tighter_limits(old: Mapping[str, Any], new: Mapping[str, Any], types: Iterable[str], what: str) -> Iterator[str]:
    for kind, least, most in _SIZES:
        if kind not in types:
            continue
        if new.get(least, 0) > old.get(least, 0):
            yield f"{what} has a higher {least!r} now: {new[least]}"
        if most in new and new[most] < old.get(most, float("inf")):
            yield f"{what} has a lower {most!r} now: {new[most]}"
    if "array" in types and new.get("uniqueItems") and not old.get("uniqueItems"):
        yield f"{what} takes no repeated items now"
    if "number" in types:
        if _lower_bound(new) > _lower_bound(old):
            yield f"{what} has a higher minimum now"
        if _upper_bound(new) < _upper_bound(old):
            yield f"{what} has a lower maximum now"
        if "multipleOf" in new and not _divides(new["multipleOf"], old.get("multipleOf")):
            yield f"{what} takes only multiples of {new['multipleOf']} now"


def _lower_bound(schema: Mapping[str, Any]) -> tuple[float, int]:
    infinite = float("-inf")
    return max((schema.get("minimum", infinite), 0), (schema.get("exclusiveMinimum", infinite), 1))


def _upper_bound(schema: Mapping[str, Any]) -> tuple[float, int]:
    infinite = float("inf")
    return min((schema.get("maximum", infinite), 0), (schema.get("exclusiveMaximum", infinite), -1))


def _divides(new: Any, old: Any) -> bool:
    return new == old or (isinstance(new, int) and isinstance(old, int) and old % new == 0)


def resolved(reference: Any, root: JsonSchema) -> Schema | None:
    """The part of the document that a local reference points to."""
    node = lookup(root, reference)
    return node if isinstance(node, Mapping | bool) else None


def followed(schema: Any, root: Mapping[str, Any]) -> Any:
    """What a schema that is only a reference leads to in the end; a circle leads back to itself."""
    seen: set[str] = set()
    while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        schema = lookup(root, reference)
    return schema


def accepts(schema: Schema, root: JsonSchema, value: Any, *, unknown: bool) -> bool:
    """Whether one part of a document takes the value; ``unknown`` if the part cannot stand alone."""
    if isinstance(schema, bool):
        return schema
    definitions = {key: root[key] for key in ("$schema", "$defs", "definitions") if key in root}
    part = definitions | dict(schema)
    if not all(reference.startswith(("#/$defs/", "#/definitions/")) for reference in references(part)):
        return unknown
    return compile_schema(part).is_valid(value)


def references(node: Any) -> Iterator[str]:
    if isinstance(node, Mapping):
        yield from (str(node[key]) for key in ("$ref", "$dynamicRef", "$recursiveRef") if key in node)
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from references(child)


def without(schema: Mapping[str, Any], *keys: str) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in keys}

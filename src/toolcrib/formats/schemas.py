"""Parameter schemas as providers take them, and local references inside schemas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.core.json import lookup
from toolcrib.core.schema import JsonSchema
from toolcrib.core.schema_facts import listed_values, without
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.jsonable import copied
from toolcrib.formats.provider import Loss

MAX_DEPTH = 4
"""How deep a schema is told in words."""
_COMPLETE = frozenset({"type", "properties"})


def object_schema(spec: ToolSpec, losses: list[Loss], provider: str, forbidden: Collection[str] = ()) -> JsonSchema:
    """The parameters as an object schema whose root holds none of the ``forbidden`` keywords."""
    schema: JsonSchema = copied(spec.parameters)
    if "$ref" in schema:
        schema = with_root_resolved(schema)
    if not schema.keys() >= _COMPLETE:
        schema = {"type": "object", "properties": {}} | schema
    for keyword in forbidden:
        if keyword in schema:
            del schema[keyword]
            losses.append(
                Loss(spec.name, f"parameters.{keyword}", f"{provider} does not take {keyword!r} at the top of a schema")
            )
    return schema


def with_root_resolved(schema: JsonSchema) -> JsonSchema:
    """The same schema without a ``$ref`` at its root, if that leads to a place inside it."""
    seen: set[str] = set()
    while isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        target = lookup(schema, reference)
        if not isinstance(target, dict):
            break
        schema = copied(target) | without(schema, "$ref")
    return schema


def parameters_of(spec: ToolSpec) -> tuple[JsonSchema, list[tuple[str, Any, bool]]]:
    """The document that references start from, and each parameter: its name, its schema, whether it is required."""
    root = with_root_resolved(spec.parameters)
    required = required_of(root)
    return root, [(name, schema, name in required) for name, schema in properties_of(root).items()]


@dataclass(frozen=True)
class TypeWords:
    """How a notation writes types: any value, a listed value, and a schema without references and alternatives."""

    anything: str
    literal: Callable[[Any], str]
    plain: Callable[[Mapping[str, Any], Callable[[Any], str]], str]
    """Gets the schema, and the function that writes the schemas inside it."""

    def write(self, schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
        if not isinstance(schema, dict) or depth > MAX_DEPTH:
            return self.anything

        def inner(part: Any) -> str:
            return self.write(part, root, depth + 1)

        if isinstance(reference := schema.get("$ref"), str):
            return inner(lookup(root, reference))
        if (values := listed_values(schema)) is not None:
            return "|".join(map(self.literal, values))
        if branches := alternatives(schema):
            return "|".join(dict.fromkeys(map(inner, branches)))
        return self.plain(schema, inner)


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(schema: Mapping[str, Any]) -> frozenset[str]:
    required = schema.get("required")
    return frozenset(required) if isinstance(required, list) else frozenset()


def alternatives(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas of which a value fits one, or nothing if there is only the schema itself."""
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return list(schema[keyword])
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1:
        return parts
    kinds = schema.get("type")
    return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else []

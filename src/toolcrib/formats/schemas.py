"""Parameter schemas as providers take them, and local references inside schemas."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from toolcrib.core.json import lookup
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.jsonable import copied
from toolcrib.formats.losses import Loss

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
    """The same schema without a ``$ref`` at its root, where that leads to a place inside it."""
    seen: set[str] = set()
    while isinstance(reference := schema.get("$ref"), str) and reference not in seen:
        seen.add(reference)
        target = lookup(schema, reference)
        if not isinstance(target, dict):
            break
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        schema = copied(target) | rest
    return schema


def properties_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def required_of(schema: Mapping[str, Any]) -> frozenset[str]:
    required = schema.get("required")
    return frozenset(required) if isinstance(required, list) else frozenset()


def listed_values(schema: Mapping[str, Any]) -> list[Any] | None:
    """The values of an ``enum`` or a ``const``, or None where they are not listed."""
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return values if isinstance(values, list) else None


def alternatives(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas of which a value fits one, or nothing where there is only the schema itself."""
    for keyword in ("anyOf", "oneOf"):
        if isinstance(schema.get(keyword), list):
            return list(schema[keyword])
    parts = schema.get("allOf")
    if isinstance(parts, list) and len(parts) == 1:
        return parts
    kinds = schema.get("type")
    return [{**schema, "type": kind} for kind in kinds] if isinstance(kinds, list) else []

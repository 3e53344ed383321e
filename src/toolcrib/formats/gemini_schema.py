"""JSON Schema in the subset of OpenAPI that Gemini takes; what does not fit is written down as a loss."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from toolcrib.core.errors import ExportError
from toolcrib.core.json import lookup
from toolcrib.core.schema import JsonSchema
from toolcrib.core.schema_facts import followed, listed_values, without
from toolcrib.formats.jsonable import copied
from toolcrib.formats.provider import Loss
from toolcrib.formats.schemas import properties_of

_AS_THEY_ARE = frozenset({
    "title", "description", "default", "minimum", "maximum", "minLength", "maxLength", "pattern", "minItems",
    "maxItems", "minProperties", "maxProperties",
})  # fmt: skip
_SAY_NOTHING_OF_VALUES = frozenset({"$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary"})
_HANDLED = frozenset(
    {"type", "enum", "const", "format", "properties", "required", "items", "anyOf", "oneOf", "allOf", "$ref"}
)
_FORMATS = {
    "string": frozenset({"enum", "date-time"}),
    "number": frozenset({"float", "double"}),
    "integer": frozenset({"int32", "int64"}),
}
_MAX_PARTS = 10_000
_ANYTHING: tuple[JsonSchema, ...] = ({"type": "string"}, {"type": "number"}, {"type": "boolean"})


class GeminiSchema:
    """Converts the schemas of one tool. ``root`` is where references start."""

    def __init__(self, tool: str, root: JsonSchema, losses: list[Loss]) -> None:
        self._tool = tool
        self._root = root
        self._losses = losses
        self._open: list[str] = []
        self._left = _MAX_PARTS

    def convert(self, schema: Any, path: str) -> JsonSchema:
        self._write_out(path)
        if not isinstance(schema, dict):
            return self._anything({}, path)
        if "$ref" in schema:
            return self._referenced(schema, path)
        while "allOf" in schema:  # that of a part is part of the whole
            schema = self._merged(schema, path)
        branches = self._branches(schema, path)
        if branches is not None:
            return self._any_of(schema, branches, path)
        return self._plain(schema, path)

    def _write_out(self, path: str) -> None:
        """One part more at that place; ExportError if it is one too many."""
        self._left -= 1 + len(path) // 100
        if self._left < 0:
            raise ExportError(
                f"the parameters of {self._tool!r} are too large for Gemini: without references and with every "
                f"alternative written out they have more than {_MAX_PARTS:,} parts"
            )

    def _lose(self, path: str, reason: str) -> None:
        self._losses.append(Loss(self._tool, path, reason))

    def _referenced(self, schema: JsonSchema, path: str) -> JsonSchema:
        reference = str(schema["$ref"])
        rest = without(schema, "$ref")
        target = lookup(self._root, reference)
        if reference in self._open or not isinstance(target, dict):
            self._lose(f"{path}.$ref", f"Gemini has no recursive schemas; {reference!r} becomes any object")
            return self._plain({"type": "object"} | rest, path)
        self._open.append(reference)
        converted = self.convert(target | rest, path)
        self._open.pop()
        return converted

    def _merged(self, schema: JsonSchema, path: str) -> JsonSchema:
        """All parts of an ``allOf`` as one schema; if two say different things the first is kept."""
        merged = without(schema, "allOf")
        for part in schema["allOf"]:
            self._write_out(path)
            target = followed(part, self._root)
            for key, value in (target if isinstance(target, dict) else {}).items():
                if key == "properties":
                    merged[key] = value | properties_of(merged)
                elif key == "required":
                    merged[key] = list(dict.fromkeys([*merged.get(key, []), *value]))
                elif merged.setdefault(key, value) != value:
                    self._lose(
                        f"{path}.allOf.{key}", "Gemini has no 'allOf'; of two different values the first is kept"
                    )
        return merged

    def _branches(self, schema: JsonSchema, path: str) -> list[Any] | None:
        """The alternatives of a schema, or None if it has none."""
        if isinstance(schema.get("anyOf"), list):
            return list(schema["anyOf"])
        if isinstance(schema.get("oneOf"), list):
            self._lose(f"{path}.oneOf", "Gemini has no 'oneOf'; it becomes 'anyOf'")
            return list(schema["oneOf"])
        kinds = schema.get("type")
        if isinstance(kinds, list):
            return [{"type": kind} for kind in kinds]
        return None

    def _any_of(self, schema: JsonSchema, branches: list[Any], path: str) -> JsonSchema:
        around = without(schema, "anyOf", "oneOf", "type")
        described: JsonSchema = {key: around.pop(key) for key in ("title", "description", "default") if key in around}
        converted = _alternatives(
            self.convert({**around, **branch} if isinstance(branch, dict) else branch, f"{path}.anyOf.{index}")
            for index, branch in enumerate(branches)
        )
        real = [branch for branch in converted if branch["type"] != "null"]
        if len(real) <= 1:
            nullable = {"nullable": True} if real and len(converted) > 1 else {}
            return {**(real or converted)[0], **described, **nullable}
        # Gemini takes nothing beside 'anyOf', so what was said of the whole is said of each part or not at all.
        for key in described.keys() - {"description"}:
            self._lose(f"{path}.{key}", "Gemini takes nothing beside 'anyOf'")
        description = {"description": described["description"]} if "description" in described else {}
        return {"anyOf": [description | branch for branch in converted]}

    def _plain(self, schema: JsonSchema, path: str) -> JsonSchema:
        kind = schema.get("type") or _implied_type(schema)
        if kind is None:
            return self._anything(schema, path)
        converted: JsonSchema = {"type": kind}
        for key, value in schema.items():
            if key in _AS_THEY_ARE:
                converted[key] = copied(value)
            elif key not in _HANDLED and key not in _SAY_NOTHING_OF_VALUES:
                self._lose(f"{path}.{key}", f"Gemini does not know {key!r}")
        self._add_values(converted, schema, path)
        if kind == "object":
            self._add_properties(converted, schema, path)
        elif kind == "array":
            converted["items"] = self.convert(schema.get("items", True), f"{path}.items")
        return converted

    def _anything(self, schema: JsonSchema, path: str) -> JsonSchema:
        self._lose(path, "Gemini asks for a type; any value becomes a text, a number or a boolean")
        description = {"description": schema["description"]} if "description" in schema else {}
        return {"anyOf": [description | kind for kind in _ANYTHING]}

    def _add_values(self, converted: JsonSchema, schema: JsonSchema, path: str) -> None:
        kind = converted["type"]
        allowed = listed_values(schema)
        if allowed is not None and kind != "null":
            texts = [value for value in allowed if isinstance(value, str)]
            if kind == "string" and texts:
                converted["enum"] = texts
                if None in allowed:
                    converted["nullable"] = True
            else:
                self._lose(f"{path}.{'const' if 'const' in schema else 'enum'}", "Gemini lists values of text only")
        if "format" in schema:
            if schema["format"] in _FORMATS.get(kind, ()):
                converted["format"] = schema["format"]
            else:
                self._lose(f"{path}.format", f"Gemini does not know the format {schema['format']!r}")

    def _add_properties(self, converted: JsonSchema, schema: JsonSchema, path: str) -> None:
        properties = properties_of(schema)
        if properties:
            converted["properties"] = {
                name: self.convert(sub, f"{path}.properties.{name}") for name, sub in properties.items()
            }
        required = [name for name in schema.get("required", ()) if name in properties]
        if required:
            converted["required"] = required
        for name in schema.get("required", ()):
            if name not in properties:
                self._lose(f"{path}.required", f"Gemini requires only what has a schema, and {name!r} has none")


def _implied_type(schema: JsonSchema) -> str | None:
    if "properties" in schema:
        return "object"
    if "items" in schema:
        return "array"
    values = listed_values(schema)
    if not values:
        return None
    kinds = {_TYPE_OF.get(type(value)) for value in values if value is not None} or {"null"}
    return kinds.pop() if len(kinds) == 1 else None


_TYPE_OF = {str: "string", bool: "boolean", int: "integer", float: "number", list: "array", dict: "object"}


def _alternatives(branches: Iterable[JsonSchema]) -> list[JsonSchema]:
    """Each alternative once; alternatives of alternatives are alternatives."""
    flat = (one for branch in branches for one in branch.get("anyOf", [branch]))
    return list({json.dumps(one, sort_keys=True): one for one in flat}.values())

"""JSON Schema in the part of it that a provider takes; what does not fit is told in words, and is a loss."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

from toolcrib.core.errors import ExportError
from toolcrib.core.json import as_text, lookup
from toolcrib.core.references import with_pointers
from toolcrib.core.schema import JsonSchema
from toolcrib.core.schema_facts import listed_values, without
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.joining import ContradictionError, apart, joined
from toolcrib.formats.jsonable import copied
from toolcrib.formats.provider import Loss
from toolcrib.formats.schemas import properties_of, with_root_resolved

_SHAPE = frozenset({
    "type", "enum", "const", "properties", "required", "additionalProperties", "items", "anyOf", "oneOf", "allOf",
    "$ref", "prefixItems", "additionalItems",
})  # fmt: skip
"""What each has its own way."""
_SAYS_NOTHING = frozenset({
    "$schema", "$id", "id", "$anchor", "$comment", "$defs", "definitions", "$vocabulary", "$dynamicAnchor",
    "$recursiveAnchor", "readOnly", "writeOnly", "deprecated", "discriminator",
})  # fmt: skip
_OF_OTHER_PROPERTIES = frozenset({
    "patternProperties", "if", "then", "else", "dependentSchemas", "dependencies", "unevaluatedProperties",
    "unevaluatedItems", "$dynamicRef", "$recursiveRef",
})  # fmt: skip
"""They may name properties and items that nothing else names: the schema without them is quite another one."""
_NEED_NO_WORDS = frozenset({"title", "unevaluatedProperties", "unevaluatedItems"})
_ANNOTATIONS = ("title", "description", "default", "examples")
_FORBIDDEN_AT_THE_TOP = ("anyOf", "oneOf", "not", "enum", "const")
_APPLIES_TO = {
    "string": frozenset({"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType"}),
    "number": frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    "array": frozenset({"minItems", "maxItems", "uniqueItems", "contains", "minContains", "maxContains"}),
    "object": frozenset({"minProperties", "maxProperties", "propertyNames", "dependentRequired"}),
}
_ONE_TYPE = frozenset().union(*_APPLIES_TO.values())
_DEFINITION = re.compile(r"#/(\$defs|definitions)/([^/]+)")
_TYPE_OF = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}
_MAX_PARTS = 10_000
_MAX_WORDS = 200
_NULL: JsonSchema = {"type": "null"}


@dataclass(frozen=True)
class Subset:
    """What a provider takes of JSON Schema."""

    provider: str
    keywords: frozenset[str]
    """What it takes beside the shape of a value, which every provider does."""
    formats: frozenset[str] | None = None
    """None is all."""
    closed: bool = False
    """Objects have the properties that are named and no others; what cannot be said so cannot be said at all."""
    all_required: bool = False
    """What may be left out is null instead."""
    recursive: bool = True
    tuples: bool = False
    enums: tuple[type, ...] = (str, bool, int, float, type(None))
    takes: Callable[[str, Any], bool] | None = None
    """Whether it takes one of the keywords with that value; None is always."""


class UnsayableError(Exception):
    """A closed subset has no schema for the values that are meant."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(reason)
        self.path = path
        self.reason = reason


def rewritten(spec: ToolSpec, subset: Subset, losses: list[Loss]) -> JsonSchema:
    """The parameters of a tool as ``subset`` says them. UnsayableError if it is a closed one, and they are not."""
    root = with_root_resolved(dict(with_pointers(spec.parameters)))
    return _Rewriting(spec.name, "parameters", root, subset, losses).parameters()


def rewritten_output(spec: ToolSpec, subset: Subset, losses: list[Loss]) -> JsonSchema:
    """The schema of what a tool returns, likewise."""
    root = dict(with_pointers(spec.returns))
    return _Rewriting(spec.name, "returns", root, subset, losses).output()


class _Rewriting:
    """``root`` is where references start."""

    def __init__(self, tool: str, field: str, root: JsonSchema, subset: Subset, losses: list[Loss]) -> None:
        self._tool = tool
        self._field = field
        self._root = root
        self._subset = subset
        self._provider = subset.provider
        self._losses = losses
        self._definitions: dict[tuple[str, str], JsonSchema] = {}
        self._open: list[str] = []
        self._left = _MAX_PARTS

    def parameters(self) -> JsonSchema:
        schema = self._flat({"type": "object", "properties": {}} | without(self._root, "$ref"), "parameters")
        for keyword in [each for each in _FORBIDDEN_AT_THE_TOP if each in schema]:
            path = f"parameters.{keyword}"
            if _names_properties(schema.pop(keyword)) and self._subset.closed:
                raise UnsayableError(path, "alternatives at the top have parameters of their own")
            self._lose(path, f"{self._provider} does not take {keyword!r} at the top of a schema")
        if self._subset.closed:
            schema.setdefault("additionalProperties", False)
        return self._with_definitions(self._plain(schema | {"type": "object"}, "parameters"))

    def output(self) -> JsonSchema:
        return self._with_definitions(self._convert(self._root, "returns"))

    def _with_definitions(self, made: JsonSchema) -> JsonSchema:
        for place in ("$defs", "definitions"):
            names = [name for name in self._root.get(place, ()) if (place, name) in self._definitions]
            if names:
                made[place] = {name: self._definitions[place, name] for name in names}
        return made

    # What cannot be said

    def _lose(self, path: str, reason: str) -> None:
        self._losses.append(Loss(self._tool, path, reason))

    def _cannot(self, path: str, reason: str) -> None:
        """In a subset that says a thing exactly or not at all, this is the end of it."""
        if self._subset.closed:
            raise UnsayableError(path, reason)
        self._lose(path, f"{self._provider} cannot say it: {reason}")

    def _count(self, path: str) -> None:
        """One part more at that place."""
        self._left -= 1 + len(path) // 100
        if self._left < 0:
            reason = f"with every alternative written out they have more than {_MAX_PARTS:,} parts"
            if self._subset.closed:
                raise UnsayableError(self._field, reason)
            raise ExportError(f"the {self._field} of {self._tool!r} are too large for {self._provider}: {reason}")

    # The ways of a schema

    def _convert(self, schema: Any, path: str) -> JsonSchema:
        self._count(path)
        if schema is False:
            self._cannot(path, "no value fits it")
        if not isinstance(schema, Mapping):
            return self._anything({}, path)
        schema = self._flat(schema, path)
        if "$ref" in schema:
            return self._referring(schema, path)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                return self._any_of(schema, keyword, path)
        return self._plain(schema, path)

    def _flat(self, schema: Mapping[str, Any], path: str) -> JsonSchema:
        """Without ``allOf``, and without a ``$ref`` beside something that says more of the value."""
        flat: JsonSchema = dict(schema)
        while "allOf" in flat or ("$ref" in flat and _constrains(without(flat, "$ref"))):
            parts = flat.pop("allOf", [])
            if "$ref" in flat:
                parts = [{"$ref": flat.pop("$ref")}, *parts]
            elif len(parts) == 1 and isinstance(parts[0], dict) and "$ref" in parts[0] and not _constrains(flat):
                return parts[0] | flat  # an old way of writing something beside a reference
            for part in parts:
                self._count(path)
                flat = self._joined(flat, self._target(part, path), path)
        return flat

    def _target(self, part: Any, path: str) -> Mapping[str, Any]:
        """A part of a whole, and what it refers to."""
        if part is False:
            self._cannot(path, "no value fits it")
        if not isinstance(part, Mapping):
            return {}
        if "$ref" not in part:
            return self._flat(part, path)
        reference = str(part["$ref"])
        target = lookup(self._root, reference)
        if reference in self._open or not isinstance(target, dict):
            self._cannot(f"{path}.$ref", f"{reference!r} refers to itself in a way that has no end")
            return without(part, "$ref")
        self._open.append(reference)
        try:
            return self._joined(self._flat(without(part, "$ref"), path), self._target(target, path), path)
        finally:
            self._open.pop()

    def _joined(self, one: JsonSchema, other: Mapping[str, Any], path: str) -> JsonSchema:
        try:
            return joined(one, other)
        except ContradictionError as found:
            self._cannot(f"{path}.allOf", f"its parts say different things of {found.keyword!r}")
            return {**other, **one}

    def _referring(self, schema: JsonSchema, path: str) -> JsonSchema:
        reference = str(schema["$ref"])
        definition = _DEFINITION.fullmatch(reference)
        target = lookup(self._root, reference)
        if definition or reference == "#":
            if reference == "#" or reference in self._open:
                if not self._subset.recursive:
                    raise UnsayableError(f"{path}.$ref", f"{reference!r} refers to itself")
            elif definition:
                self._define(definition[1], unquote(definition[2]).replace("~1", "/").replace("~0", "~"), reference)
            beside = self._beside(schema, path)
            return {"anyOf": [{"$ref": reference}], **beside} if beside else {"$ref": reference}
        if reference in self._open or not isinstance(target, dict):
            self._cannot(f"{path}.$ref", f"{reference!r} refers to itself in a way that has no end")
            return {"type": "object", **self._beside(schema, path)}
        self._open.append(reference)
        made = self._convert({**target, **without(schema, "$ref")}, path)
        self._open.pop()
        return made

    def _define(self, place: str, name: str, reference: str) -> None:
        if (place, name) not in self._definitions:
            self._open.append(reference)
            self._definitions[place, name] = self._convert(self._root[place][name], f"{self._field}.{place}.{name}")
            self._open.pop()

    def _any_of(self, schema: JsonSchema, keyword: str, path: str) -> JsonSchema:
        branches = schema[keyword]
        if keyword == "oneOf" and not apart(branches, self._root):
            self._lose(f"{path}.oneOf", f"{self._provider} has no 'oneOf'; it becomes 'anyOf'")
        around = without(schema, keyword, *_ANNOTATIONS, *_SAYS_NOTHING)
        made: list[JsonSchema] = []
        for index, branch in enumerate(branches):
            if branch is not False:
                one = self._convert({"allOf": [branch, around]} if around else branch, f"{path}.{keyword}.{index}")
                made += [each for each in (one["anyOf"] if one.keys() == {"anyOf"} else [one]) if each not in made]
        if not made:
            self._cannot(path, "no value fits it")
        return {"anyOf": made, **self._beside(schema, path)}

    def _plain(self, schema: JsonSchema, path: str) -> JsonSchema:
        if (values := listed_values(schema)) is not None:
            made = self._listed(values, schema, path)
            return made | self._beside(without(schema, "format"), path)
        kinds = _kinds(schema)
        if not kinds:
            return self._anything(schema, path)
        real = [kind for kind in kinds if kind != "null"]
        if len(kinds) > 1 and (len(real) > 1 or real[0] in ("object", "array")):
            apart_from_words = without(schema, *_ANNOTATIONS)
            branches = [apart_from_words | {"type": kind} if kind != "null" else _NULL for kind in kinds]
            said = {keyword: schema[keyword] for keyword in _ANNOTATIONS if keyword in schema}
            return self._any_of({"anyOf": branches, **said}, "anyOf", path)
        made = {"type": kinds[0] if len(kinds) == 1 else kinds}
        if real == ["object"]:
            self._add_properties(made, schema, path)
        elif real == ["array"]:
            self._add_items(made, schema, path)
        fitting = _APPLIES_TO.get("number" if real == ["integer"] else real[0] if real else "null", frozenset())
        return made | self._beside(without(schema, *(_ONE_TYPE - fitting)), path)

    def _anything(self, schema: Mapping[str, Any], path: str) -> JsonSchema:
        if self._subset.closed:
            raise UnsayableError(path, "any value fits it")
        return self._beside(schema, path)

    def _listed(self, values: list[Any], schema: JsonSchema, path: str) -> JsonSchema:
        named = _kinds(schema)
        if not all(type(value) in _TYPE_OF for value in values):
            self._cannot(f"{path}.enum", "it lists objects or arrays")
            return {"type": named[0] if len(named) == 1 else named} if named else {}
        values = [value for value in values if not named or _is_of(value, named)]
        kinds = list(dict.fromkeys(_TYPE_OF[type(value)] for value in values))
        if not values:
            self._cannot(path, "no value fits it")
            return {"type": named[0] if len(named) == 1 else named}
        made: JsonSchema = {"type": kinds[0] if len(kinds) == 1 else kinds}
        taken = [value for value in values if type(value) in self._subset.enums]
        if len(taken) == len(values):
            return made | {"enum": list(values)}
        if taken and all(value is None or value in taken for value in values):
            rest = [kind for kind in kinds if kind != "null"]
            return {"anyOf": [{"type": rest[0] if len(rest) == 1 else rest, "enum": taken}, dict(_NULL)]}
        if kinds != ["null"]:
            self._lose(f"{path}.enum", f"{self._provider} lists no values of this type")
        return made

    def _add_properties(self, made: JsonSchema, schema: JsonSchema, path: str) -> None:
        others = schema.get("additionalProperties")
        properties = properties_of(schema)
        required = [name for name in schema.get("required", ()) if name in properties]
        for name in schema.get("required", ()):
            if name not in properties:
                self._cannot(f"{path}.required", f"{name!r} is required and has no schema")
        if self._subset.closed and (others not in (None, False) or (others is None and not properties)):
            raise UnsayableError(path, "it takes properties that are not named")
        made["properties"] = {}
        for name, sub in properties.items():
            one = self._convert(sub, f"{path}.properties.{name}")
            made["properties"][name] = nullable(one) if self._subset.all_required and name not in required else one
        if self._subset.all_required or required:
            made["required"] = list(properties) if self._subset.all_required else required
        if self._subset.closed:
            made["additionalProperties"] = False
        elif isinstance(others, bool) or others == {}:
            made["additionalProperties"] = others is not False
        elif isinstance(others, Mapping):
            made["additionalProperties"] = self._convert(others, f"{path}.additionalProperties")

    def _add_items(self, made: JsonSchema, schema: JsonSchema, path: str) -> None:
        items = schema.get("items")
        first = items if isinstance(items, list) else schema.get("prefixItems")
        if isinstance(first, list):
            if not self._subset.tuples:
                self._cannot(f"{path}.prefixItems", "its places have schemas of their own")
                return
            items = schema.get("additionalItems") if items is first else items
            made["prefixItems"] = [self._convert(one, f"{path}.prefixItems.{at}") for at, one in enumerate(first)]
        elif self._subset.closed and not isinstance(items, Mapping):
            raise UnsayableError(f"{path}.items", "its items may be anything")
        if isinstance(items, Mapping) and (items or self._subset.closed):
            made["items"] = self._convert(items, f"{path}.items")

    def _beside(self, schema: Mapping[str, Any], path: str) -> JsonSchema:
        """All that stands beside the shape: as it is if the provider takes it, and otherwise in words."""
        made: JsonSchema = {}
        words: list[str] = []
        for keyword, value in schema.items():
            if keyword in _SHAPE or keyword in _SAYS_NOTHING:
                continue
            if self._takes(keyword, value):
                made[keyword] = copied(value)
            elif keyword in _OF_OTHER_PROPERTIES and value is not False:
                self._cannot(f"{path}.{keyword}", f"it has no {keyword!r}")
            elif keyword not in _NEED_NO_WORDS and not (keyword == "default" and value is None):
                text = as_text(value) if keyword == "default" or not isinstance(value, dict | list) else ""
                told = 0 < len(text) <= _MAX_WORDS
                words += [f"{keyword}: {text}"] if told else []
                if keyword != "default" or not told:
                    then = "; the description says it" if told else ""
                    self._lose(f"{path}.{keyword}", f"{self._provider} does not take {keyword!r} here{then}")
        if words:
            made["description"] = f"{made.get('description', '')} ({', '.join(words)})".strip()
        return made

    def _takes(self, keyword: str, value: Any) -> bool:
        if keyword == "format":
            return self._subset.formats is None or value in self._subset.formats
        takes = self._subset.takes
        return keyword in self._subset.keywords and (takes is None or takes(keyword, value))


def nullable(schema: JsonSchema) -> JsonSchema:
    """A schema that takes null too."""
    if "anyOf" in schema:
        there = any("null" in branch.get("type", ()) for branch in schema["anyOf"])
        return schema if there else schema | {"anyOf": [*schema["anyOf"], dict(_NULL)]}
    kinds = schema.get("type", [])
    if "null" in kinds:
        return schema
    if isinstance(kinds, list) and kinds:
        return schema | {"type": [*kinds, "null"]} | _with_null(schema)
    if kinds in ("string", "integer", "number", "boolean"):
        return schema | {"type": [kinds, "null"]} | _with_null(schema)
    words: JsonSchema = {keyword: schema[keyword] for keyword in ("title", "description") if keyword in schema}
    return {"anyOf": [without(schema, *words), dict(_NULL)], **words}


def _with_null(schema: JsonSchema) -> JsonSchema:
    return {"enum": [*schema["enum"], None]} if "enum" in schema else {}


def _constrains(schema: Mapping[str, Any]) -> bool:
    return bool(schema.keys() - _SAYS_NOTHING - set(_ANNOTATIONS))


def _names_properties(node: Any) -> bool:
    if isinstance(node, Mapping):
        return "properties" in node or "$ref" in node or any(map(_names_properties, node.values()))
    return isinstance(node, list) and any(map(_names_properties, node))


def _is_of(value: Any, kinds: list[str]) -> bool:
    kind = _TYPE_OF[type(value)]
    return (
        kind in kinds
        or (kind == "integer" and "number" in kinds)
        or (kind == "number" and "integer" in kinds and value.is_integer())
    )


def _kinds(schema: Mapping[str, Any]) -> list[str]:
    """The types that a schema names or means."""
    kinds = schema.get("type")
    if isinstance(kinds, str):
        return [kinds]
    if isinstance(kinds, list):
        return list(dict.fromkeys(kinds))
    if "properties" in schema:
        return ["object"]
    return ["array"] if "items" in schema or "prefixItems" in schema else []

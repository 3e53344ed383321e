"""JSON Schema in the part of it that a provider takes; what does not fit is told in words, and is a loss."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from toolcrib.core.errors import ExportError
from toolcrib.core.json import as_text, copied, lookup
from toolcrib.core.references import with_pointers
from toolcrib.core.schema import JsonSchema, compile_schema
from toolcrib.core.schema_facts import listed_values, without
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.joining import ContradictionError, apart, joined
from toolcrib.formats.provider import Loss
from toolcrib.formats.schemas import properties_of

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
_MAX_DEPTH = 60
"""How many levels a schema has, and how many references one place leads through."""
_MOST_INSIDE_ITSELF = 2
"""Once inside may be chance: two parts of a whole refer to the same."""
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
    type_lists: bool = True
    """A value may have one of several types by a list of them; if not, there is an alternative for each."""
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
    root = dict(with_pointers(spec.parameters))
    return _Rewriting(spec.name, "parameters", root, subset, losses).parameters()


def rewritten_output(spec: ToolSpec, subset: Subset, losses: list[Loss]) -> JsonSchema:
    """The schema of what a tool returns, likewise."""
    root = dict(with_pointers(spec.returns))
    return _Rewriting(spec.name, "returns", root, subset, losses).output()


class _Rewriting:
    """``root`` is where references start.

    A definition waits until the part that refers to it is done: a long way from one to the next is no deep one.
    """

    def __init__(self, tool: str, field: str, root: JsonSchema, subset: Subset, losses: list[Loss]) -> None:
        self._tool = tool
        self._field = field
        self._root = root
        self._subset = subset
        self._provider = subset.provider
        self._losses = losses
        self._definitions: dict[tuple[str, str], JsonSchema] = {}
        self._waiting: deque[tuple[str, str, str]] = deque()
        self._now = "#"
        self._leads: dict[str, dict[str, str]] = {}
        """From each definition to those that it refers to, and where it does."""
        self._open: tuple[str, ...] = ()
        """The references that are written out around this place, each once for each level."""
        self._written: set[str] = set()
        """Those that are written out at this level."""
        self._depth = 0
        self._left = _MAX_PARTS

    def parameters(self) -> JsonSchema:
        schema = self._flat({"type": "object", "properties": {}} | self._root, "parameters")
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
        while self._waiting:
            place, name, self._now = self._waiting.popleft()
            self._open = ()
            self._definitions[place, name] = self._convert(self._root[place][name], f"{self._field}.{place}.{name}")
        if not self._subset.recursive:
            self._refuse_circles()
        for place in ("$defs", "definitions"):
            names = [name for name in self._root.get(place, ()) if (place, name) in self._definitions]
            if names:
                made[place] = {name: self._definitions[place, name] for name in names}
        return made

    def _refuse_circles(self) -> None:
        try:
            TopologicalSorter(self._leads).prepare()
        except CycleError as found:
            reference, comes_from, *_ = found.args[1]
            raise UnsayableError(self._leads[comes_from][reference], f"{reference!r} refers to itself") from None

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
        if self._depth == _MAX_DEPTH:
            self._cannot(path, f"it nests deeper than {_MAX_DEPTH} levels")
            return {}
        before, self._written = self._open, set()
        self._depth += 1
        flat = self._flat(schema, path)
        self._open = (*before, *self._written)
        made = self._shaped(flat, path)
        self._depth -= 1
        self._open = before
        return made

    def _shaped(self, schema: JsonSchema, path: str) -> JsonSchema:
        if "$ref" in schema:
            return self._referring(schema, path)
        for keyword in ("anyOf", "oneOf"):
            if isinstance(schema.get(keyword), list):
                return self._any_of(schema, keyword, path)
        return self._plain(schema, path)

    def _flat(self, schema: Mapping[str, Any], path: str, way: tuple[str, ...] = ()) -> JsonSchema:
        """Without ``allOf``, and without a ``$ref`` beside something that says more of the value.

        ``way`` are the references that lead here from the schema at that place.
        """
        flat: JsonSchema = dict(schema)
        while "allOf" in flat or ("$ref" in flat and _constrains(without(flat, "$ref"))):
            parts = flat.pop("allOf", [])
            if "$ref" in flat:
                parts = [{"$ref": flat.pop("$ref")}, *parts]
            elif len(parts) == 1 and isinstance(parts[0], dict) and "$ref" in parts[0] and not _constrains(flat):
                return parts[0] | flat  # an old way of writing something beside a reference
            for part in parts:
                self._count(path)
                flat = self._joined(flat, self._target(part, path, way), path)
        return flat

    def _target(self, part: Any, path: str, way: tuple[str, ...]) -> Mapping[str, Any]:
        """A part of a whole, and what it refers to."""
        if part is False:
            self._cannot(path, "no value fits it")
        if not isinstance(part, Mapping):
            return {}
        whole = part if "$ref" in part else self._flat(part, path, way)
        if "$ref" not in whole:
            return whole
        target = lookup(self._root, whole["$ref"])
        reference = unquote(str(whole["$ref"]))
        if reference in way or len(way) == _MAX_DEPTH or not self._has_end(reference, target):
            self._cannot(f"{path}.$ref", f"{reference!r} leads nowhere, or to itself with no end")
            return without(whole, "$ref")
        self._written.add(reference)
        way = (*way, reference)
        beside = self._target(without(whole, "$ref"), path, way)
        return self._joined(beside, self._target(target, path, way), path)

    def _has_end(self, reference: str, target: Any) -> bool:
        """Whether what is referred to can be written out here, where it is perhaps written out already."""
        return isinstance(target, dict) and self._open.count(reference) < _MOST_INSIDE_ITSELF

    def _joined(self, one: Mapping[str, Any], other: Mapping[str, Any], path: str) -> JsonSchema:
        try:
            return joined(one, other)
        except ContradictionError as found:
            self._cannot(f"{path}.allOf", f"its parts say different things of {found.keyword!r}")
            return {**other, **one}

    def _referring(self, schema: JsonSchema, path: str) -> JsonSchema:
        target = lookup(self._root, schema["$ref"])
        reference = unquote(str(schema["$ref"]))
        definition = _DEFINITION.fullmatch(reference)
        if definition or reference == "#":
            self._leads.setdefault(self._now, {}).setdefault(reference, f"{path}.$ref")
            if definition:
                self._define(definition[1], definition[2].replace("~1", "/").replace("~0", "~"), reference)
            beside = self._beside(schema, path)
            made = {"$ref": reference.replace("%", "%25")}
            return {"anyOf": [made], **beside} if beside else made
        if not self._has_end(reference, target):
            self._cannot(f"{path}.$ref", f"{reference!r} leads nowhere, or to itself with no end")
            return {"type": "object", **self._beside(schema, path)}
        self._open = (*self._open, reference)
        return self._convert({**target, **without(schema, "$ref")}, path)

    def _define(self, place: str, name: str, reference: str) -> None:
        if (place, name) not in self._definitions:
            self._definitions[place, name] = {}
            self._waiting.append((place, name, reference))

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
        said = {keyword: schema[keyword] for keyword in _ANNOTATIONS if keyword in schema}
        return {"anyOf": made, **self._beside(said, path)}

    def _plain(self, schema: JsonSchema, path: str) -> JsonSchema:
        if (values := listed_values(schema)) is not None:
            listed = self._listed(values, schema, path)
            if listed is not None:
                return listed | self._beside(without(schema, *_ONE_TYPE), path)
            schema = without(schema, "enum", "const")
        kinds = _kinds(schema)
        if not kinds:
            return self._anything(schema, path)
        real = [kind for kind in kinds if kind != "null"]
        if len(kinds) > 1 and (len(real) > 1 or real[0] in ("object", "array") or not self._subset.type_lists):
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

    def _listed(self, values: list[Any], schema: JsonSchema, path: str) -> JsonSchema | None:
        """The values by their types; None if they cannot be listed."""
        named = _kinds(schema)
        if not all(type(value) in _TYPE_OF for value in values):
            self._cannot(f"{path}.enum", "it lists objects or arrays")
            return None
        others = {keyword: schema[keyword] for keyword in schema if keyword in _ONE_TYPE}
        by_kind: dict[str, list[Any]] = {}
        for value in values:
            if (not named or _is_of(value, named)) and (not others or compile_schema(others).is_valid(value)):
                by_kind.setdefault(_TYPE_OF[type(value)], []).append(value)
        listable = self._subset.type_lists and type(None) in self._subset.enums
        if "null" in by_kind and len(by_kind) == 2 and listable:
            [kind] = by_kind.keys() - {"null"}
            return {"type": [kind, "null"], "enum": [*by_kind[kind], None]}
        made = [self._enum(kind, listed, path) for kind, listed in by_kind.items()]
        if not made:
            self._cannot(path, "no value fits it")
            return None
        return made[0] if len(made) == 1 else {"anyOf": made}

    def _enum(self, kind: str, values: list[Any], path: str) -> JsonSchema:
        if kind == "null":
            return dict(_NULL)
        if type(values[0]) not in self._subset.enums:
            self._lose(f"{path}.enum", f"{self._provider} lists no values of the type {kind!r}")
            return {"type": kind}
        return {"type": kind, "enum": values}

    def _add_properties(self, made: JsonSchema, schema: JsonSchema, path: str) -> None:
        others = schema.get("additionalProperties")
        properties = properties_of(schema)
        required = [name for name in schema.get("required", ()) if name in properties]
        for name in schema.get("required", ()):
            if name not in properties:
                self._cannot(f"{path}.required", f"{name!r} is required and has no schema")
        if self._subset.closed and (others not in (None, False) or (others is None and not properties)):
            raise UnsayableError(path, "it takes properties that are not named")
        if properties or self._subset.closed:
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
        if isinstance(items, Mapping) and (one := self._convert(items, f"{path}.items")):
            made["items"] = one

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

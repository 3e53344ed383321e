"""Parameter schemas as providers take them, and local references inside schemas."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from toolcrib.core.json import copied, lookup
from toolcrib.core.schema import JsonSchema
from toolcrib.core.schema_facts import listed_values, without
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.provider import Loss

T = TypeVar("T")

MAX_DEPTH = 4
"""How deep a schema is told in words."""
MAX_LENGTH = 2_000
"""How many characters of words one schema gets; what it has beyond them is an ellipsis."""
_LAST = 100
"""How long the last part may be that stands before the ellipsis as a whole."""
_MAX_WORK = 10 * MAX_LENGTH
"""How many characters are written for all the schemas of a tool. Equal alternatives count each time."""
_ELLIPSIS = "..."
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
        schema = _over(copied(target), without(schema, "$ref"))
    return schema


def _over(target: JsonSchema, schema: JsonSchema) -> JsonSchema:
    """What refers and what it refers to; both say which parameters there are."""
    both: JsonSchema = {}
    if "properties" in target:
        both["properties"] = {**properties_of(target), **properties_of(schema)}
    if "required" in target:
        both["required"] = list(dict.fromkeys([*target["required"], *schema.get("required", ())]))
    return target | schema | both


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
    plain: Callable[[Mapping[str, Any], Writer], str]
    """Gets the schema, and the writer of the schemas inside it."""


class Writer:
    """Writes the schemas of one tool in ``words``: a few thousand characters, however large the schemas are.

    ``root`` is the document that references start from.
    """

    def __init__(self, words: TypeWords, root: Mapping[str, Any]) -> None:
        self._words = words
        self._root = root
        self._left = _MAX_WORK
        self._room = 0
        self._depth = 0

    def write(self, schema: Any) -> str:
        """The words for one parameter, or for what comes back."""
        room = self._room = min(MAX_LENGTH - _LAST, self._left)
        text = self.joined("", [schema], self.inner)
        self._left -= room - self._room
        return text if len(text) <= MAX_LENGTH else text[: MAX_LENGTH - len(_ELLIPSIS)] + _ELLIPSIS

    def inner(self, schema: Any) -> str:
        """The words for a schema inside the one that is being written."""
        if not isinstance(schema, dict) or self._depth > MAX_DEPTH:
            return self._words.anything
        self._depth += 1
        try:
            if isinstance(reference := schema.get("$ref"), str):
                return self.inner(lookup(self._root, reference))
            if (values := listed_values(schema)) is not None:
                return self.joined("|", values, self._words.literal)
            if branches := alternatives(schema):
                return self.joined("|", branches, self.inner)
            return self._words.plain(schema, self)
        finally:
            self._depth -= 1

    def joined(self, separator: str, items: Iterable[T], write: Callable[[T], str]) -> str:
        """What ``write`` makes of the items, each text once, as long as there is room for more."""
        texts: dict[str, None] = {}
        for item in items:
            before = self._room
            if before <= 0:
                texts[_ELLIPSIS] = None
                break
            text = write(item)
            texts[text] = None
            self._room = min(self._room, before - len(text) - len(separator))  # what is inside it is counted already
        return separator.join(texts)


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

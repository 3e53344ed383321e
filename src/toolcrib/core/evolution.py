"""Which change of a JSON Schema refuses what the schema before it took.

A change is compatible if every call that was accepted is accepted still. What cannot be compared counts as
broken, so "compatible" can be trusted. One thing is not counted: if the old schema listed its parameters and said
nothing of others, a call that passed others all the same; otherwise no parameter could ever be added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from toolcrib.core.defaults import applying, properties, required_defaults, required_names
from toolcrib.core.json import same
from toolcrib.core.references import with_pointers
from toolcrib.core.schema import JsonSchema, dialect_of
from toolcrib.core.schema_facts import (
    ANNOTATIONS,
    Schema,
    accepts,
    alternatives,
    constraints,
    finite_values,
    joined,
    lost_types,
    references,
    resolved,
    tighter_limits,
    types_of,
    without,
)


def breaking_changes(old: JsonSchema, new: JsonSchema) -> list[str]:
    """What the parameters ``new`` refuse that ``old`` took, one phrase each; empty means compatible."""
    if same(old, new):
        return []
    old, new = dict(with_pointers(old)), dict(with_pointers(new))
    comparison = _Comparison(old, new)
    if dialect_of(old) != dialect_of(new) or dialect_of(old).endswith("draft-04/schema"):
        return ["its '$schema' changed, or is one that is not compared"]
    filled_before, filled_now = required_defaults(old), required_defaults(new)
    old = {**old, "required": [name for name in old.get("required", ()) if name not in filled_before]}
    relaxed = {**new, "required": [name for name in new.get("required", ()) if name not in filled_now]}
    try:
        complaints = list(comparison.narrowed(old, relaxed, ""))
        if not same(filled_before, filled_now):
            complaints += _about_defaults(filled_before, filled_now, new, comparison)
    except _TooMuchError:
        return ["its parameters have too many alternatives or values to be compared"]
    return list(dict.fromkeys(complaints))


def _about_defaults(
    before: dict[str, Any], filled: dict[str, Any], new: JsonSchema, comparison: _Comparison
) -> Iterator[str]:
    for name in required_names(new):
        if name in before and name not in filled:
            yield f"{_subject(name)} is now required"
    for name, value in filled.items():
        members = [properties(part)[name] for part in applying(new, new) if name in properties(part)]
        if not all(comparison.accepts_now(member, value) for member in members):
            yield f"parameter {name!r} is now required and its default does not fit"
    if _ACROSS_PROPERTIES & new.keys():
        yield "its defaults changed together with a rule about several parameters"


_ACROSS_PROPERTIES = frozenset({
    "minProperties", "maxProperties", "dependentRequired", "dependentSchemas", "if", "not", "anyOf", "oneOf", "allOf",
    "propertyNames", "patternProperties", "unevaluatedProperties", "$ref",
})  # fmt: skip
_COMPARED_WHOLE = {
    "string": ("pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"),
    "array": ("contains", "minContains", "maxContains", "unevaluatedItems"),
    "object": ("propertyNames", "dependentRequired", "dependentSchemas", "unevaluatedProperties", "dependencies"),
    "": ("not", "oneOf", "$dynamicRef", "$recursiveRef"),
}
_KNOWN = frozenset({
    "type", "enum", "const", "anyOf", "allOf", "$ref", "if", "then", "else", "properties", "required",
    "additionalProperties", "patternProperties", "items", "prefixItems", "additionalItems", "uniqueItems",
    "multipleOf", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minLength", "maxLength", "minItems",
    "maxItems", "minProperties", "maxProperties",
}).union(*_COMPARED_WHOLE.values())  # fmt: skip


_MAX_WORK = 1_000_000
"""What one comparison may cost, about as many as the words that it reads; after that it counts as broken."""


class _TooMuchError(Exception):
    pass


@dataclass
class _Comparison:
    """Two schemas with the documents their references point into."""

    old_root: JsonSchema
    new_root: JsonSchema
    _assumed: set[tuple[str, str]] = field(default_factory=set)
    _left: int = _MAX_WORK

    @cached_property
    def _same_documents(self) -> bool:
        return same(self.old_root, self.new_root)

    def _spend(self, work: int) -> None:
        self._left -= work
        if self._left < 0:
            raise _TooMuchError

    def narrowed(self, old: Schema, new: Schema, path: str) -> Iterator[str]:
        """What ``new`` refuses that ``old`` takes; every value of ``old`` is considered, or counted as refused."""
        self._spend(10 + len(path) // 10)
        what = _subject(path)
        if old is False or new is True or (same(old, new) and self._same_references(old)):
            return
        old = {} if old is True else old
        if new is False:
            yield f"{what} is no longer accepted"
            return
        if not constraints(new):
            return
        if (finite := finite_values(old)) is not None:
            yield from self._values_refused(finite, old, new, what)
        elif "$ref" in old or "$ref" in new:
            yield from self._through_references(old, new, path)
        elif choices := alternatives(old):
            for alternative in choices:
                yield from self.narrowed(alternative, new, path)
        elif "anyOf" in new:
            yield from self._into_alternatives(old, new, path)
        else:
            yield from self._by_keyword(old, new, path, what)

    def accepts_now(self, schema: Schema, value: Any) -> bool:
        return accepts(schema, self.new_root, value, unknown=False)

    def _values_refused(self, values: list[Any], old: Schema, new: Schema, what: str) -> Iterator[str]:
        for value in values:
            self._spend(len(values))
            if accepts(old, self.old_root, value, unknown=True) and not self.accepts_now(new, value):
                yield f"{what} no longer takes {value!r}"

    def _through_references(self, old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[str]:
        pair = (repr(old), repr(new))
        self._spend(sum(map(len, pair)) // 10)
        if pair in self._assumed:
            return  # a recursive schema: the pair is being compared already
        self._assumed.add(pair)
        referring, root = (old, self.old_root) if "$ref" in old else (new, self.new_root)
        target = resolved(referring["$ref"], root)
        if target is None:
            yield f"{_subject(path)} refers to {referring['$ref']!r}, which cannot be compared"
        elif referring is old:
            yield from self.narrowed(joined(target, without(old, "$ref")), new, path)
        else:
            yield from self.narrowed(old, target, path)
            yield from self.narrowed(old, without(new, "$ref"), path)

    def _into_alternatives(self, old: Mapping[str, Any], new: Mapping[str, Any], path: str) -> Iterator[str]:
        attempts = [list(self._tried(old, choice, path)) for choice in new["anyOf"]]
        if attempts and all(attempts):
            yield min(attempts, key=len)[0]
        yield from self.narrowed(old, without(new, "anyOf"), path)

    def _tried(self, old: Schema, new: Schema, path: str) -> Iterator[str]:
        """As narrowed, but what was assumed on the way is forgotten: the attempt may fail."""
        before = set(self._assumed)
        self._spend(len(before))
        yield from self.narrowed(old, new, path)
        self._assumed = before

    def _by_keyword(self, old: Mapping[str, Any], new: Mapping[str, Any], path: str, what: str) -> Iterator[str]:
        types = types_of(old)
        if lost := lost_types(old, new):
            yield f"{what} no longer takes {' or '.join(sorted(lost))}"
        if "enum" in new or "const" in new:
            yield f"{what} takes only certain values now"
        for branch in new.get("allOf", ()):
            known = any(same(branch, other) for other in old.get("allOf", ()))
            if not (known and self._same_references(branch)):
                yield from self.narrowed(without(old, "allOf"), branch, path)
        yield from self._rules_compared_whole(old, new, types, what)
        yield from tighter_limits(old, new, types, what)
        if "object" in types:
            yield from self._members(old, new, path, what)
        if "array" in types:
            yield from self._items(old, new, path, what)

    def _rules_compared_whole(
        self, old: Mapping[str, Any], new: Mapping[str, Any], types: frozenset[str], what: str
    ) -> Iterator[str]:
        relevant = [key for kind, keys in _COMPARED_WHOLE.items() if kind in types or not kind for key in keys]
        unknown = [key for key in new if key not in _KNOWN | ANNOTATIONS]
        for key in relevant + unknown:
            if key in new and not (key in old and same(old[key], new[key]) and self._same_references(new[key])):
                yield f"the rule {key!r} of {what} changed"
            elif key in new and key.startswith("unevaluated"):
                yield f"{what} changed beside its rule {key!r}"
        conditions = [{key: schema[key] for key in ("if", "then", "else") if key in schema} for schema in (old, new)]
        if "if" in new and not (same(*conditions) and self._same_references(conditions[1])):
            yield f"the condition on {what} changed"

    def _members(self, old: Mapping[str, Any], new: Mapping[str, Any], path: str, what: str) -> Iterator[str]:
        before, now = old.get("properties", {}), new.get("properties", {})
        for name in sorted(set(new.get("required", ())) - set(old.get("required", ()))):
            yield f"{_subject(_joined_path(path, name))} is now required"
        for name, sub in before.items():
            inner = _joined_path(path, name)
            if name in now:
                yield from self.narrowed(sub, now[name], inner)
            elif sub is not False:
                yield f"{_subject(inner)} was removed"
        yield from self._unnamed_members(old, new, path, what)

    def _unnamed_members(self, old: Mapping[str, Any], new: Mapping[str, Any], path: str, what: str) -> Iterator[str]:
        added = [name for name in new.get("properties", {}) if name not in old.get("properties", {})]
        patterns = new.get("patternProperties", {})
        if not same(old.get("patternProperties", {}), patterns) or not self._same_references(patterns):
            yield f"the rule 'patternProperties' of {what} changed"
        elif patterns and added:
            yield f"{_subject(_joined_path(path, added[0]))} was added beside 'patternProperties'"
        others_before, others_now = old.get("additionalProperties", True), new.get("additionalProperties", True)
        if "additionalProperties" in old or "properties" not in old:  # it spoke of those it does not name
            for name in added:
                yield from self.narrowed(others_before, new["properties"][name], _joined_path(path, name))
        if any(True for _ in self.narrowed(others_before, others_now, path)):
            yield f"{what} refuses arguments now that it does not name"

    def _items(self, old: Mapping[str, Any], new: Mapping[str, Any], path: str, what: str) -> Iterator[str]:
        tuples = [[schema.get(key) for key in ("prefixItems", "items", "additionalItems")] for schema in (old, new)]
        if any(first is not None or isinstance(items, list) for first, items, _ in tuples):
            if not same(*tuples) or not self._same_references(tuples[1]):
                yield f"the items of {what} changed"
            return
        yield from self.narrowed(old.get("items", True), new.get("items", True), f"{path}[]")

    def _same_references(self, node: Any) -> bool:
        """Whether equal text means the same: it refers to nothing, or what it may refer to is equal too."""
        return self._same_documents or next(references(node), None) is None


def _joined_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _subject(path: str) -> str:
    return f"parameter {path!r}" if path else "the tool"

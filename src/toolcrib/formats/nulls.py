"""The way back from a strict definition: the nulls of a call that stand for "not given".

Where everything is required a model says null for what it leaves out. Such a null goes, so that the default applies;
one that the tool's own schema takes is a value, and stays. Only the schema and the call decide, not what was handed
over before.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

from toolcrib.core.defaults import applying, item_schemas
from toolcrib.core.json import lookup
from toolcrib.core.references import with_pointers
from toolcrib.core.schema import Validator, compile_schema
from toolcrib.core.schema_facts import listed_values, named_types
from toolcrib.formats.schemas import required_of

_CONTAINERS = frozenset({dict, list})
_ROOT, _BRANCH = "toolcrib:root", "toolcrib:branch"
_MAX_STEPS = 200_000
"""How many schemas and values are looked at for one call."""


def holds_null(value: Any) -> bool:
    """Whether there is a null somewhere in an object or an array."""
    todo = [value]
    while todo:
        one = todo.pop()
        for item in one.values() if type(one) is dict else one:
            if item is None:
                return True
            if type(item) in _CONTAINERS:
                todo.append(item)
    return False


def without_nulls(schema: Mapping[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """``arguments`` without the nulls that stand for what is not given; as they are if there is no such null."""
    if not holds_null(arguments):
        return arguments
    root = with_pointers(schema)
    try:
        return cast(dict[str, Any], _Reading(root, arguments).clean([root], arguments))
    except (_TooMuchError, RecursionError):
        return arguments


class _TooMuchError(Exception):
    """There are more ways to read it than anybody means."""


class _Reading:
    """Reads one call. ``root`` is where references start."""

    def __init__(self, root: Mapping[str, Any], arguments: dict[str, Any]) -> None:
        self._root = root
        self._with_nulls: set[int] = set()
        _find_nulls(arguments, self._with_nulls)
        self._left = _MAX_STEPS
        self._compiled: dict[int, Validator | None] = {}

    def clean(self, schemas: list[Any], value: Any) -> Any:
        """A part of the call for which all of ``schemas`` hold, without its nulls; the same object if it has none."""
        if id(value) not in self._with_nulls:
            return value
        parts = list(self._holding(schemas, value))
        if type(value) is list:
            return [self.clean(_items(parts, index), item) for index, item in enumerate(value)]
        required = frozenset().union(*map(required_of, parts))
        cleaned = {}
        for name, item in value.items():
            members = [members[name] for part in parts if name in (members := part.get("properties", {}))]
            if item is None and members and name not in required and not all(map(self._takes_null, members)):
                continue
            cleaned[name] = self.clean(members or [part.get("additionalProperties") for part in parts], item)
        return cleaned

    def _holding(self, schemas: list[Any], value: Any) -> Iterator[Mapping[str, Any]]:
        """All that holds for the value: what is referred to, and of alternatives the one that is meant."""
        for schema in schemas:
            for part in applying(schema, self._root) if isinstance(schema, Mapping) else ():
                self._count()
                yield part
                for keyword in ("anyOf", "oneOf"):
                    if isinstance(part.get(keyword), list):
                        yield from self._holding([self._meant(part[keyword], value)], value)

    def _meant(self, branches: list[Any], value: Any) -> Any:
        """The alternative that takes the value; of several that do so without nulls, the first."""
        kind = "object" if type(value) is dict else "array"
        fitting = [branch for branch in branches if self._may_be(branch, kind)]
        if len(fitting) == 1:
            return fitting[0]
        for branch in fitting:
            if self._is_valid(branch, value):
                return branch
        return next((each for each in fitting if self._is_valid(each, self.clean([each], value))), None)

    def _may_be(self, schema: Any, kind: str) -> bool:
        return isinstance(schema, Mapping) and all(
            kind in (named_types(part) or kind) and not {"enum", "const"} & part.keys()
            for part in applying(schema, self._root)
        )

    def _takes_null(self, schema: Any, seen: frozenset[int] = frozenset()) -> bool:
        if not isinstance(schema, Mapping):
            return schema is not False
        self._count()
        if id(schema) in seen:
            return True
        seen |= {id(schema)}
        values, kinds = listed_values(schema), named_types(schema)
        if (values is not None and None not in values) or (kinds and "null" not in kinds):
            return False
        return (
            ("$ref" not in schema or self._takes_null(lookup(self._root, schema["$ref"]), seen))
            and all(self._takes_null(each, seen) for each in schema.get("allOf", ()))
            and ("anyOf" not in schema or any(self._takes_null(each, seen) for each in schema["anyOf"]))
            and ("oneOf" not in schema or sum(self._takes_null(each, seen) for each in schema["oneOf"]) == 1)
            and ("not" not in schema or not self._takes_null(schema["not"], seen))
        )

    def _is_valid(self, schema: Mapping[str, Any], value: Any) -> bool:
        self._count(_size(value))
        if id(schema) not in self._compiled:
            try:
                self._compiled[id(schema)] = compile_schema(self._alone(schema))
            except ValueError:
                self._compiled[id(schema)] = None  # it refers to another document
        validator = self._compiled[id(schema)]
        try:
            return validator is not None and validator.is_valid(value)
        except ValueError:
            return False

    def _alone(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """A document of that schema, in which its references lead to where they do in its own."""
        definitions = {**self._root.get("definitions", {}), _BRANCH: schema}
        root = {**self._root, "$id": _ROOT, "id": _ROOT, "definitions": definitions}
        named = {"$schema": self._root["$schema"]} if "$schema" in self._root else {}
        return {**named, "definitions": {"root": root}, "allOf": [{"$ref": f"{_ROOT}#/definitions/{_BRANCH}"}]}

    def _count(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise _TooMuchError


def _find_nulls(value: Any, found: set[int]) -> bool:
    """Whether there is a null in it; all the objects and arrays of which that is true are in ``found`` then."""
    there = False
    for item in value.values() if type(value) is dict else value:
        there |= item is None or (type(item) in _CONTAINERS and _find_nulls(item, found))
    if there:
        found.add(id(value))
    return there


def _size(value: Any) -> int:
    if type(value) not in _CONTAINERS:
        return 1
    return 1 + sum(map(_size, value.values() if type(value) is dict else value))


def _items(parts: list[Mapping[str, Any]], index: int) -> list[Any]:
    schemas = []
    for part in parts:
        first, rest = item_schemas(part)
        schemas.append(first[index] if index < len(first) else rest)
    return schemas

"""Strict definitions: the provider holds its model to the schema, which is rewritten into the subset that it can hold.

A tool whose parameters that subset cannot say is handed over as it is, and the losses say why. What comes back from a
strict definition is read by :mod:`toolcrib.formats.nulls`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.provider import Loss
from toolcrib.formats.rewriting import Subset, UnsayableError, rewritten

_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_LOOKS_AROUND = re.compile(r"\(\?(?:[=!]|<[=!])")

MOST_PROPERTIES = 5_000
MOST_LEVELS = 10
MOST_ENUM_VALUES = 1_000
MOST_CHARACTERS = 120_000
"""Of the names of properties and definitions and the values of enums, all together."""
LARGE_ENUM, MOST_IN_LARGE_ENUM = 250, 15_000
"""An enum of more values than that has at most so many characters."""


def _openai_takes(keyword: str, value: Any) -> bool:
    return not (keyword == "pattern" and _LOOKS_AROUND.search(str(value))) and not isinstance(value, bool)


def openai_subset(provider: str) -> Subset:
    return Subset(
        f"the strict mode of {provider}",
        frozenset({
            "description", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf",
            "minItems", "maxItems",
        }),
        _FORMATS,
        closed=True,
        all_required=True,
        takes=_openai_takes,
    )  # fmt: skip


ANTHROPIC = Subset(
    "the strict mode of Anthropic",
    frozenset({"description", "title", "default", "minItems"}),
    _FORMATS | {"uri"},
    closed=True,
    recursive=False,
    type_lists=False,  # refused beside an enum: no value is of "the type ['string', 'null']"
    takes=lambda keyword, value: keyword != "minItems" or value in (0, 1),
)


def strict_schema(spec: ToolSpec, subset: Subset, losses: list[Loss]) -> JsonSchema | None:
    """The parameters as ``subset`` says them; None, and the reason in the losses, if it cannot."""
    found: list[Loss] = []
    try:
        schema = rewritten(spec, subset, found)
        if subset.all_required:
            _check_size(schema)
    except UnsayableError as error:
        losses.append(not_strict(spec.name, error.path, error.reason))
        return None
    losses += found
    return schema


def not_strict(tool: str, path: str, reason: str) -> Loss:
    return Loss(tool, path, f"it is sent without 'strict': {reason}")


def _check_size(schema: JsonSchema) -> None:
    """OpenAI counts the root and each definition by itself, and does not follow references."""
    properties = characters = values = 0
    for place in ("$defs", "definitions"):
        characters += sum(map(len, schema.get(place, ())))
    for part in schemas_in(schema):
        names = part.get("properties", {})
        properties += len(names)
        listed = part.get("enum", [])
        values += len(listed)
        length = sum(len(value) for value in listed if isinstance(value, str))
        characters += length + sum(map(len, names))
        if len(listed) > LARGE_ENUM and length > MOST_IN_LARGE_ENUM:
            raise UnsayableError("parameters", f"an enum of {len(listed):,} has over {MOST_IN_LARGE_ENUM:,} characters")
    for counted, most, what in (
        (properties, MOST_PROPERTIES, "properties"),
        (_levels(schema), MOST_LEVELS, "levels of objects in objects"),
        (values, MOST_ENUM_VALUES, "values of enums"),
        (characters, MOST_CHARACTERS, "characters of names and values"),
    ):
        if counted > most:
            raise UnsayableError("parameters", f"{counted:,} {what} are more than the {most:,} that are taken")


def schemas_in(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A rewritten schema and all those in it."""
    todo: list[Mapping[str, Any]] = [schema]
    while todo:
        part = todo.pop()
        yield part
        todo += _inside(part)
        for place in ("$defs", "definitions"):
            todo += part.get(place, {}).values()


def _inside(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    items = [part["items"]] if "items" in part else []
    return [*part.get("properties", {}).values(), *part.get("anyOf", ()), *items]


def _levels(schema: Mapping[str, Any]) -> int:
    deepest = 0
    definitions = [each for place in ("$defs", "definitions") for each in schema.get(place, {}).values()]
    todo = [(part, 0) for part in (schema, *definitions)]
    while todo:
        part, depth = todo.pop()
        depth += part.get("type") == "object"
        deepest = max(deepest, depth)
        todo += [(inner, depth) for inner in _inside(part)]
    return deepest

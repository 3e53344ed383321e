"""Command line words become a tool's arguments, typed by its JSON Schema.

``--name value`` and ``--name=value``; a yes-or-no argument is ``--name`` or ``--no-name``; a list is the option several
times, or JSON; an object is JSON. ``-`` and ``_`` in names are the same. A word that does not fit its type stays text,
so that the tool's own check complains of it by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from toolcrib.core.errors import InvalidArgumentsError, did_you_mean
from toolcrib.core.json import read_json
from toolcrib.core.references import with_pointers
from toolcrib.core.schema_facts import followed, named_types
from toolcrib.core.spec import ToolSpec

_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def typed_arguments(spec: ToolSpec, words: Sequence[str]) -> dict[str, Any]:
    """The arguments that ``words`` give, or InvalidArgumentsError that names the word."""
    root = with_pointers(spec.parameters)
    properties: Mapping[str, Any] = root.get("properties", {})
    arguments: dict[str, Any] = {}
    for option, text in _pairs(spec, words):
        name, negated = _resolve(spec, option, properties)
        schema = properties.get(name, {})
        kinds = _kinds(schema, root)
        if text is None and kinds and "boolean" not in kinds:
            raise _wrong(spec, name, f"argument --{option} of {spec.name!r} needs a value")
        value = not negated if text is None else _value(text, schema, root)
        if name not in arguments:
            arguments[name] = value
        elif "array" in kinds:
            arguments[name] = [*_as_list(arguments[name]), *_as_list(value)]
        else:
            raise _wrong(spec, name, f"argument --{option} of {spec.name!r} is given twice")
    return arguments


def _wrong(spec: ToolSpec, argument: str, message: str) -> InvalidArgumentsError:
    return InvalidArgumentsError(message, tool=spec.name, argument=argument)


def _as_list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _pairs(spec: ToolSpec, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Options with their values; None if an option stands alone."""
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        if not word.startswith("--") or len(word) == 2:
            raise _wrong(spec, word, f"{word!r} is not an argument of {spec.name!r}; write --NAME VALUE")
        option, equals, text = word[2:].partition("=")
        if equals:
            yield option, text
        elif waiting and not waiting[0].startswith("--"):
            yield option, waiting.pop(0)
        else:
            yield option, None


def _resolve(spec: ToolSpec, option: str, properties: Mapping[str, Any]) -> tuple[str, bool]:
    """The argument that an option means, and whether it says no to it."""
    names = {name.replace("-", "_"): name for name in properties}
    wanted = option.replace("-", "_")
    if option in properties or wanted in names:
        return (option if option in properties else names[wanted]), False
    if wanted.startswith("no_") and wanted[3:] in names:
        return names[wanted[3:]], True
    if spec.parameters.get("additionalProperties") or not properties:
        return option, False
    raise _wrong(spec, option, f"{spec.name!r} has no argument {option!r}{did_you_mean(wanted, properties)}")


def _kinds(schema: Any, root: Mapping[str, Any]) -> set[str]:
    """The JSON types that a schema lets through; none if it does not say."""
    schema = followed(schema, root)
    if not isinstance(schema, Mapping):
        return set()
    found = named_types(schema)
    for key in ("anyOf", "oneOf", "allOf"):
        for part in schema.get(key, ()):
            found |= _kinds(part, root)
    for choice in (*schema.get("enum", ()), *([schema["const"]] if "const" in schema else ())):
        found.add(_kind(choice))
    return found


def _kind(value: Any) -> str:
    kinds = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}
    return kinds.get(type(value), "null")


def _value(text: str, schema: Any, root: Mapping[str, Any]) -> Any:
    kinds = _kinds(schema, root)
    if not kinds:
        return _json_or(text, text)
    if "boolean" in kinds and text.lower() in _BOOLEANS and not (kinds & {"integer", "number"} and text.isdigit()):
        return _BOOLEANS[text.lower()]
    read = _json_or(text, None)
    if type(read) in (int, float) and kinds & {"integer", "number"}:
        return read
    if isinstance(read, dict) and "object" in kinds:
        return read
    if "array" in kinds:
        return read if isinstance(read, list) else [_value(text, _items(schema, root), root)]
    if read is None and text == "null" and "null" in kinds and "string" not in kinds:
        return None
    return text


def _items(schema: Any, root: Mapping[str, Any]) -> Any:
    schema = followed(schema, root) or {}
    for part in (schema, *schema.get("anyOf", ()), *schema.get("oneOf", ())):
        choice = followed(part, root)
        if isinstance(choice, Mapping) and "items" in choice:
            return choice["items"]
    return {}


def _json_or(text: str, otherwise: Any) -> Any:
    try:
        return read_json(text)
    except ValueError:
        return otherwise

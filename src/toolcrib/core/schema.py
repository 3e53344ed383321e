"""Where values meet JSON Schema (draft 2020-12).

A schema is compiled once and kept. A reference to another document is refused rather than fetched, and patterns run
with a bounded amount of backtracking, so a schema from outside can neither reach out nor hang.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn, Protocol, cast

import jsonschema_rs

from toolcrib.core.errors import InvalidArgumentsError, InvalidOutputError, InvalidSchemaError, did_you_mean
from toolcrib.core.json import check_json

JsonSchema = dict[str, Any]

_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=100_000)
_MAX_SCHEMA_DEPTH = 100


class Validator(Protocol):
    def is_valid(self, instance: Any, /) -> bool: ...

    def iter_errors(self, instance: Any, /) -> Iterable[jsonschema_rs.ValidationError]: ...


def compile_schema(schema: object, what: str = "the schema") -> Validator:
    """The compiled ``schema``, or InvalidSchemaError that says where ``what`` is wrong."""
    if not isinstance(schema, Mapping | bool):
        raise InvalidSchemaError(f"{what} is not a JSON Schema: it is a {type(schema).__name__}, not an object")
    try:
        text = json.dumps(schema, sort_keys=True, allow_nan=False)
        if "\\ud" in text:
            check_json(schema)  # perhaps half of a surrogate pair
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"{what} is not a JSON Schema: {error}") from None
    validator = _validators.get(text)
    if validator is None:
        try:
            validator = _compile(dict(schema) if isinstance(schema, Mapping) else schema, text)
        except ValueError as error:
            raise InvalidSchemaError(f"{what} is not a JSON Schema: {_schema_complaint(error)}") from None
        if len(_validators) >= _MAX_VALIDATORS:
            _validators.clear()
        _validators[text] = validator
    return validator


_validators: dict[str, Validator] = {}
_MAX_VALIDATORS = 16_384


def _compile(schema: dict[str, Any] | bool, text: str) -> Validator:
    if text.count("{") + text.count("[") > _MAX_SCHEMA_DEPTH and _depth(schema) > _MAX_SCHEMA_DEPTH:
        raise ValueError(f"it is nested more than {_MAX_SCHEMA_DEPTH} deep")
    return cast(Validator, jsonschema_rs.Draft202012Validator(schema, pattern_options=_PATTERNS, offline=True))


def _depth(value: Any, limit: int = _MAX_SCHEMA_DEPTH + 1) -> int:
    level, todo = 0, [value]
    while todo and level < limit:
        level += 1
        todo = [
            child
            for node in todo
            if isinstance(node, dict | list)
            for child in (node.values() if isinstance(node, dict) else node)
        ]
    return level


def _schema_complaint(error: ValueError) -> str:
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error)
    where = ".".join(map(str, error.instance_path))
    return f"{error.message} (at {where!r})" if where else error.message


class ArgumentCheck:
    """Checks a call's arguments against a tool's parameter schema and fills in its defaults."""

    __slots__ = ("_absent", "_is_valid", "_nested", "_required_defaults", "_schema", "_tool", "_validator")

    def __init__(self, schema: Mapping[str, Any], tool: str) -> None:
        self._validator = compile_schema(schema, f"the parameters of {tool!r}")
        self._is_valid = self._validator.is_valid
        self._schema = schema
        self._tool = tool
        properties = _properties(schema)
        required = set(schema.get("required", ()))
        defaults = {name: sub["default"] for name, sub in properties.items() if "default" in sub}
        # A default need not fit its own schema ("default": null is common), so only those that
        # stand in for a required argument go in before the check; the rest go in after it.
        self._required_defaults = {name: value for name, value in defaults.items() if name in required}
        self._absent = {name: value for name, value in defaults.items() if name not in required}
        self._nested = {name: sub for name, sub in properties.items() if _has_defaults_inside(sub)}

    def __call__(self, arguments: Mapping[str, Any] | None) -> dict[str, Any]:
        """The arguments with defaults applied, as a new dict; InvalidArgumentsError names what is wrong."""
        if type(arguments) is dict:
            given: dict[str, Any] = arguments.copy()
        elif arguments is None:
            given = {}
        elif isinstance(arguments, Mapping):
            given = dict(arguments)
        else:
            raise InvalidArgumentsError(
                f"the arguments of {self._tool!r} must be an object of names and values, not {arguments!r:.60}",
                tool=self._tool,
            )
        if self._required_defaults:
            given = copy.deepcopy(self._required_defaults) | given
        try:
            valid = self._is_valid(given)
        except ValueError as error:
            raise InvalidArgumentsError(
                f"the arguments of {self._tool!r} are not JSON: {error}", tool=self._tool
            ) from None
        if not valid:
            self._complain(given)
        if self._absent or self._nested:
            self._fill(given)
        return given

    def _fill(self, given: dict[str, Any]) -> None:
        for name, value in self._absent.items():
            if name not in given:
                given[name] = copy.deepcopy(value) if isinstance(value, dict | list) else value
        for name, sub in self._nested.items():
            if name in given:
                given[name] = _filled(given[name], sub)

    def _complain(self, given: dict[str, Any]) -> NoReturn:
        # Unknown names first: a misspelt argument also shows up as a missing one.
        errors = sorted(self._validator.iter_errors(given), key=lambda error: _kind(error) != "AdditionalProperties")
        raise self._explained(errors[0], given)

    def _explained(self, error: jsonschema_rs.ValidationError, given: dict[str, Any]) -> InvalidArgumentsError:
        path = ".".join(str(part) for part in error.instance_path)
        kind = _kind(error)
        known = list(_properties(self._schema))
        if kind == "Required" and not path:
            name = next((name for name in self._schema.get("required", ()) if name not in given), "")
            return self._error(f"tool {self._tool!r} needs the argument {name!r}", name)
        if kind == "AdditionalProperties" and not path:
            name = next((name for name in given if name not in known), "")
            takes = f"it takes {', '.join(map(repr, known))}" if known else "it takes none"
            return self._error(
                f"tool {self._tool!r} has no argument {name!r}{did_you_mean(name, known)}; {takes}", name
            )
        subject = f"argument {path!r} of" if path else "the arguments of"
        return self._error(f"{subject} tool {self._tool!r}: {error.message:.300}", path)

    def _error(self, message: str, argument: str) -> InvalidArgumentsError:
        return InvalidArgumentsError(message, tool=self._tool, argument=argument)


class OutputCheck:
    """Checks what a tool returned against its output schema."""

    __slots__ = ("_tool", "_validator")

    def __init__(self, schema: Mapping[str, Any], tool: str) -> None:
        self._validator = compile_schema(schema, f"the output schema of {tool!r}")
        self._tool = tool

    def __call__(self, value: Any) -> None:
        try:
            if self._validator.is_valid(value):
                return
            error = next(iter(self._validator.iter_errors(value)))
            path, complaint = ".".join(map(str, error.instance_path)), error.message[:300]
        except ValueError as error:
            path, complaint = "", f"it is not JSON: {error}"
        where = f" at {path!r}" if path else ""
        raise InvalidOutputError(f"tool {self._tool!r} returned what its output schema forbids{where}: {complaint}")


def _kind(error: jsonschema_rs.ValidationError) -> str:
    return type(error.kind).__name__


def _properties(schema: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return {}
    return {name: sub for name, sub in properties.items() if isinstance(sub, dict)}


def _has_defaults_inside(schema: Mapping[str, Any]) -> bool:
    inside = list(_properties(schema).values())
    if isinstance(schema.get("items"), dict):
        inside.append(schema["items"])
    return any("default" in sub or _has_defaults_inside(sub) for sub in inside)


def _filled(value: Any, schema: Mapping[str, Any]) -> Any:
    if isinstance(value, dict):
        filled = dict(value)
        for name, sub in _properties(schema).items():
            if name in filled:
                filled[name] = _filled(filled[name], sub)
            elif "default" in sub:
                filled[name] = copy.deepcopy(sub["default"])
        return filled
    if isinstance(value, list) and isinstance(schema.get("items"), dict):
        return [_filled(item, schema["items"]) for item in value]
    return value

"""Where values meet JSON Schema, in the dialect that a schema names with ``$schema`` (2020-12 if it names none).

A schema is compiled once and kept. A reference to another document is refused rather than fetched, and what a check
may cost is counted before, its patterns too, so a schema from outside can neither reach out nor hang.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NoReturn, Protocol, cast

import jsonschema_rs

from toolcrib.core.defaults import applying, filled_in, find_defaults, properties, required_names
from toolcrib.core.errors import InvalidArgumentsError, InvalidOutputError, InvalidSchemaError, did_you_mean
from toolcrib.core.json import check_json, is_plain, lookup
from toolcrib.core.references import with_pointers
from toolcrib.core.schema_cost import costs, size_and_depth
from toolcrib.core.schema_patterns import BACKTRACKS, MOST_COMPILED, MOST_STEPS, compiled_size, pattern_steps

JsonSchema = dict[str, Any]

_PATTERNS = jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS)
_DIALECTS: dict[str, Any] = {
    "json-schema.org/draft/2020-12/schema": jsonschema_rs.Draft202012Validator,
    "json-schema.org/draft/2019-09/schema": jsonschema_rs.Draft201909Validator,
    "json-schema.org/draft-07/schema": jsonschema_rs.Draft7Validator,
    "json-schema.org/draft-06/schema": jsonschema_rs.Draft6Validator,
    "json-schema.org/draft-04/schema": jsonschema_rs.Draft4Validator,
}
_NEWEST = next(iter(_DIALECTS))
_REFERS = re.compile(r'"\$(?:ref|dynamicRef|recursiveRef)"')
_MAX_CHEAP = 50_000
_CHEAP_STEPS = 1_000
_MAX_STEPS = 20_000_000
_MAX_EXPLAINED = 20_000
"""To say why a value does not fit takes a thousand times as long as to see it."""
_ELSEWHERE = re.compile("Resource '([^']*)' is not present in a registry")


class Validator(Protocol):
    def is_valid(self, instance: Any, /) -> bool: ...

    def iter_errors(self, instance: Any, /) -> Iterable[jsonschema_rs.ValidationError]: ...


def compile_schema(schema: object, what: str = "the schema") -> Validator:
    """The compiled ``schema``, or InvalidSchemaError that says where ``what`` is wrong."""
    if not isinstance(schema, Mapping | bool):
        raise InvalidSchemaError(f"{what} is not a JSON Schema: it is a {type(schema).__name__}, not an object")
    try:
        text = json.dumps(schema, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidSchemaError(f"{what} is not a JSON Schema: {error}") from None
    validator = _validators.get(text)
    if validator is None:
        try:
            if not is_plain(text):
                check_json(schema)
            patterned = json.loads(text) if isinstance(schema, Mapping) and '"pattern' in text else {}
            if compiled_size(patterned) > MOST_COMPILED:
                raise ValueError("its patterns take too much memory together; use fewer, or shorter repetitions")
            validator = _compile(dict(schema) if isinstance(schema, Mapping) else schema)
            if steps := pattern_steps(patterned):
                validator = _Patterned(validator, steps, what)
            if isinstance(schema, Mapping) and (_REFERS.search(text) or len(text) > _MAX_CHEAP):
                validator = _bounded(validator, costs(schema), what)
        except ValueError as error:
            raise InvalidSchemaError(f"{what} is not a JSON Schema: {_schema_complaint(error)}") from None
        if len(_validators) >= _MAX_VALIDATORS:
            _validators.clear()
        _validators[text] = validator
    return validator


class _Patterned:
    """A validator that refuses values whose texts would keep its patterns busy for too long."""

    def __init__(self, validator: Validator, steps: Callable[[Any], int], what: str) -> None:
        self._validator = validator
        self._steps = steps
        self._what = what

    def is_valid(self, instance: Any, /) -> bool:
        self._check(instance)
        return self._validator.is_valid(instance)

    def iter_errors(self, instance: Any, /) -> Iterable[jsonschema_rs.ValidationError]:
        self._check(instance)
        return self._validator.iter_errors(instance)

    def _check(self, instance: Any) -> None:
        if self._steps(instance) > MOST_STEPS:
            raise InvalidSchemaError(
                f"{self._what} cannot be checked for texts this long or this many: the patterns would take more than "
                f"{MOST_STEPS:,} steps; use patterns that do not look around or back, or shorter texts"
            )


def _bounded(validator: Validator, by_depth: list[int], what: str) -> Validator:
    """The validator itself if it is cheap for every value."""
    return validator if by_depth[-1] <= _CHEAP_STEPS else _Bounded(validator, by_depth, what)


class _Bounded:
    """A validator that refuses values that would keep it busy for too long; no other thread runs meanwhile."""

    def __init__(self, validator: Validator, by_depth: list[int], what: str) -> None:
        self._validator = validator
        self._by_depth = by_depth
        self._what = what

    def is_valid(self, instance: Any, /) -> bool:
        if self._steps(instance) > _MAX_STEPS:
            raise InvalidSchemaError(
                f"{self._what} cannot be checked for a value this large or this deep: references and alternatives "
                f"would take more than {_MAX_STEPS:,} steps; use fewer of them, or a smaller value"
            )
        return self._validator.is_valid(instance)

    def iter_errors(self, instance: Any, /) -> Iterable[jsonschema_rs.ValidationError]:
        if self._steps(instance) > _MAX_EXPLAINED:
            raise InvalidSchemaError(f"{self._what} do not take the value; they have too many alternatives to say why")
        return self._validator.iter_errors(instance)

    def _steps(self, instance: Any) -> int:
        size, depth = size_and_depth(instance)
        return size * self._by_depth[min(depth, len(self._by_depth) - 1)]


_validators: dict[str, Validator] = {}
_MAX_VALIDATORS = 16_384


def _compile(schema: dict[str, Any] | bool) -> Validator:
    dialect = _DIALECTS[dialect_of(schema) if isinstance(schema, dict) else _NEWEST]
    return cast(Validator, dialect(schema, pattern_options=_PATTERNS, offline=True))


def dialect_of(schema: Mapping[str, Any]) -> str:
    """The dialect that a schema is written in; ValueError if it names one that is not known."""
    if "$schema" not in schema:
        return _NEWEST
    named = schema["$schema"]
    dialect = re.sub("^https?://|#$", "", named) if isinstance(named, str) else ""
    if dialect not in _DIALECTS:
        known = ", ".join(name.split("/")[-2] for name in _DIALECTS)
        raise ValueError(f"its $schema is {named!r:.100}; the known dialects are {known}")
    return dialect


def _schema_complaint(error: ValueError) -> str:
    if not isinstance(error, jsonschema_rs.ValidationError):
        return str(error)
    if elsewhere := _ELSEWHERE.match(error.message):
        return f"it refers to {elsewhere[1]!r:.200}; only references inside the schema are followed"
    where = ".".join(map(str, error.instance_path))
    return f"{error.message} (at {where!r})" if where else error.message


class ArgumentCheck:
    """Checks a call's arguments against a tool's parameter schema and fills in its defaults."""

    __slots__ = ("_absent", "_is_valid", "_nested", "_required_defaults", "_schema", "_tool", "_validator")

    def __init__(self, schema: Mapping[str, Any], tool: str) -> None:
        self._validator = compile_schema(schema, f"the parameters of {tool!r}")
        self._is_valid = self._validator.is_valid
        self._schema = with_pointers(schema)
        self._tool = tool
        defaults = find_defaults(self._schema)
        required = required_names(self._schema)
        # A default need not fit its own schema ("default": null is common), so only those that
        # stand in for a required argument go in before the check; the rest go in after it.
        self._required_defaults = {name: value for name, value in defaults.absent.items() if name in required}
        self._absent = {name: value for name, value in defaults.absent.items() if name not in required}
        self._nested = {name: parts for name, parts in defaults.inside.items() if isinstance(name, str)}

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
        except InvalidSchemaError:
            raise
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
        for name, parts in self._nested.items():
            if name in given:
                given[name] = filled_in(given[name], parts)

    def _complain(self, given: dict[str, Any]) -> NoReturn:
        # Unknown names first: a misspelt argument also shows up as a missing one.
        try:
            errors = sorted(
                self._validator.iter_errors(given), key=lambda error: _kind(error) != "AdditionalProperties"
            )
        except InvalidSchemaError as error:
            raise self._error(str(error), "") from None
        raise self._explained(errors[0], given)

    def _explained(self, error: jsonschema_rs.ValidationError, given: dict[str, Any]) -> InvalidArgumentsError:
        path = ".".join(str(part) for part in error.instance_path)
        kind = _kind(error)
        known = [name for part in applying(self._schema, self._schema) for name in properties(part)]
        if kind == "Required" and not path:
            name = next((name for name in required_names(self._schema) if name not in given), "")
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


def named_arguments(schema: Mapping[str, Any]) -> frozenset[str] | None:
    """The arguments that a tool's schema speaks of, in any of its branches; None if it says that others may come too.

    JSON Schema lets through what it does not speak of. Who wrote the code behind it may not have thought of that.
    """
    root = with_pointers(schema)
    names: set[str] = set()
    seen: set[int] = set()
    todo: list[Any] = [root]
    while todo:
        part = todo.pop()
        if not isinstance(part, Mapping) or id(part) in seen:
            continue
        seen.add(id(part))
        if any(part.get(rule, False) is not False for rule in _OF_OTHERS):
            return None
        names |= part.get("properties", {}).keys()
        todo += [part.get(branch) for branch in ("if", "then", "else")]
        todo += [each for branch in ("allOf", "anyOf", "oneOf") for each in part.get(branch, ())]
        todo += part.get("dependentSchemas", {}).values()
        if "$ref" in part:
            todo.append(lookup(root, part["$ref"]))
    return frozenset(names)


_OF_OTHERS = ("additionalProperties", "unevaluatedProperties", "patternProperties")


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
        except InvalidSchemaError:
            raise
        except ValueError as error:
            path, complaint = "", f"it is not JSON: {error}"
        where = f" at {path!r}" if path else ""
        raise InvalidOutputError(f"tool {self._tool!r} returned what its output schema forbids{where}: {complaint}")


def _kind(error: jsonschema_rs.ValidationError) -> str:
    return type(error.kind).__name__

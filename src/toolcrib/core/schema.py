"""Where values meet JSON Schema, in the dialect that a schema names with ``$schema`` (2020-12 if it names none).

A schema is compiled once and kept. A reference to another document is refused rather than fetched, and what a check
may cost is counted before, its patterns too, so a schema from outside can neither reach out nor hang.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, Protocol, cast

import jsonschema_rs

from toolcrib.core.defaults import applying, filled_in, find_defaults, properties, required_names
from toolcrib.core.errors import InvalidArgumentsError, InvalidOutputError, InvalidSchemaError, did_you_mean
from toolcrib.core.json import check_json, is_finite, is_plain, lookup
from toolcrib.core.masking import MARKED
from toolcrib.core.references import with_pointers
from toolcrib.core.schema_cost import characters, costs, size_and_depth
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
_COSTLY = re.compile(r'"(?:\$ref|\$dynamicRef|\$recursiveRef|enum|const)": ')
_BRANCHES = re.compile('"(?:anyOf|oneOf)": ')
_MATCHES = re.compile('"(?:pattern|patternProperties)": ')
_MAX_CHEAP = 800
_MAX_STEPS = 20_000_000
_MOST_GIVEN, _MOST_RETURNED = 100_000, 250_000
"""How many values a request may have, and a result."""
_MAX_EXPLAINED = 20_000
"""To say why a value does not fit takes a thousand times as long as to see it."""
_MAX_TOLD = 20_000_000
"""Characters: all that does not fit is told at once, and each time with the value that does not."""
_ELSEWHERE = re.compile("Resource '([^']*)' is not present in a registry")
_HIDDEN = "the value"
"""What stands for each value in the complaints of a schema that speaks of secrets: a message is read by many."""


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
    compiled = _kept.get(text)
    if compiled is None:
        try:
            if not is_plain(text):
                check_json(schema)
            compiled = _compile(dict(schema) if isinstance(schema, Mapping) else schema, text)
        except ValueError as error:
            raise InvalidSchemaError(f"{what} is not a JSON Schema: {_schema_complaint(error)}") from None
        _kept.keep(text, compiled)
    return _Bounded(compiled, what)


@dataclass
class Compiled:
    """The library's validator of a schema, and what it costs to use: the same for whoever has that schema."""

    validator: Any
    schema: Mapping[str, Any] | bool
    text: str
    """Of the schema."""
    matching: Callable[[Any], int] | None
    """How many steps the patterns take for a value; None if there are none."""

    @cached_property
    def by_depth(self) -> list[int]:
        """What a check costs, for each depth of the value; counted only once there is something to be checked."""
        tells_enough = len(self.text) <= _MAX_CHEAP and not _COSTLY.search(self.text)
        return [len(self.text) // 4] if tells_enough else self.counted  # no part is shorter

    @cached_property
    def counted(self) -> list[int]:
        """The same, counted: the length of a text tells too much of what is applied to large values."""
        return costs(self.schema) if isinstance(self.schema, Mapping) else [1]

    @cached_property
    def to_tell(self) -> list[int]:
        """How many errors there can be."""
        return costs(self.schema, comparing=False) if isinstance(self.schema, Mapping) else [1]

    def is_cheap(self, values: int) -> bool:
        """Whether it is for whatever has so many values."""
        return self.by_depth[-1] * values <= _MAX_STEPS and self.matching is None


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A validator that refuses values that would keep it busy for too long; no other thread runs meanwhile."""

    compiled: Compiled
    what: str

    def is_valid(self, instance: Any, /) -> bool:
        if (
            _steps(instance, self.compiled.by_depth) > _MAX_STEPS
            and _steps(instance, self.compiled.counted) > _MAX_STEPS
        ):
            raise InvalidSchemaError(
                f"{self.what} cannot be checked for a value this large or this deep: references and alternatives "
                f"would take more than {_MAX_STEPS:,} steps; use fewer of them, or a smaller value"
            )
        self._check_texts(instance)
        return bool(self.compiled.validator.is_valid(instance))

    def iter_errors(self, instance: Any, /) -> Iterable[jsonschema_rs.ValidationError]:
        """What does not fit: the first of it alone if to tell all would take long."""
        self._check_texts(instance)
        steps = _steps(instance, self.compiled.to_tell)
        if steps <= _MAX_EXPLAINED and steps * (steps + characters(instance)) <= _MAX_TOLD:
            return cast(Iterable[jsonschema_rs.ValidationError], self.compiled.validator.iter_errors(instance))
        if steps > _MAX_STEPS or _BRANCHES.search(self.compiled.text):
            raise InvalidSchemaError(
                f"{self.what} do not take the value; it is too large or they have too many alternatives to say why"
            )
        try:
            self.compiled.validator.validate(instance)
        except jsonschema_rs.ValidationError as error:
            return (error,)
        return ()

    def _check_texts(self, instance: Any) -> None:
        matching = self.compiled.matching
        if matching is not None and matching(instance) > MOST_STEPS:
            raise InvalidSchemaError(
                f"{self.what} cannot be checked for texts this long or this many: the patterns would take more than "
                f"{MOST_STEPS:,} steps; use patterns that do not look around or back, or shorter texts"
            )


def _steps(instance: Any, by_depth: list[int]) -> int:
    size, depth = size_and_depth(instance)
    return size * by_depth[min(depth, len(by_depth) - 1)]


def _quickest(validator: Validator, values: int) -> Callable[[Any], bool]:
    """What says whether something of so many values at most fits: the library itself if that is cheap for all such."""
    if isinstance(validator, _Bounded) and validator.compiled.is_cheap(values):
        return cast(Callable[[Any], bool], validator.compiled.validator.is_valid)
    return validator.is_valid


class Kept:
    """Compiled schemas by their text: so many, and of texts so long all together. Then it begins anew."""

    def __init__(self, most: int = 16_384, most_characters: int = 32_000_000) -> None:
        self._most = most
        self._most_characters = most_characters
        self._compiled: dict[str, Compiled] = {}
        self._characters = 0

    def __len__(self) -> int:
        return len(self._compiled)

    def get(self, text: str) -> Compiled | None:
        return self._compiled.get(text)

    def keep(self, text: str, compiled: Compiled) -> None:
        if len(self._compiled) >= self._most or self._characters + len(text) > self._most_characters:
            self._compiled.clear()
            self._characters = 0
        self._compiled[text] = compiled
        self._characters += len(text)


_kept = Kept()


def _compile(schema: dict[str, Any] | bool, text: str) -> Compiled:
    dialect = _DIALECTS[dialect_of(schema) if isinstance(schema, dict) else _NEWEST]
    patterned = json.loads(text) if _MATCHES.search(text) else {}
    if compiled_size(patterned) > MOST_COMPILED:
        raise ValueError("its patterns take too much memory together; use fewer, or shorter repetitions")
    mask = _HIDDEN if MARKED.search(text) else None
    validator = dialect(schema, mask=mask, pattern_options=_PATTERNS, offline=True)
    return Compiled(validator, schema, text, pattern_steps(patterned))


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
    """Checks a call's arguments against a tool's parameter schema and fills in its defaults.

    Not those inside of the arguments that are ``typed``: what makes values of these knows what was given, and the rest.
    """

    __slots__ = ("_absent", "_is_valid", "_nested", "_required_defaults", "_schema", "_tool", "_validator")

    def __init__(self, schema: Mapping[str, Any], tool: str, typed: Container[str] = ()) -> None:
        self._validator = compile_schema(schema, f"the parameters of {tool!r}")
        self._is_valid = _quickest(self._validator, _MOST_GIVEN)
        self._schema = with_pointers(schema)
        self._tool = tool
        defaults = find_defaults(self._schema)
        required = required_names(self._schema)
        # A default need not fit its own schema ("default": null is common), so only those that
        # stand in for a required argument go in before the check; the rest go in after it.
        self._required_defaults = {name: value for name, value in defaults.absent.items() if name in required}
        self._absent = {name: value for name, value in defaults.absent.items() if name not in required}
        self._nested = {
            name: parts for name, parts in defaults.inside.items() if isinstance(name, str) and name not in typed
        }

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
            raise self._not_json(error) from None
        if not valid:
            self._complain(given)
        if self._absent or self._nested:
            self._fill(given)
        return given

    def _not_json(self, reason: object) -> InvalidArgumentsError:
        return InvalidArgumentsError(f"the arguments of {self._tool!r} are not JSON: {reason}", tool=self._tool)

    def _fill(self, given: dict[str, Any]) -> None:
        for name, value in self._absent.items():
            if name not in given:
                given[name] = copy.deepcopy(value) if isinstance(value, dict | list) else value
        for name, parts in self._nested.items():
            if name in given:
                given[name] = filled_in(given[name], parts)

    def _complain(self, given: dict[str, Any]) -> NoReturn:
        if not is_finite(given):
            raise self._not_json("NaN and Infinity are no numbers there")
        # Unknown names first: a misspelt argument also shows up as a missing one.
        try:
            errors = sorted(
                self._validator.iter_errors(given), key=lambda error: _kind(error) != "AdditionalProperties"
            )
        except InvalidSchemaError as error:
            raise InvalidArgumentsError(str(error), tool=self._tool) from None
        except ValueError as error:  # half of a surrogate pair, which no message can hold
            raise self._not_json(error) from None
        wrong: dict[str, str] = {}
        for each in errors:
            for argument, complaint in self._explained(each, given):
                if argument not in wrong and f"did you mean {argument!r}?" not in "".join(wrong.values()):
                    wrong[argument] = complaint
        raise InvalidArgumentsError.of(wrong, tool=self._tool)

    def _explained(self, error: jsonschema_rs.ValidationError, given: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Each argument that is wrong, and why."""
        path, kind = _path(error), _kind(error)
        if kind == "Required" and not path:
            for name in [name for name in required_names(self._schema) if name not in given] or [""]:
                yield name, f"tool {self._tool!r} needs the argument {name!r}"
        elif isinstance(error.kind, _Kinds.PropertyNames) and not path:
            reason = error.kind.error
            why = "" if _kind(reason) == "Not" else f": {_in_short(reason.message)}"
            yield str(reason.instance), f"tool {self._tool!r} has no argument {reason.instance!r}{why}"
        elif kind == "AdditionalProperties" and not path:
            known = [name for part in applying(self._schema, self._schema) for name in properties(part)]
            takes = f"it takes {', '.join(map(repr, known))}" if known else "it takes none"
            for name in [name for name in given if name not in known] or [""]:
                yield name, f"tool {self._tool!r} has no argument {name!r}{did_you_mean(name, known)}; {takes}"
        else:
            for inside, complaint in _complaints(error):
                subject = f"argument {inside!r} of" if inside else "the arguments of"
                yield inside, f"{subject} tool {self._tool!r}: {complaint}"


_MOST_BRANCHES = 5
_Kinds = jsonschema_rs.ValidationErrorKind
_LABELS = ("Constant", "Enum")
"""What a member that says of which kind an object is fails by, if the object is of another kind."""


def _complaints(error: jsonschema_rs.ValidationError) -> Iterator[tuple[str, str]]:
    """Where it does not fit, and why not; of alternatives, all that is wrong with the one that was meant."""
    branches: Sequence[list[jsonschema_rs.ValidationError]] = getattr(error.kind, "context", ())
    if not 0 < len(branches) <= _MOST_BRANCHES or not all(branches):
        missing = error.kind.property if isinstance(error.kind, _Kinds.Required) else ""
        yield ".".join(filter(None, [_path(error), missing])), _in_short(error.message)
        return
    depth = len(error.instance_path)
    near = [branch for branch in branches if not _first(branch, depth, "Type")] or branches
    meant = [branch for branch in near if not _first(branch, depth + 1, *_LABELS)] or near
    if len(meant) == 1:
        for each in meant[0]:
            yield from _complaints(each)
        return
    told = [next(_complaints(_first(branch, depth + 1, *_LABELS) or branch[0])) for branch in meant]
    paths = {path for path, _ in told}
    reasons = dict.fromkeys(_in_short(reason, 300 // len(told)) for _, reason in told)
    yield paths.pop() if len(paths) == 1 else _path(error), "; nor can it be another: ".join(reasons)


def _first(
    branch: Sequence[jsonschema_rs.ValidationError], depth: int, *kinds: str
) -> jsonschema_rs.ValidationError | None:
    return next((each for each in branch if len(each.instance_path) == depth and _kind(each) in kinds), None)


def _path(error: jsonschema_rs.ValidationError) -> str:
    return ".".join(map(str, error.instance_path))


def _in_short(message: str, most: int = 300) -> str:
    """The value that a complaint begins with may be long; what is wrong with it stands at the end."""
    return message if len(message) <= most else f"{message[: most // 3]} ... {message[-(most - most // 3) :]}"


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

    __slots__ = ("_is_valid", "_tool", "_validator")

    def __init__(self, schema: Mapping[str, Any], tool: str) -> None:
        self._validator = compile_schema(schema, f"the output schema of {tool!r}")
        self._is_valid = _quickest(self._validator, _MOST_RETURNED)
        self._tool = tool

    def __call__(self, value: Any) -> None:
        try:
            if self._is_valid(value):
                return
            error = next(iter(self._validator.iter_errors(value)))
            path, complaint = _path(error), _in_short(error.message)
        except InvalidSchemaError:
            raise
        except ValueError as error:
            path, complaint = "", f"it is not JSON: {error}"
        where = f" at {path!r}" if path else ""
        raise InvalidOutputError(f"tool {self._tool!r} returned what its output schema forbids{where}: {complaint}")


def _kind(error: jsonschema_rs.ValidationError) -> str:
    return type(error.kind).__name__

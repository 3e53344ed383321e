"""The annotations of a function, evaluated, and rewritten where pydantic wants other types for the same values."""

from __future__ import annotations

import collections.abc
import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import copy
from enum import Enum, EnumType
from functools import partial
from typing import Annotated, Any, Literal, NotRequired, Required, Union, cast, get_args, get_origin

import typing_extensions
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticSerializationError, to_jsonable_python

from toolcrib.core.errors import ToolValidationError
from toolcrib.define.callables import annotated, class_name_of

_LISTS = frozenset(
    getattr(collections.abc, name)
    for name in ("Iterable", "Iterator", "Generator", "Collection", "Sequence", "MutableSequence")
)
"""What a JSON array may stand for: a function gets a list, which travels to other processes too."""
_DICTS = frozenset({collections.abc.Mapping, collections.abc.MutableMapping})
_JSON_SCALARS = frozenset({str, int, float, bool, type(None)})
_PYDANTIC_WANTS_ITS_OWN = sys.version_info < (3, 12)
"""typing.TypedDict before Python 3.12 does not say enough of required keys."""


class OwnClass:
    """Stands for the class that a method is written in, which does not exist yet when its method is read."""

    @classmethod
    def __get_pydantic_core_schema__(cls, *_: Any) -> Any:
        raise TypeError(
            f"class {cls.__name__!r} does not exist yet when its methods are read; "
            f"leave @tool out and register the method of an instance, {cls.__name__}(...)"
        )


def type_hints(function: Callable[..., Any], signature: inspect.Signature, tool: str) -> dict[str, Any]:
    """Every annotation of the signature, the result under ``return``; the error names the one that cannot be read."""
    place = _Place(function)
    given = {name: parameter.annotation for name, parameter in signature.parameters.items()}
    given["return"] = signature.return_annotation
    # What a decorator has evaluated already is in the annotations alone.
    given |= {name: hint for name, hint in place.evaluated.items() if name in given}
    given = {name: hint for name, hint in given.items() if hint is not inspect.Signature.empty}
    try:
        return place.hints(given)
    except Exception:  # noqa: BLE001 - an annotation may be any expression, as below
        return {name: _one_hint(name, hint, place, tool) for name, hint in given.items()}


def _one_hint(name: str, hint: Any, place: _Place, tool: str) -> Any:
    try:
        return place.hints({name: hint})[name]
    except Exception as error:  # noqa: BLE001
        what = "the result" if name == "return" else f"parameter {name!r}"
        way_out = "; import it where the function is defined" if isinstance(error, NameError) else ""
        raise ToolValidationError(f"the type of {what} of tool {tool!r} cannot be read: {error}{way_out}") from None


class _Place:
    """Where a function is defined: the names that its annotations may use."""

    def __init__(self, function: Callable[..., Any]) -> None:
        target = annotated(function)
        written_there: Mapping[str, Any] = getattr(target, "__annotations__", {})
        self.evaluated = {name: hint for name, hint in written_there.items() if not isinstance(hint, str)}
        self._globals: dict[str, Any] = getattr(target, "__globals__", {})
        self._locals: dict[str, Any] = {each.__name__: each for each in getattr(target, "__type_params__", ())}
        self._own_class = class_name_of(function).rpartition(".")[2]

    def hints(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Names that are local to the place of definition are looked up in the frames there, when they are missed."""

        def holder() -> None: ...

        holder.__annotations__ = dict(given)
        while True:
            try:
                return typing.get_type_hints(holder, globalns=self._globals, localns=self._locals, include_extras=True)
            except NameError as error:
                if _found_outside(error.name or "", self._locals):
                    continue
                if error.name != self._own_class or error.name in self._locals:
                    raise
                self._locals[self._own_class] = type(self._own_class, (OwnClass,), {})


def _found_outside(name: str, local: dict[str, Any]) -> bool:
    """Whether the name is local to the place of definition and was not known yet; now it is in ``local``."""
    found = next((names for names in _outer_frames() if name in names), None)
    if found is None or name in local:
        return False
    local[name] = found[name]
    return True


def _outer_frames() -> Iterator[Mapping[str, Any]]:
    frame = sys._getframe(1)
    while frame := frame.f_back:  # type: ignore[assignment]
        if not frame.f_globals.get("__name__", "").startswith("toolcrib.define"):
            yield frame.f_locals


def accepted(annotation: Any) -> Any:
    """With types that take the same JSON: ``list`` for any kind of iterable, TypedDicts that say more."""
    return annotation if type(annotation) is type else _rewritten(annotation, {})


def _rewritten(annotation: Any, known: dict[type, Any]) -> Any:
    if _PYDANTIC_WANTS_ITS_OWN and type(annotation).__module__ == "typing" and typing.is_typeddict(annotation):
        return known.get(annotation) or _typed_dict(annotation, known)
    origin, args = get_origin(annotation), get_args(annotation)
    if origin is None or (not args and origin is not tuple):  # typing.List is list, tuple[()] is not tuple
        return _bare(annotation if origin is None else origin, known)
    if origin is Literal:
        return _read_back(annotation, args)
    if origin is collections.abc.Callable:
        return annotation
    inner = tuple(_rewritten(arg, known) for arg in (args[:1] if origin is Annotated else args))
    if origin in _LISTS:
        return list[inner[0]]  # type: ignore[valid-type]
    if origin in _DICTS:
        return dict[inner]  # type: ignore[misc, valid-type]
    if all(new is old for new, old in zip(inner, args, strict=False)):
        return annotation
    return _with_arguments(annotation, origin, inner)


def _with_arguments(annotation: Any, origin: Any, inner: tuple[Any, ...]) -> Any:
    if origin is Annotated:
        return Annotated[inner[0], *get_args(annotation)[1:]]
    if origin is Union or origin is types.UnionType:
        return Union[inner]  # noqa: UP007 - made at run time
    generic: Any = origin
    return generic[inner] if isinstance(origin, type) else annotation


def _read_back(annotation: Any, values: Iterable[Any]) -> Any:
    """What JSON lacks comes as what stands for it, for which pydantic does not take it: an enum's member, bytes."""
    try:
        known = [(to_jsonable_python(value), value) for value in values if type(value) not in _JSON_SCALARS]
    except PydanticSerializationError:  # there is no schema of it either
        return annotation
    return Annotated[annotation, BeforeValidator(partial(_known_as, known))] if known else annotation


def _known_as(known: list[tuple[Any, Any]], given: Any) -> Any:
    return next((value for jsonable, value in known if jsonable == given), given)


def _bare(annotation: Any, known: dict[type, Any]) -> Any:
    if isinstance(annotation, typing.NewType):
        inner = _rewritten(annotation.__supertype__, known)
        return annotation if inner is annotation.__supertype__ else inner
    if isinstance(annotation, EnumType):
        members = cast("type[Enum]", annotation).__members__.values()
        return _read_back(annotation, [each for each in members if type(each.value) not in _JSON_SCALARS])
    try:
        return list if annotation in _LISTS else dict if annotation in _DICTS else annotation
    except TypeError:  # unhashable
        return annotation


def _typed_dict(given: Any, known: dict[type, Any]) -> Any:
    """The same TypedDict, as typing_extensions knows it. It is known before its keys are: it may hold itself."""
    made: Any = typing_extensions.TypedDict(given.__name__, {})  # type: ignore[misc] # its name is known at run time
    known[given] = made
    keys = typed_dict_keys(given)
    made.__annotations__ = {
        name: Required[hint] if required else NotRequired[hint]
        for name, (hint, required) in ((name, (_rewritten(hint, known), need)) for name, (hint, need) in keys.items())
    }
    made.__required_keys__ = frozenset(name for name, (_, required) in keys.items() if required)
    made.__optional_keys__ = frozenset(keys) - made.__required_keys__
    for name in ("__doc__", "__module__", "__qualname__", "__pydantic_config__"):
        if hasattr(given, name):
            setattr(made, name, getattr(given, name))
    return made


def typed_dict_keys(given: Any) -> dict[str, tuple[Any, bool]]:
    """The keys of a TypedDict, the type of each, and whether it is required."""
    local: dict[str, Any] = {given.__name__: given}
    while True:
        try:
            hints = typing.get_type_hints(given, localns=local, include_extras=True)
            break
        except NameError as error:
            if not _found_outside(error.name or "", local):
                raise ToolValidationError(f"a key of TypedDict {given.__name__!r} cannot be read: {error}") from None
    return {name: _key(hint, name in given.__required_keys__) for name, hint in hints.items()}


def _key(hint: Any, required: bool) -> tuple[Any, bool]:
    origin = get_origin(hint)
    while origin in (Required, NotRequired, typing_extensions.ReadOnly):
        if origin is not typing_extensions.ReadOnly:
            required = origin is Required
        hint = get_args(hint)[0]
        origin = get_origin(hint)
    return hint, required


def without_alias(hint: Any, given: FieldInfo) -> Any:
    """``Annotated[int, Field(alias="from", ge=0)]`` without its alias: pydantic knows those of models alone."""
    bare = copy(given)
    bare.alias = bare.validation_alias = None
    inner, *notes = get_args(hint)
    return Annotated[inner, *(bare if note is given else note for note in notes)]


def with_none(hint: Any) -> Any:
    """``x: int = None`` says ``x: int | None = None``."""
    if get_origin(hint) is Annotated:
        inner, *notes = get_args(hint)
        return Annotated[with_none(inner), *notes]
    if hint in (Any, None, type(None), object) or type(None) in get_args(hint) or None in get_args(hint):
        return hint
    return Union[hint, None]  # noqa: UP007 - made at run time, where a string has no `|`

"""What @tool takes by name is what a ToolSpec has, as people write it."""

import typing
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from toolcrib import SafetyLevel, ToolSpec
from toolcrib.core.spec_fields import SpecFields

WRITTEN = typing.get_type_hints(SpecFields)


def as_written(kept: Any) -> Any:
    """What may be given for a field of this type: a list for a tuple, a mapping for a record."""
    if get_origin(kept) is Annotated:
        return as_written(get_args(kept)[0])
    if get_origin(kept) is tuple:
        item: Any = as_written(get_args(kept)[0])
        return list[str] | tuple[str, ...] if item is str else Sequence[item]
    if kept == dict[str, Any]:
        return Mapping[str, Any]
    if kept is SafetyLevel:
        return SafetyLevel | Literal[tuple(level.value for level in SafetyLevel)]
    if isinstance(kept, type) and issubclass(kept, BaseModel):
        return kept | Mapping[str, Any]
    if type(None) in get_args(kept):
        return as_written(next(kind for kind in get_args(kept) if kind is not type(None))) | None
    return kept


def test_the_decorator_has_the_fields_of_a_spec() -> None:
    assert list(WRITTEN) == list(ToolSpec.model_fields)


@pytest.mark.parametrize("name", ToolSpec.model_fields)
def test_each_has_the_type_of_its_field(name: str) -> None:
    kept = typing.get_type_hints(ToolSpec, include_extras=True)[name]
    schema = name in ("parameters", "returns")
    assert WRITTEN[name] == (kept if schema else as_written(kept))

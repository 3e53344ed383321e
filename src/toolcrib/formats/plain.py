"""The objects of other people's SDKs as plain mappings, whoever made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any


def plain(thing: Any) -> Mapping[str, Any] | None:
    """A message, a block or a call as a mapping, in the words of its API; None if it is nothing of that kind."""
    if type(thing) is dict or isinstance(thing, Mapping):
        return thing
    if isinstance(thing, type | str | bytes | int | float | list | tuple | None):
        return None
    for read in _WAYS:
        try:
            given = read(thing)
        except Exception:  # noqa: BLE001, S112 - somebody else's object: perhaps it can be read in another way
            continue
        if isinstance(given, Mapping):
            return given
    return None


def _dumped(thing: Any) -> Any:
    return thing.model_dump(by_alias=True, exclude_none=True, warnings=False)


def _converted(thing: Any) -> Any:
    return thing.to_dict()


_WAYS: tuple[Callable[[Any], Any], ...] = (_dumped, dataclasses.asdict, _converted, vars)
"""One after the other is tried: what an object does not offer raises."""

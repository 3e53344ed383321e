"""The objects of other people's SDKs as plain mappings, whoever made them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any


def plain(thing: Any) -> Mapping[str, Any] | None:
    """A message, a block or a call as a mapping; None if it is nothing of that kind."""
    if type(thing) is dict or isinstance(thing, Mapping):
        return thing
    if isinstance(thing, type | str | bytes | int | float | list | tuple | None):
        return None
    try:
        if callable(dump := getattr(thing, "model_dump", None)):
            given = dump(exclude_none=True, warnings=False)
        elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
            given = dataclasses.asdict(thing)
        elif callable(dump := getattr(thing, "to_dict", None)):
            given = dump()
        else:
            given = vars(thing)
    except Exception:  # noqa: BLE001 - somebody else's object: what cannot be read is nothing that we know
        return None
    return given if isinstance(given, Mapping) else None

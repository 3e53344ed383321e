"""Other people's definitions become specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.spec import ToolSpec


def mapping_of(definition: Mapping[str, Any], key: str, provider: str) -> Mapping[str, Any]:
    value = definition.get(key)
    if isinstance(value, Mapping):
        return value
    raise ToolValidationError(f"{key!r} of the {provider} definition must be an object, not {value!r:.60}")


def spec_from(name: Any, **fields: Any) -> ToolSpec:
    """A spec of what is there; None is absence, and a description may be absent."""
    given = {field: value for field, value in fields.items() if value is not None}
    return ToolSpec.parse({"name": name, "description": "", **given})

"""The tools that a model was handed, whoever's words they are in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.formats.plain import plain

_GROUPS = ("functionDeclarations", "function_declarations", "tools")
"""Where definitions lie in one another: Gemini's tools, OpenAI's namespaces."""
_SCHEMAS = ("parameters", "input_schema", "inputSchema", "parametersJsonSchema", "parameters_json_schema")


def schemas_of(tools: Iterable[Any]) -> dict[str, Any]:
    """The schemas of the tools' parameters by name, of definitions in any format and of Toolcrib's own tools."""
    found: dict[str, Any] = {}
    for tool in tools:
        body = plain(getattr(tool, "spec", tool)) or {}
        group = next((body[key] for key in _GROUPS if isinstance(body.get(key), list)), None)
        if group is not None:
            found |= schemas_of(group)
        else:
            inner = plain(body.get("function"))
            _add(found, body if inner is None else inner)
    return found


def _add(found: dict[str, Any], definition: Mapping[str, Any]) -> None:
    if isinstance(name := definition.get("name"), str):
        found[name] = next((definition[key] for key in _SCHEMAS if definition.get(key)), {})

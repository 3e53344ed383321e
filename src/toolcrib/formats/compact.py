"""A tool in one line, for small contexts.

``read_file(path: str, encoding: "utf-8"|"ascii" = "utf-8") - Read a file``
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.core.json import lookup
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.losses import Loss
from toolcrib.formats.schemas import (
    alternatives,
    listed_values,
    properties_of,
    required_of,
    with_root_resolved,
)

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict"}
_MAX_DEPTH = 4


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    if spec.returns:
        losses.append(Loss(spec.name, "returns", "a signature does not say what comes back"))
    return {"name": name, "signature": signature(spec)}


def signatures(specs: Iterable[ToolSpec]) -> str:
    """One line for each tool."""
    return "\n".join(map(signature, specs))


def signature(spec: ToolSpec) -> str:
    """The tool in one line. A question mark follows a parameter that may be left out and has no default."""
    root = with_root_resolved(spec.parameters)
    required = required_of(root)
    parameters = ", ".join(_parameter(name, sub, name in required, root) for name, sub in properties_of(root).items())
    deprecated = " (deprecated)" if spec.deprecated else ""
    description = " ".join(spec.description.split("\n\n", 1)[0].split())
    return f"{spec.name}({parameters}){deprecated}" + (f" - {description}" if description else "")


def _parameter(name: str, schema: Any, required: bool, root: Mapping[str, Any]) -> str:
    kind = python_type(schema, root)
    if isinstance(schema, dict) and "default" in schema:
        return f"{name}: {kind} = {_literal(schema['default'])}"
    return f"{name}: {kind}" if required else f"{name}?: {kind}"


def python_type(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """The type as a Python programmer would write it."""
    if not isinstance(schema, dict) or depth > _MAX_DEPTH:
        return "Any"
    if isinstance(reference := schema.get("$ref"), str):
        return python_type(lookup(root, reference), root, depth + 1)
    if (values := listed_values(schema)) is not None:
        return "|".join(map(_literal, values))
    if branches := alternatives(schema):
        return "|".join(dict.fromkeys(python_type(branch, root, depth + 1) for branch in branches))
    kind = schema.get("type")
    if kind == "array":
        return f"list[{python_type(schema['items'], root, depth + 1)}]" if "items" in schema else "list"
    if kind == "object" and properties_of(schema):
        return _record(schema, root, depth)
    return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"


def _record(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    required = required_of(schema)
    fields = (
        f"{name}{'' if name in required else '?'}: {python_type(sub, root, depth + 1)}"
        for name, sub in properties_of(schema).items()
    )
    return "{" + ", ".join(fields) + "}"


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)

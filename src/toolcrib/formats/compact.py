"""A tool in one line, for small contexts.

``read_file(path: str, encoding: "utf-8"|"ascii" = "utf-8") - Read a file``
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.core.spec import ToolSpec
from toolcrib.formats.provider import Loss
from toolcrib.formats.schemas import TypeWords, Writer, parameters_of, properties_of, required_of

_TYPES = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None", "object": "dict"}


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:
    if spec.returns:
        losses.append(Loss(spec.name, "returns", "a signature does not say what comes back"))
    return {"name": name, "signature": signature(spec)}


def signatures(specs: Iterable[ToolSpec]) -> str:
    """One line for each tool."""
    return "\n".join(map(signature, specs))


def signature(spec: ToolSpec) -> str:
    """The tool in one line. A question mark follows a parameter that may be left out and has no default."""
    root, given = parameters_of(spec)
    types = Writer(PYTHON, root)
    parameters = ", ".join(_parameter(name, sub, required, types) for name, sub, required in given)
    deprecated = " (deprecated)" if spec.deprecated else ""
    description = " ".join(spec.description.split("\n\n", 1)[0].split())
    return f"{spec.name}({parameters}){deprecated}" + (f" - {description}" if description else "")


def _parameter(name: str, schema: Any, required: bool, types: Writer) -> str:
    kind = types.write(schema)
    if isinstance(schema, dict) and "default" in schema:
        return f"{name}: {kind} = {_literal(schema['default'])}"
    return f"{name}: {kind}" if required else f"{name}?: {kind}"


def _plain(schema: Mapping[str, Any], types: Writer) -> str:
    kind = schema.get("type")
    if kind == "array":
        return f"list[{types.inner(schema['items'])}]" if "items" in schema else "list"
    if kind == "object" and (properties := properties_of(schema)):
        required = required_of(schema)

        def field(named: tuple[str, Any]) -> str:
            name, sub = named
            return f"{name}{'' if name in required else '?'}: {types.inner(sub)}"

        return "{" + types.joined(", ", properties.items(), field) + "}"
    return _TYPES.get(kind, "Any") if isinstance(kind, str) else "Any"


def _literal(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


PYTHON = TypeWords("Any", _literal, _plain)
"""Types as a Python programmer would write them."""

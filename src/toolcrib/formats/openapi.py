"""Tools as an OpenAPI 3.1 document of the service that runs them: ``POST /tools/{name}/run``.

OpenAPI 3.1 speaks JSON Schema 2020-12, so schemas go in as they are; only their references move, because a reference
starts at the root of the document.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from toolcrib.core.json import copied
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.provider import Loss


def definition(spec: ToolSpec, name: str, losses: list[Loss]) -> dict[str, Any]:  # noqa: ARG001 - nothing is lost
    """The part of the document that is about one tool."""
    arguments, output = f"{name}.arguments", f"{name}.data"
    schemas: dict[str, Any] = {arguments: _moved(spec.parameters, f"#/components/schemas/{arguments}")}
    data: JsonSchema = {}
    if spec.returns:
        schemas[output] = _moved(spec.returns, f"#/components/schemas/{output}")
        data = {"$ref": f"#/components/schemas/{output}"}
    return {
        "paths": {f"/tools/{name}/run": {"post": _operation(spec, name, arguments, data)}},
        "components": {"schemas": schemas},
    }


def document(parts: Iterable[dict[str, Any]], title: str = "Tools", version: str = "1.0.0") -> dict[str, Any]:
    """The parts of many tools as one document."""
    paths: dict[str, Any] = {}
    schemas: dict[str, Any] = {}
    for part in parts:
        paths |= part["paths"]
        schemas |= part["components"]["schemas"]
    return {
        "openapi": "3.1.0",
        "info": {"title": title, "version": version},
        "paths": paths,
        "components": {"schemas": schemas},
    }


def _operation(spec: ToolSpec, name: str, arguments: str, data: JsonSchema) -> dict[str, Any]:
    operation: dict[str, Any] = {"operationId": name, "description": spec.description}
    if spec.display_name:
        operation["summary"] = spec.display_name
    tags = [*([spec.category] if spec.category else []), *spec.tags]
    if tags:
        operation["tags"] = list(dict.fromkeys(tags))
    if spec.deprecated:
        operation["deprecated"] = True
    body = {"type": "object", "properties": {"arguments": {"$ref": f"#/components/schemas/{arguments}"}}}
    operation["requestBody"] = {"required": True, "content": {"application/json": {"schema": body}}}
    answer = {"description": "What the call came to", "content": {"application/json": {"schema": _result(data)}}}
    operation["responses"] = {"200": answer}
    return operation


def _result(data: JsonSchema) -> JsonSchema:
    nullable_text = {"type": ["string", "null"]}
    return {
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "data": {"anyOf": [data, {"type": "null"}]} if data else {},
            "error": nullable_text,
            "error_code": dict(nullable_text),
            "metadata": {"type": "object"},
        },
        "required": ["success"],
    }


def _moved(schema: JsonSchema, place: str) -> JsonSchema:
    """The schema with its local references starting at ``place``."""
    moved: JsonSchema = copied(schema)
    todo: list[Any] = [moved]
    while todo:
        node = todo.pop()
        if isinstance(node, dict):
            reference = node.get("$ref")
            if isinstance(reference, str) and (reference == "#" or reference.startswith("#/")):
                node["$ref"] = place + reference[1:]
            todo.extend(node.values())
        elif isinstance(node, list):
            todo.extend(node)
    return moved

"""The published interface of a tool (``tool_api_spec``) and the schemas in it.

Two forms are in use, ``{"input": schema, "output": schema}`` and
``{"entrypoints": {"execute": {"input": schema, "output": schema}, ...}}``; anything else is kept and not read.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from toolcrib.core.schema import JsonSchema, compile_schema
from toolcrib.core.spec import no_parameters

_MAIN_ENTRYPOINT = "execute"


def interface_of(api_spec: Mapping[str, Any]) -> tuple[JsonSchema, JsonSchema]:
    """The parameters and the result schema that a published interface says; none if it says nothing."""
    main = _main(api_spec)
    parameters, returns = main.get("input"), main.get("output")
    if not isinstance(parameters, dict):
        parameters = no_parameters()
    elif parameters.get("type", "object") != "object" and isinstance(parameters["type"], str | list):
        parameters = {"type": "object"}  # a bare value cannot be named arguments; the published form keeps the truth
    return parameters, returns if isinstance(returns, dict) else {}


def published(parameters: JsonSchema, returns: JsonSchema) -> dict[str, Any]:
    """The interface to publish for a tool that has none of its own."""
    if parameters == no_parameters() and not returns:
        return {}
    return {"input": parameters, "output": returns}


def with_interface(api_spec: Mapping[str, Any], parameters: JsonSchema, returns: JsonSchema) -> dict[str, Any]:
    """The published interface with other schemas in the place where it holds them."""
    if not api_spec:
        return {}
    if _is_entrypoints(api_spec):
        entrypoints = api_spec["entrypoints"]
        main = {**_main(api_spec), "input": parameters, "output": returns}
        return {**api_spec, "entrypoints": {**entrypoints, _MAIN_ENTRYPOINT: main}}
    return {**api_spec, "input": parameters, "output": returns}


def check_api_spec(api_spec: Mapping[str, Any], tool: str) -> None:
    """Every schema in a published interface is a JSON Schema, or InvalidSchemaError says which is not."""
    for path, schema in _schemas(api_spec):
        compile_schema(schema, f"{path} in the interface of {tool!r}")


def _schemas(api_spec: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in ("input", "output"):
        if key in api_spec:
            yield repr(key), api_spec[key]
    if _is_entrypoints(api_spec):
        for name, entrypoint in api_spec["entrypoints"].items():
            if isinstance(entrypoint, Mapping):
                yield from ((repr(f"entrypoints.{name}.{key}"), entrypoint[key]) for key in ("input", "output")
                            if key in entrypoint)  # fmt: skip


def _main(api_spec: Mapping[str, Any]) -> Mapping[str, Any]:
    if _is_entrypoints(api_spec):
        main = api_spec["entrypoints"].get(_MAIN_ENTRYPOINT)
        return main if isinstance(main, Mapping) else {}
    return api_spec


def _is_entrypoints(api_spec: Mapping[str, Any]) -> bool:
    return isinstance(api_spec.get("entrypoints"), Mapping)

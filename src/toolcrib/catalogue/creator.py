"""What may enter the catalogue, and how a change of it is made: parsing and checking of specs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.core.json import same
from toolcrib.core.spec import ToolSpec, no_parameters
from toolcrib.core.tool import Tool
from toolcrib.formats.apispec import check_api_spec, interface_of, with_interface
from toolcrib.formats.bundle import bundle_digest

Publishable = ToolSpec | Tool | Mapping[str, Any]


def checked_spec(thing: Publishable) -> ToolSpec:
    """The spec of what is to be published. A published interface fills in parameters that are not given."""
    if isinstance(thing, Tool):
        return checked_spec(thing.spec)
    spec = thing if isinstance(thing, ToolSpec) else ToolSpec.parse(thing)
    check_api_spec(spec.api_spec, spec.name)
    if spec.api_spec and spec.parameters == no_parameters() and not spec.returns:
        parameters, returns = interface_of(spec.api_spec)
        spec = spec.with_changes(parameters=parameters, returns=returns)
    return spec


def with_kept_link(spec: ToolSpec, kept: Mapping[str, Any]) -> ToolSpec:
    """``spec`` with the link of the document that is ``kept``, if both lead to the same bundle.

    Under which address the service hands it out is no change of the tool.
    """
    link, old = spec.binding.source_code_link, kept["binding"]["source_code_link"]
    if link == old or (digest := bundle_digest(link)) is None or digest != bundle_digest(old):
        return spec
    return spec.with_changes(binding=spec.binding.model_copy(update={"source_code_link": old}))


def changed_spec(spec: ToolSpec, changes: Mapping[str, Any]) -> ToolSpec:
    """``spec`` with some fields changed; its interface and the published form of it stay in step."""
    changes = dict(changes)
    if "api_spec" in changes and not same(changes["api_spec"], spec.api_spec):
        if isinstance(changes["api_spec"], Mapping) and not {"parameters", "returns"} & changes.keys():
            changes["parameters"], changes["returns"] = interface_of(changes["api_spec"])
    elif spec.api_spec and {"parameters", "returns"} & changes.keys():
        parameters = changes.get("parameters", spec.parameters)
        returns = changes.get("returns", spec.returns)
        if not same([parameters, returns], [spec.parameters, spec.returns]):
            changes["api_spec"] = with_interface(spec.api_spec, parameters, returns)
    new = spec.with_changes(**changes)
    check_api_spec(new.api_spec, new.name)
    return new

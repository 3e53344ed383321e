"""ToolEntry, the record of ToolsDB, to and from ToolSpec, without loss either way.

Sixteen fields have a home in the spec. What a spec says beyond them travels in ``tool_metadata`` under ``toolcrib``, by
the spec's own field names. That word is always ours: what stands there is read or refused, never kept as metadata. A
publisher's metadata that uses the word is nested one level deeper, in ``toolcrib.metadata``.
What ``tool_metadata`` and ``tool_api_spec`` say about version, author, capabilities, deadline and schemas is read into
the spec as well, and stays where it was.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from typing import Any

from toolcrib.core.errors import ToolValidationError, did_you_mean
from toolcrib.core.json import same
from toolcrib.core.spec import Binding, ToolSpec
from toolcrib.formats.apispec import interface_of, published

FIELD_PATHS: dict[str, str] = {
    "tool_id": "name",
    "tool_metadata": "metadata",
    "tool_search_description": "description",
    "tool_tags": "tags",
    "tool_type": "tool_type",
    "tool_man_page_doc": "manual",
    "tool_api_spec": "api_spec",
    "tool_custom_actions_dsl_map": "actions",
    "default_tool_usage_credentials": "credentials",
    "tool_execution_mode": "execution_mode",
    "tool_policy_rule_uri": "policy_rule_uri",
    "tool_source_code_link": "binding.source_code_link",
    "tool_service_url": "binding.service_url",
    "tool_system_function_rpc_id": "binding.system_function_rpc_id",
    "tool_validation_policy_rule_uri": "validation_policy_rule_uri",
    "tool_validation_mode": "validation_mode",
}
"""Where each field of an entry lives in a spec's document: for filters, a pure renaming."""

TOOL_EXECUTION = (
    "tool_execution_mode", "tool_policy_rule_uri", "tool_source_code_link", "tool_service_url",
    "tool_system_function_rpc_id", "tool_validation_policy_rule_uri", "tool_validation_mode",
)  # fmt: skip
"""The fields of the table ``tool_execution``; the others are those of ``tool_data``, and ``tool_id`` is in both."""

RESERVED = "toolcrib"

_OURS = f"tool_metadata.{RESERVED}"
_ENTRY_FIELDS = {path: key for key, path in FIELD_PATHS.items()}

_BINDING = "binding."
_OTHER_BINDINGS = tuple(name for name in Binding.model_fields if _BINDING + name not in FIELD_PATHS.values())
_EMPTY = ToolSpec(name="empty", description="").to_dict()
_EXTRA_FIELDS = tuple(name for name in _EMPTY if name not in FIELD_PATHS.values() or name == "api_spec")
"""``binding`` is among them for the bindings that an entry has no field for."""
_IN_METADATA = ("version", "author", "capabilities", "timeout_seconds")
"""What a publisher's own metadata say of a spec, if the value is one that the spec can take."""


def entry_to_spec(entry: Mapping[str, Any]) -> ToolSpec:
    """The spec of an entry, or ToolValidationError that names the field. Fields that are left out are empty."""
    for key in entry:
        if key not in FIELD_PATHS:
            raise ToolValidationError(f"a tool entry has no field {key!r}{did_you_mean(key, FIELD_PATHS)}")
    for key in ("tool_metadata", "tool_api_spec"):
        if not isinstance(entry.get(key, {}), dict):
            raise ToolValidationError(f"field {key!r} of the tool entry must be an object")
    extras, metadata = _unwrapped(entry.get("tool_metadata", {}))
    spec = _spec(entry, extras, metadata)
    if "api_spec" in extras and not same(entry.get("tool_api_spec", {}), _interface(entry, spec)):
        raise _refused("api_spec", "must not differ from 'tool_api_spec'")
    return spec


def spec_to_entry(spec: ToolSpec) -> dict[str, Any]:
    """All sixteen fields of the entry, as JSON values."""
    return document_to_entry(spec.to_dict())


def document_to_entry(document: Mapping[str, Any]) -> dict[str, Any]:
    """As :func:`spec_to_entry`, from a spec's document, without making the spec. A release with fewer fields may have
    written it."""
    binding, metadata = document["binding"], document["metadata"]
    entry = {
        key: binding[path.removeprefix(_BINDING)] if path.startswith(_BINDING) else document[path]
        for key, path in FIELD_PATHS.items()
    }
    if not entry["tool_api_spec"]:
        entry["tool_api_spec"] = published(document["parameters"], document["returns"])
    extras = _extras(document, entry["tool_api_spec"])
    if RESERVED in metadata:
        entry["tool_metadata"] = {RESERVED: {**extras, "metadata": metadata}}
    elif extras:
        entry["tool_metadata"] = {**metadata, RESERVED: extras}
    return entry


def entry_changes(spec: ToolSpec, partial: Mapping[str, Any]) -> dict[str, Any]:
    """What a partial entry changes in ``spec``, as fields of the spec: for ``Catalogue.update(name, change)``.

    New metadata brings its version, author, capabilities and deadline along if the old ones came from the metadata.
    """
    after = entry_to_spec({"tool_id": spec.name, **partial})
    paths = [FIELD_PATHS[key] for key in partial]
    changes = {path: getattr(after, path) for path in paths if not path.startswith(_BINDING)}
    ours = partial.get("tool_metadata", {}).get(RESERVED, {})
    bound = [path.removeprefix(_BINDING) for path in paths if path.startswith(_BINDING)]
    if bound := [*bound, *ours.get("binding", {})]:
        changes["binding"] = spec.binding.model_copy(update={name: getattr(after.binding, name) for name in bound})
    if "api_spec" in changes:
        if not spec.api_spec and same(after.api_spec, published(spec.parameters, spec.returns)):
            del changes["api_spec"]  # it was read from here and comes back as it was
        else:
            changes |= {"parameters": after.parameters, "returns": after.returns}
    if "metadata" in changes:
        changes |= _carried_along(spec, after, ours)
    return changes


def _carried_along(spec: ToolSpec, after: ToolSpec, ours: Mapping[str, Any]) -> dict[str, Any]:
    before = _implied(spec.metadata, {})
    names = {name for name in _IN_METADATA if _listed(getattr(spec, name)) == before[name]}
    names |= ours.keys() - {"metadata", "binding", "api_spec"}
    return {name: getattr(after, name) for name in names}


def _listed(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _unwrapped(metadata: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """What an entry's metadata says of the spec's other fields, and the metadata itself."""
    others = {key: value for key, value in metadata.items() if key != RESERVED}
    inside = metadata.get(RESERVED, {})
    if not isinstance(inside, dict):
        raise _refused("", "is kept for fields of a tool and must be an object of them")
    _check_names(inside, (*_EXTRA_FIELDS, "metadata"), "")
    for name in ("metadata", "binding", "api_spec"):
        if not isinstance(inside.get(name, {}), dict):
            raise _refused(name, "must be an object")
    _check_names(inside.get("binding", {}), _OTHER_BINDINGS, "binding.")
    if "metadata" in inside and others:
        raise _refused("metadata", f"stands beside other metadata, {next(iter(others))!r}; put all of it in one place")
    return {key: value for key, value in inside.items() if key != "metadata"}, inside.get("metadata", others)


def _check_names(given: Mapping[str, Any], known: Iterable[str], prefix: str) -> None:
    for name in given:
        if name not in known:
            raise _refused(prefix + name, f"does not exist{did_you_mean(name, known)}")


def _refused(name: str, why: str) -> ToolValidationError:
    return ToolValidationError(f"field {'.'.join(filter(None, (_OURS, name)))!r} of the tool entry {why}")


def _interface(entry: Mapping[str, Any], spec: ToolSpec) -> dict[str, Any]:
    """The published interface that a spec stands for, as far as the entry says one."""
    return spec.api_spec or (published(spec.parameters, spec.returns) if "tool_api_spec" in entry else {})


def _spec(entry: Mapping[str, Any], extras: Mapping[str, Any], metadata: dict[str, Any]) -> ToolSpec:
    data: dict[str, Any] = {"name": "", "description": "", "binding": dict(extras.get("binding", {}))}
    for key, value in entry.items():
        path = FIELD_PATHS[key]
        if path.startswith(_BINDING):
            data["binding"][path.removeprefix(_BINDING)] = value
        else:
            data[path] = value
    implied = _implied(metadata, entry.get("tool_api_spec", {}))
    others = {key: value for key, value in extras.items() if key != "binding"}
    return _parsed({**data, "metadata": metadata, **implied, **others}, extras)


def _parsed(data: dict[str, Any], extras: Mapping[str, Any]) -> ToolSpec:
    try:
        return ToolSpec.parse(data)
    except ToolValidationError as error:
        field = str(error).partition("field '")[2].partition("'")[0]
        ours = field.split(".")[0] in extras and field not in _ENTRY_FIELDS
        name = f"{_OURS}.{field}" if ours else _ENTRY_FIELDS.get(field, field)
        raise type(error)(str(error).replace(f"field {field!r}", f"field {name!r}")) from None


def _implied(metadata: Mapping[str, Any], api_spec: Mapping[str, Any]) -> dict[str, Any]:
    """What an entry says about the fields that it has no place for."""
    parameters, returns = interface_of(api_spec)
    version, author, capabilities = (metadata.get(key) for key in ("version", "author", "capabilities"))
    listed = isinstance(capabilities, list) and all(isinstance(item, str) for item in capabilities)
    return {
        "parameters": parameters,
        "returns": returns,
        "api_spec": dict(api_spec),
        "version": version if isinstance(version, str) else "",
        "author": author if isinstance(author, str) else "",
        "capabilities": capabilities if listed else [],
        "timeout_seconds": _seconds(metadata.get("timeout_seconds")),
    }


def _seconds(value: Any) -> float | None:
    """A deadline; None for whatever cannot be one."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
        return None
    return float(value)


def _extras(document: Mapping[str, Any], api_spec: Mapping[str, Any]) -> dict[str, Any]:
    """What the entry's own fields would not give back."""
    implied = {**_EMPTY, **_implied(document["metadata"], api_spec)}
    binding = {name: to for name in _OTHER_BINDINGS if (to := document["binding"].get(name))}
    extras = {
        name: document[name]
        for name in _EXTRA_FIELDS
        if name != "binding" and name in document and not same(document[name], implied[name])
    }
    return {**extras, "binding": binding} if binding else extras

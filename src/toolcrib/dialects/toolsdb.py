"""ToolsDB: the ``ToolEntry`` record of the Tools Registry, to and from ``ToolSpec`` without loss."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.formats.toolentry import FIELD_PATHS, entry_to_spec, spec_to_entry

__all__ = ["FIELD_PATHS", "ToolEntry"]


@dataclass
class ToolEntry:
    """One tool as the Tools Registry describes it. Only ``tool_id`` is needed to make a ``ToolSpec`` of it."""

    tool_id: str = ""
    tool_metadata: dict[str, Any] = field(default_factory=dict)
    tool_search_description: str = ""
    tool_tags: list[str] = field(default_factory=list)
    tool_type: str = ""
    tool_man_page_doc: str = ""
    tool_api_spec: dict[str, Any] = field(default_factory=dict)
    tool_custom_actions_dsl_map: dict[str, Any] = field(default_factory=dict)
    default_tool_usage_credentials: dict[str, Any] = field(default_factory=dict, repr=False)

    tool_execution_mode: str = ""
    tool_policy_rule_uri: str = ""
    tool_source_code_link: str = ""
    tool_service_url: str = ""
    tool_system_function_rpc_id: str = ""
    tool_validation_policy_rule_uri: str = ""
    tool_validation_mode: str = ""

    def to_spec(self) -> ToolSpec:
        """The spec that says the same; ToolValidationError names the field that is wrong."""
        return entry_to_spec(self.to_dict())

    @classmethod
    def from_spec(cls, spec: ToolSpec) -> ToolEntry:
        return cls(**spec_to_entry(spec))

    def to_dict(self) -> dict[str, Any]:
        """A deep copy as plain data, the credentials included."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolEntry:
        """An entry from plain data such as a ``spec.json``; a field that does not exist is refused by name."""
        entry_to_spec({"tool_id": "any", **{key: data[key] for key in data if key not in FIELD_PATHS}})
        try:
            return cls(**copy.deepcopy(dict(data)))
        except TypeError as error:
            raise ToolValidationError(f"the data is not a tool entry: {error}") from None

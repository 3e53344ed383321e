"""The fields of a ToolSpec as a type checker reads them: what ``@tool(...)`` takes by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from toolcrib.core.safety import SafetyLevel
from toolcrib.core.schema import JsonSchema
from toolcrib.core.spec import Binding, Isolation, ToolExample

_Texts = list[str] | tuple[str, ...]
_Object = Mapping[str, Any]
_SafetyLevel = SafetyLevel | Literal["safe", "low_risk", "medium", "high", "dangerous"]


class SpecFields(TypedDict, total=False):
    """One key for each field of ToolSpec, with what its author may write there."""

    # Identity
    name: str
    display_name: str
    description: str
    version: str
    author: str
    deprecated: bool
    replaced_by: str
    # Classification
    tool_type: str
    category: str
    tags: _Texts
    capabilities: _Texts
    # Interface
    parameters: JsonSchema
    returns: JsonSchema
    returns_description: str
    api_spec: _Object
    actions: _Object
    # Usage
    examples: Sequence[ToolExample | _Object]
    usage_notes: str
    limitations: _Texts
    manual: str
    # Stacking
    compatibilities: _Texts
    incompatible_with: _Texts
    required_config: _Texts
    package_name: str
    pip_install_command: str
    # Model fit
    required_capabilities: _Texts
    optimal_capabilities: _Texts
    requires_page: bool
    is_terminal: bool
    # Execution
    execution_mode: str
    isolation: Isolation
    timeout_seconds: float | None
    cacheable: bool
    max_result_characters: int | None
    safety_level: _SafetyLevel
    binding: Binding | _Object
    # Governance
    policy_rule_uri: str
    validation_policy_rule_uri: str
    validation_mode: str
    credentials: _Object
    # Everything else
    metadata: _Object

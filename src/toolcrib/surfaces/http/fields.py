"""The fields of a ``ToolEntry`` as the REST and GraphQL descriptions tell them."""

from __future__ import annotations

from typing import Literal, NamedTuple


class EntryField(NamedTuple):
    name: str
    kind: Literal["text", "texts", "object"]
    description: str


ENTRY_FIELDS = (
    EntryField("tool_id", "text", "Unique identifier for the tool."),
    EntryField("tool_metadata", "object", "Arbitrary structured metadata (capabilities, version, authors ...)."),
    EntryField("tool_search_description", "text", "Human-readable summary used for keyword search."),
    EntryField("tool_tags", "texts", "Domain-specific tags that categorise the tool."),
    EntryField("tool_type", "text", "Logical type of the tool (extractor, inference, monitor ...)."),
    EntryField("tool_man_page_doc", "text", "User guide in Markdown."),
    EntryField("tool_api_spec", "object", "Input and output schema of the tool."),
    EntryField("tool_custom_actions_dsl_map", "object", "Custom actions the tool can perform."),
    EntryField("default_tool_usage_credentials", "object", "Names of the credentials; the values are always masked."),
    EntryField("tool_execution_mode", "text", "Execution mode (sync, async, batch ...)."),
    EntryField("tool_policy_rule_uri", "text", "URI of the policy rule that governs usage."),
    EntryField("tool_source_code_link", "text", "Address of the tool's ZIP bundle."),
    EntryField("tool_service_url", "text", "Address of the hosted service for this tool."),
    EntryField("tool_system_function_rpc_id", "text", "Identifier of a function of the system runtime."),
    EntryField("tool_validation_policy_rule_uri", "text", "URI of the policy rule that governs validation."),
    EntryField("tool_validation_mode", "text", "Validation mode (strict, loose, manual ...)."),
)

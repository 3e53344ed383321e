"""What `toolcrib` exports is a promise: a name is added here on purpose and never goes away by accident."""

import toolcrib

PUBLIC = [
    "AddressRules",
    "ApprovalRequiredError",
    "Audio",
    "BaseTool",
    "Binding",
    "BreakingChangeError",
    "BudgetSpentError",
    "BundleNotFoundError",
    "Catalogue",
    "CircuitOpenError",
    "ConflictError",
    "DeniedError",
    "ExportError",
    "File",
    "Image",
    "IncompatibleError",
    "InvalidArgumentsError",
    "InvalidBundleError",
    "InvalidNameError",
    "InvalidOutputError",
    "InvalidQueryError",
    "InvalidSchemaError",
    "LayerFailedError",
    "Link",
    "MissingConfigError",
    "MissingDependencyError",
    "ModelCapability",
    "Observed",
    "Observer",
    "OpenTelemetry",
    "OverloadedError",
    "PolicyUnavailableError",
    "QueryBudgetError",
    "RateLimitedError",
    "RepeatedCallError",
    "SafetyLevel",
    "SessionEndedError",
    "SessionLimitError",
    "SessionNotFoundError",
    "SettingsError",
    "StorageFullError",
    "StorageMissingError",
    "StorageRefusedError",
    "StoreEntryError",
    "StoreError",
    "Tool",
    "ToolBusyError",
    "ToolContext",
    "ToolEvent",
    "ToolExample",
    "ToolExistsError",
    "ToolFailedError",
    "ToolInUseError",
    "ToolNotFoundError",
    "ToolRegistry",
    "ToolResult",
    "ToolSpec",
    "ToolTimeoutError",
    "ToolValidationError",
    "ToolcribError",
    "UnauthenticatedError",
    "UnavailableError",
    "UnknownPolicyRuleError",
    "Usage",
    "VersionNotFoundError",
    "create_tool",
    "open_catalogue",
    "plugin_folders",
    "tool",
]


def test_the_public_names_are_these():
    assert sorted(toolcrib.__all__) == PUBLIC


def test_every_public_name_is_there():
    missing = [name for name in toolcrib.__all__ if not hasattr(toolcrib, name)]
    assert missing == []


def test_every_error_of_the_tree_is_public():
    from toolcrib.core import errors

    tree = {name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)}
    assert tree <= set(toolcrib.__all__)

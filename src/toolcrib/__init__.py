"""Toolcrib: define, find, stack, hand over, run and govern the tools of AI agents.

To pytest, whose plugin comes along: PYTEST_DONT_REWRITE. It would warn whoever calls it after an import of this.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolcrib.bootstrap import open_catalogue, plugin_folders
    from toolcrib.calling.observing import Observed, Observer
    from toolcrib.calling.telemetry import OpenTelemetry
    from toolcrib.calling.usage import Usage
    from toolcrib.catalogue import Catalogue
    from toolcrib.core.addresses import AddressRules
    from toolcrib.core.content import Audio, File, Image, Link
    from toolcrib.core.context import ToolContext
    from toolcrib.core.errors import (
        ApprovalRequiredError,
        BreakingChangeError,
        BudgetSpentError,
        BundleNotFoundError,
        CircuitOpenError,
        ConflictError,
        DeniedError,
        ExportError,
        IncompatibleError,
        InvalidArgumentsError,
        InvalidBundleError,
        InvalidNameError,
        InvalidOutputError,
        InvalidQueryError,
        InvalidSchemaError,
        LayerFailedError,
        MissingConfigError,
        MissingDependencyError,
        OverloadedError,
        PolicyUnavailableError,
        QueryBudgetError,
        RateLimitedError,
        RepeatedCallError,
        SessionEndedError,
        SessionLimitError,
        SessionNotFoundError,
        SettingsError,
        StorageFullError,
        StorageMissingError,
        StorageRefusedError,
        StoreEntryError,
        StoreError,
        ToolBusyError,
        ToolcribError,
        ToolExistsError,
        ToolFailedError,
        ToolInUseError,
        ToolNotFoundError,
        ToolTimeoutError,
        ToolValidationError,
        UnauthenticatedError,
        UnavailableError,
        UnknownPolicyRuleError,
        VersionNotFoundError,
    )
    from toolcrib.core.progress import ToolEvent
    from toolcrib.core.result import ToolResult
    from toolcrib.core.safety import ModelCapability, SafetyLevel
    from toolcrib.core.spec import Binding, ToolExample, ToolSpec
    from toolcrib.core.tool import Tool
    from toolcrib.define import BaseTool, create_tool, tool
    from toolcrib.registry import ToolRegistry

__version__ = "0.1.0"

__all__ = [
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

_HOMES = {
    "AddressRules": "toolcrib.core.addresses",
    "Audio": "toolcrib.core.content",
    "File": "toolcrib.core.content",
    "Image": "toolcrib.core.content",
    "Link": "toolcrib.core.content",
    "Observed": "toolcrib.calling.observing",
    "Observer": "toolcrib.calling.observing",
    "OpenTelemetry": "toolcrib.calling.telemetry",
    "Usage": "toolcrib.calling.usage",
    "ToolContext": "toolcrib.core.context",
    "ToolEvent": "toolcrib.core.progress",
    "ToolResult": "toolcrib.core.result",
    "ModelCapability": "toolcrib.core.safety",
    "SafetyLevel": "toolcrib.core.safety",
    "Binding": "toolcrib.core.spec",
    "ToolExample": "toolcrib.core.spec",
    "ToolSpec": "toolcrib.core.spec",
    "Tool": "toolcrib.core.tool",
    "BaseTool": "toolcrib.define",
    "create_tool": "toolcrib.define",
    "tool": "toolcrib.define",
    "ToolRegistry": "toolcrib.registry",
    "open_catalogue": "toolcrib.bootstrap",
    "plugin_folders": "toolcrib.bootstrap",
    "Catalogue": "toolcrib.catalogue",
}
_ERRORS = "toolcrib.core.errors"


def __getattr__(name: str) -> Any:
    """Each name is loaded when it is first asked for: who only runs tools does not pay for the catalogue."""
    if name not in __all__:
        raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES.get(name, _ERRORS)), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*globals(), *__all__]

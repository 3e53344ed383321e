"""Toolcrib: define, find, stack, hand over, run and govern the tools of AI agents."""

from typing import TYPE_CHECKING, Any

from toolcrib.core.context import ToolContext
from toolcrib.core.errors import (
    ApprovalRequiredError,
    BreakingChangeError,
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
    MissingConfigError,
    MissingDependencyError,
    PolicyUnavailableError,
    SettingsError,
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
)
from toolcrib.core.result import ToolResult
from toolcrib.core.safety import ModelCapability, SafetyLevel
from toolcrib.core.spec import Binding, ToolExample, ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define import BaseTool, create_tool, tool
from toolcrib.registry import ToolRegistry

if TYPE_CHECKING:
    from toolcrib.bootstrap import open_catalogue
    from toolcrib.catalogue import Catalogue

__version__ = "0.1.0"

__all__ = [
    "ApprovalRequiredError",
    "BaseTool",
    "Binding",
    "BreakingChangeError",
    "Catalogue",
    "ConflictError",
    "DeniedError",
    "ExportError",
    "IncompatibleError",
    "InvalidArgumentsError",
    "InvalidBundleError",
    "InvalidNameError",
    "InvalidOutputError",
    "InvalidQueryError",
    "InvalidSchemaError",
    "MissingConfigError",
    "MissingDependencyError",
    "ModelCapability",
    "PolicyUnavailableError",
    "SafetyLevel",
    "SettingsError",
    "StoreError",
    "Tool",
    "ToolBusyError",
    "ToolContext",
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
    "create_tool",
    "open_catalogue",
    "tool",
]


def __getattr__(name: str) -> Any:
    """The catalogue is loaded when it is first asked for: an agent that only runs tools does without."""
    if name == "Catalogue":
        from toolcrib.catalogue import Catalogue

        return Catalogue
    if name == "open_catalogue":
        from toolcrib.bootstrap import open_catalogue

        return open_catalogue
    raise AttributeError(f"module 'toolcrib' has no attribute {name!r}")

"""What a call comes to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ToolResult:
    """The outcome of one call: data or an error, never an exception.

    ``error_code`` is the stable code of the error (see :mod:`toolcrib.core.errors`), ``error`` its sentence.
    """

    success: bool
    data: Any = None
    error: str | None = None
    metadata: dict[str, Any] = field(default_factory=dict)
    error_code: str | None = None

    @classmethod
    def success_result(cls, data: Any = None, **metadata: Any) -> ToolResult:
        return cls(success=True, data=data, metadata=metadata)

    @classmethod
    def failure_result(cls, error: str, error_code: str | None = None, **metadata: Any) -> ToolResult:
        return cls(success=False, error=error, metadata=metadata, error_code=error_code)

    @property
    def is_terminal(self) -> bool:
        """Whether the tool that ran ends the task it was called for."""
        return bool(self.metadata.get("is_terminal"))

    def to_dict(self) -> dict[str, Any]:
        return {
            "success": self.success,
            "data": self.data,
            "error": self.error,
            "error_code": self.error_code,
            "metadata": self.metadata,
        }

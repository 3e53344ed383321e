"""FlyBrowser's ToolResult: ours, with the attributes and the ways to make it that its tools are used to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

from toolcrib.core.errors import ToolcribError, ToolTimeoutError
from toolcrib.core.result import ToolResult as CoreResult


@dataclass
class ToolResult(CoreResult):
    """What a tool answers. A plain dataclass: its fields can be set, and attributes of one's own be added."""

    @classmethod
    def failure_result(cls, error: str | BaseException, error_code: str | None = None, **metadata: Any) -> Self:
        """A failure, told by a text or an exception. The code is in ``error_code`` and in the metadata."""
        if isinstance(error, BaseException):
            if error_code is None and isinstance(error, ToolcribError):
                error_code = error.code
            error = str(error) or type(error).__name__
        if error_code is not None:
            metadata["error_code"] = error_code
        return cls(success=False, error=error, metadata=metadata, error_code=error_code)

    @classmethod
    def of_core(cls, result: CoreResult) -> Self:
        """The result of a call; of one that was too late the text says so in FlyBrowser's words."""
        if isinstance(result, cls):
            return result
        error = result.error
        if result.error_code == ToolTimeoutError.code and error is not None and "timed out" not in error:
            error = f"{error} (timed out)"
        return cls(result.success, result.data, error, result.metadata, result.error_code)

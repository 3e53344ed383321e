"""What a call comes to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from toolcrib.core.content import told_media
from toolcrib.core.errors import (
    RETRY_AFTER,
    Answer,
    DeniedError,
    InvalidArgumentsError,
    ToolcribError,
    ToolFailedError,
    ToolTimeoutError,
    kind_for_code,
)
from toolcrib.core.json import as_json


@dataclass(frozen=True, slots=True)
class Ran:
    """A runner's value with ``facts`` about the run, which go into the metadata of the call's result."""

    value: Any
    facts: Mapping[str, Any]


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
    def of(cls, value: Any) -> ToolResult:
        """What a caller is told of a value that a runner returned."""
        if type(value) is Ran:
            return cls(True, value.value, metadata=dict(value.facts))
        return cls(True, value)

    @classmethod
    def success_result(cls, data: Any = None, **metadata: Any) -> Self:
        return cls(success=True, data=data, metadata=metadata)

    @classmethod
    def failure_result(cls, error: str, error_code: str | None = None, **metadata: Any) -> Self:
        return cls(success=False, error=error, metadata=metadata, error_code=error_code)

    @classmethod
    def of_error(cls, error: ToolcribError) -> ToolResult:
        """What a caller is told of a call that could not be made or went wrong."""
        metadata: dict[str, Any] = {"retryable": error.retryable, **error.facts}
        if isinstance(error, InvalidArgumentsError) and error.argument:
            metadata["argument"] = error.argument
        elif isinstance(error, DeniedError) and error.rule:
            metadata["rule"] = error.rule
        elif isinstance(error, ToolTimeoutError):
            metadata["still_running"] = error.still_running
        return cls(False, error=error.message, error_code=error.code, metadata=metadata)

    def to_error(self) -> ToolcribError:
        """The error that a failed call would have raised."""
        kind = kind_for_code(self.error_code) or ToolFailedError
        error = kind.__new__(kind)
        error.args = (self.error or "the tool gave no reason",)
        for detail in ("argument", "rule", "still_running"):
            if detail in self.metadata:
                setattr(error, detail, self.metadata[detail])
        return error

    @property
    def refusal(self) -> Answer | None:
        """How a door answers a call that was not made; None if the tool ran, whatever came of it."""
        kind = None if self.success else kind_for_code(self.error_code)
        return None if kind is None or kind.answer.after_start else kind.answer

    @property
    def way_out(self) -> str:
        """What a model can do about a call that went wrong, in one sentence; empty if the error's own says it."""
        kind = None if self.success else kind_for_code(self.error_code)
        error = self.error or ""
        if kind is None or "again" in error or error.endswith("?"):
            return ""
        if self.metadata.get("still_running"):
            return "It may still have its effect, so look before you call it again."
        seconds = self.metadata.get(RETRY_AFTER)
        return kind.way_out if seconds is None else f"Try again in {seconds:.3g} seconds."

    @property
    def is_terminal(self) -> bool:
        """Whether the tool that ran ends the task it was called for."""
        return bool(self.metadata.get("is_terminal"))

    def to_json(self) -> dict[str, Any]:
        """As ``to_dict``, every part a JSON value: one that is none does not cost the others.

        Images, audio and files are objects with their media type and base64, and so are plain bytes.
        """
        told = self.to_dict() | {"data": told_media(self.data)}
        return {name: as_json(part) for name, part in told.items()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "success": self.success,
            "data": self.data,
            "error": self.error,
            "error_code": self.error_code,
            "metadata": self.metadata,
        }

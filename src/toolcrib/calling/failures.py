"""What a tool raised, as an error of ours."""

from __future__ import annotations

from toolcrib.core.errors import ToolcribError, ToolFailedError


def as_failure(name: str, error: BaseException) -> ToolcribError:
    """``error`` itself if it is one of ours, otherwise a ToolFailedError about it."""
    if isinstance(error, ToolcribError):
        return error
    kind = type(error).__name__
    failure = ToolFailedError(name, f"{kind}: {error}" if str(error) else kind, cause_type=kind)
    failure.__cause__ = error
    return failure

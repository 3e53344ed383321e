"""What a tool raised, as an error of ours."""

from __future__ import annotations

import asyncio

from toolcrib.core.errors import ToolcribError, ToolFailedError


def as_failure(name: str, error: BaseException) -> ToolcribError:
    """``error`` itself if it is one of ours, otherwise a ToolFailedError about it."""
    if isinstance(error, ToolcribError):
        return error
    kind = type(error).__name__
    failure = ToolFailedError(name, f"{kind}: {error}" if str(error) else kind, cause_type=kind)
    failure.__cause__ = error
    return failure


def is_cancellation(error: BaseException) -> bool:
    """Whether ``error`` passes because somebody cancels the task that this is called in. If nobody does, a
    CancelledError is a failure like any other: what its raiser waited for was cancelled.
    """
    task = asyncio.current_task()
    return isinstance(error, asyncio.CancelledError) and (task is None or task.cancelling() > 0)

"""What was done: one recorder for calls and for writes.

The attempt is on record before anything happens, and then its outcome, whatever that was. Every tool that an attempt is
about has its own events, joined by the attempt's id.
"""

from __future__ import annotations

import itertools
import logging
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from toolcrib.core.errors import (
    ApprovalRequiredError,
    DeniedError,
    PolicyUnavailableError,
    StoreError,
    ToolcribError,
    UnauthenticatedError,
)
from toolcrib.core.roles import Principal, Who
from toolcrib.ports import Action, Audit, AuditEvent, Outcome

_log = logging.getLogger(__name__)
_numbers = itertools.count(1)
_REFUSALS = frozenset(
    kind.code for kind in (DeniedError, ApprovalRequiredError, UnauthenticatedError, PolicyUnavailableError)
)
_process = f"{os.getpid():x}-{time.time_ns():x}"


@dataclass(frozen=True, slots=True)
class Recorder:
    audit: Audit
    clock: Callable[[], float] = time.time

    @property
    def remote(self) -> bool:
        return self.audit.remote

    def begin(self, targets: Mapping[str, Action], principal: str) -> Attempt:
        """An attempt that is on record. Raises StoreError if it cannot be: then nothing may happen."""
        attempt = Attempt(f"{_process}-{next(_numbers)}", targets, principal)
        self._record(attempt, "attempt", "")
        return attempt

    def end(self, attempt: Attempt, outcome: Outcome, detail: str = "") -> None:
        """Record how it ended. The attempt is on record already, so a failure here must not hide the outcome itself."""
        try:
            self._record(attempt, outcome, detail)
        except StoreError as error:
            _log.error("the outcome %r of call %s could not be recorded: %s", outcome, attempt.id, error)

    def _record(self, attempt: Attempt, outcome: Outcome, detail: str) -> None:
        at = self.clock()
        events = [
            AuditEvent(attempt.id, at, attempt.principal, action, name, outcome, detail)
            for name, action in attempt.targets.items()
        ]
        self.audit.record(*events)


@dataclass(slots=True)
class Attempt:
    """Something under way; ``detail`` ends up beside its outcome if it succeeds."""

    id: str
    targets: Mapping[str, Action]
    principal: str
    detail: str = ""


@contextmanager
def recorded(recorder: Recorder | None, targets: Mapping[str, Action], principal: Who) -> Iterator[Attempt]:
    """Recorded, whatever happens inside."""
    if recorder is None:
        yield Attempt("", targets, "")
        return
    attempt = recorder.begin(targets, Principal.of(principal).name)
    try:
        yield attempt
    except ToolcribError as error:
        recorder.end(attempt, outcome_of(error.code), str(error))
        raise
    except BaseException as error:
        recorder.end(attempt, "crashed", type(error).__name__)
        raise
    recorder.end(attempt, "done", attempt.detail)


def outcome_of(error_code: str | None) -> Outcome:
    """What the audit calls the end that an error's code stands for."""
    if error_code is None:
        return "done"
    return "refused" if error_code in _REFUSALS else "failed"

"""What was done: one recorder for calls and writes. The attempt is on record before anything happens, then its outcome.

Every tool that an attempt is about has its own events, joined by the attempt's id.
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
from toolcrib.core.limits import Action
from toolcrib.core.masking import without_secrets
from toolcrib.core.roles import Principal, Who
from toolcrib.ports import Audit, AuditEvent, Outcome

_log = logging.getLogger(__name__)
_numbers = itertools.count(1)
_REFUSALS = frozenset(
    kind.code for kind in (DeniedError, ApprovalRequiredError, UnauthenticatedError, PolicyUnavailableError)
)
_process = f"{os.getpid():x}-{time.time_ns():x}"
_LONGEST_NAME, _LONGEST_DETAIL = 200, 2000
_event = tuple.__new__
"""Makes an AuditEvent at half the price of calling it."""

Targets = tuple[tuple[str, Action], ...]
"""The tools that an attempt is about, and what it does to each."""


class Recorder:
    """Tells ``audit``. Every call passes here twice, so what would be calls of its own is written out,
    and the way of one target is its own.
    """

    __slots__ = ("_clock", "_record", "remote")

    def __init__(self, audit: Audit, clock: Callable[[], float] = time.time) -> None:
        self.remote = audit.remote
        self._record = audit.record
        self._clock = clock

    def begin(self, targets: Targets, principal: str, session: str = "") -> list[AuditEvent]:
        """The attempt, which is on record. Raises StoreError if it cannot be: then nothing may happen."""
        call, at = f"{_process}-{next(_numbers)}", self._clock()
        detail = session and f"session: {session}"
        if len(targets) == 1:
            ((name, action),) = targets
            if len(name) > _LONGEST_NAME or not name.isascii():
                name = _kept(name, _LONGEST_NAME)
            event = _event(AuditEvent, (call, at, principal, action, name, "attempt", detail))
            self._record(event)
            return [event]
        attempt = [
            AuditEvent(call, at, principal, action, _kept(name, _LONGEST_NAME), "attempt", detail)
            for name, action in targets
        ]
        self._record(*attempt)
        return attempt

    def refuse(self, name: str, action: Action, principal: str, detail: str) -> None:
        """Record what a door refused before anybody else was asked. The caller is refused also if this fails."""
        call, at = f"{_process}-{next(_numbers)}", self._clock()
        attempt = AuditEvent(call, at, principal, action, _kept(name, _LONGEST_NAME), "attempt")
        detail = _kept(without_secrets(detail), _LONGEST_DETAIL)
        try:
            self._record(attempt, attempt._replace(outcome="refused", detail=detail))
        except StoreError as error:
            _log.error("the refusal of call %s could not be recorded: %s", call, error)

    def end(self, attempt: list[AuditEvent], outcome: Outcome, detail: str = "") -> None:
        """Record how it ended. The attempt is on record already, so a failure here must not hide the outcome itself."""
        at, detail = self._clock(), detail and _kept(detail, _LONGEST_DETAIL)
        try:
            if len(attempt) == 1:
                call, _, principal, action, name, _, _ = attempt[0]
                self._record(_event(AuditEvent, (call, at, principal, action, name, outcome, detail)))
            else:
                self._record(*(event._replace(at=at, outcome=outcome, detail=detail) for event in attempt))
        except StoreError as error:
            _log.error("the outcome %r of call %s could not be recorded: %s", outcome, attempt[0].call, error)


@dataclass(slots=True)
class Detail:
    """What stands beside the outcome of an attempt that succeeds."""

    detail: str = ""


@contextmanager
def recorded(recorder: Recorder | None, targets: Mapping[str, Action], principal: Who) -> Iterator[Detail]:
    """Recorded, whatever happens inside."""
    told = Detail()
    if recorder is None:
        yield told
        return
    attempt = recorder.begin(tuple(targets.items()), Principal.of(principal).name)
    try:
        yield told
    except ToolcribError as error:
        detail = without_secrets(with_rule(str(error), getattr(error, "rule", "")))
        recorder.end(attempt, outcome_of(error.code), detail)
        raise
    except BaseException as error:
        recorder.end(attempt, "crashed", type(error).__name__)
        raise
    recorder.end(attempt, "done", told.detail)


def _kept(text: str, most: int) -> str:
    """What a caller wrote, as it goes on record: not so long that it fills the disk, and without lone surrogates."""
    return text if len(text) <= most and text.isascii() else text[:most].encode(errors="replace").decode()


def with_rule(detail: str, rule: str) -> str:
    """What stands beside an outcome; a refusal begins with the rule that refused."""
    return f"{rule}: {detail}" if rule else detail


def outcome_of(error_code: str | None) -> Outcome:
    """What the audit calls the end that an error's code stands for; None is no error."""
    return "done" if error_code is None else "refused" if error_code in _REFUSALS else "failed"

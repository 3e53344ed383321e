"""The controller of every write: the attempt is audited, the policy is asked, the outcome is audited."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from toolcrib.catalogue.credentials import without
from toolcrib.core.errors import DeniedError, PolicyUnavailableError, StoreError, ToolcribError
from toolcrib.ports import Action, Audit, AuditEvent, Policy, PolicyRequest

Outcome = Literal["attempt", "done", "failed", "refused", "crashed"]

_log = logging.getLogger(__name__)


@dataclass
class Attempt:
    """What is being tried; ``detail`` ends up beside the outcome."""

    call: str
    detail: str = ""


@dataclass(frozen=True)
class Guard:
    policy: Policy | None
    audit: Audit | None
    clock: Callable[[], float]
    new_id: Callable[[], str] = field(default=lambda: uuid.uuid4().hex)

    @contextmanager
    def attempt(self, targets: Mapping[str, Action], principal: str) -> Iterator[Attempt]:
        """Audited, whatever happens inside; each tool has its own events, joined by one call."""
        attempt = Attempt(self.new_id())
        self._record(attempt, "attempt", targets, principal)
        try:
            yield attempt
        except (DeniedError, PolicyUnavailableError) as error:
            self._conclude(attempt, "refused", targets, principal, str(error))
            raise
        except ToolcribError as error:
            self._conclude(attempt, "failed", targets, principal, str(error))
            raise
        except BaseException as error:
            self._conclude(attempt, "crashed", targets, principal, type(error).__name__)
            raise
        self._conclude(attempt, "done", targets, principal, attempt.detail)

    def authorise(self, action: Action, document: dict[str, Any], digest: str, principal: str) -> None:
        """Nothing, or DeniedError with the policy's reason."""
        if self.policy is None:
            return
        name = document["name"]
        decision = self.policy.decide(PolicyRequest(principal, action, name, without(document), digest))
        if not decision.allow:
            who = repr(principal) if principal else "an anonymous caller"
            reason = decision.reason or "it gave no reason"
            raise DeniedError(f"the policy does not let {who} {action} {name!r}: {reason}", rule=decision.rule)

    def _conclude(
        self, attempt: Attempt, outcome: Outcome, targets: Mapping[str, Action], principal: str, detail: str
    ) -> None:
        """Record how it ended. The attempt is on record already, so a failure here must not hide the outcome itself."""
        try:
            self._record(attempt, outcome, targets, principal, detail)
        except StoreError as error:
            _log.error("the outcome %r of call %s could not be audited: %s", outcome, attempt.call, error)

    def _record(
        self, attempt: Attempt, outcome: Outcome, targets: Mapping[str, Action], principal: str, detail: str = ""
    ) -> None:
        if self.audit is None:
            return
        at = self.clock()
        self.audit.record(
            *(
                AuditEvent(attempt.call, at, principal, action, name, outcome, detail)
                for name, action in targets.items()
            )
        )

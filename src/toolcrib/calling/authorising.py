"""Who may do what: the one question to the policy, for calls, writes and reads alike."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.core.errors import DeniedError
from toolcrib.core.roles import Principal, Who
from toolcrib.core.spec import digest_of
from toolcrib.ports import Action, Policy, PolicyRequest


@dataclass(frozen=True, slots=True)
class Authoriser:
    """Asks ``policy``; without one everything is allowed."""

    policy: Policy | None = None

    @property
    def remote(self) -> bool:
        return self.policy is not None and self.policy.remote

    @property
    def decides_reads(self) -> bool:
        """A policy in this process is asked about reads too; a remote one is not: every look would be a round trip."""
        return self.policy is not None and not self.policy.remote

    def check(self, action: Action, document: Mapping[str, Any], principal: Who, *, digest: str = "") -> None:
        """Nothing, or DeniedError with the policy's reason. ``digest`` is the document's, if it is known already."""
        if self.policy is None:
            return
        who = Principal.of(principal)
        name = document["name"]
        public = {key: value for key, value in document.items() if key != "credentials"}
        decision = self.policy.decide(
            PolicyRequest(who.name, action, name, public, digest or digest_of(public), who.roles)
        )
        if decision.allow:
            return
        rule = decision.rule or "policy"
        named = repr(who.name) if who.name else "an anonymous caller"
        reason = decision.reason or "it gave no reason"
        raise DeniedError(f"the policy does not let {named} {action} {name!r}: {reason}", rule=rule)

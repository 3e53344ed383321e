"""Who may do what: a token's limits, a tool's owner and the policy, asked in one place for calls, writes and reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.core.errors import DeniedError
from toolcrib.core.limits import LIMIT_RULE, Action
from toolcrib.core.roles import Principal, Role, Who
from toolcrib.core.spec import digest_of, rules_named
from toolcrib.ports import Policy, PolicyRequest, Record

_WRITES: tuple[Action, ...] = ("create", "update")
OWNER_RULE = "owner"
"""The rule that a refusal to who does not own the tool names."""


@dataclass(frozen=True, slots=True)
class Authoriser:
    """Asks ``policy``; without one everything is allowed that the caller's token was made for.

    With ``owners``, of those whom a door let in only its owner and administrators change or delete a tool.
    """

    policy: Policy | None = None
    owners: bool = True

    @property
    def remote(self) -> bool:
        return self.policy is not None and self.policy.remote

    def decides_reads(self, principal: Who) -> bool:
        """Whether some tools are not for ``principal`` to see."""
        return self._asked_about("read") or Principal.of(principal).limits is not None

    def check(
        self,
        action: Action,
        document: Mapping[str, Any],
        principal: Who,
        *,
        digest: str = "",
        before: Record | None = None,
    ) -> tuple[str, ...]:
        """DeniedError with the reason, or, of what is written, the policy rules it names that nobody serves.

        ``digest`` is the document's, if it is known already.

        ``before`` is what is changed or deleted: its owner counts, and nobody gets out of a token's limits by a change.
        """
        who = Principal.of(principal)
        for state in (document,) if before is None else (document, before.document):
            check_limits(action, state, who)
        if before is not None and not self.may_change(before, who):
            raise _not_theirs(action, before, who)
        if self._asked_about(action):
            return self._ask(action, document, who, digest)
        return rules_named(document) if action in _WRITES else ()

    def may_change(self, record: Record, principal: Who) -> bool:
        """Whether the tool is the principal's to change. Programs of the operator, which came through no door, may."""
        who = Principal.of(principal)
        is_theirs = bool(record.owner) and record.owner == who.owns
        return not self.owners or not who.may or Role.ADMIN in who.may or is_theirs

    def _asked_about(self, action: Action) -> bool:
        """A policy in this process is asked about reads too; a remote one is not: every look would be a round trip."""
        return self.policy is not None and not (action == "read" and self.policy.remote)

    def _ask(self, action: Action, document: Mapping[str, Any], who: Principal, digest: str) -> tuple[str, ...]:
        assert self.policy is not None
        name = document["name"]
        public = {key: value for key, value in document.items() if key != "credentials"}
        decision = self.policy.decide(
            PolicyRequest(who.name, action, name, public, digest or digest_of(public), who.roles)
        )
        if decision.allow:
            return decision.unserved
        rule = decision.rule or "policy"
        named = repr(who.name) if who.name else "an anonymous caller"
        reason = decision.reason or "it gave no reason"
        raise DeniedError(f"the policy does not let {named} {action} {name!r}: {reason}", rule=rule)


def check_limits(action: Action, document: Mapping[str, Any], principal: Who) -> None:
    """DeniedError if the principal's token was not made for this. Asked first, it says nothing of the tool."""
    who = Principal.of(principal)
    if who.limits is not None and (reason := who.limits.refusal(action, document)):
        raise DeniedError(
            f"the token of {who.name!r} does not let it {action} {document['name']!r}: {reason}", rule=LIMIT_RULE
        )


def _not_theirs(action: Action, record: Record, who: Principal) -> DeniedError:
    whose = f"belongs to {record.owner!r}" if record.owner else "has no owner"
    return DeniedError(
        f"{who.name!r} may not {action} {record.name!r}: it {whose}, and only the owner of a tool or an administrator "
        f"changes it (an administrator gives it away with 'toolcrib tools own {record.name} --to WHO')",
        rule=OWNER_RULE,
    )

"""No rule at all."""

from __future__ import annotations

from toolcrib.ports import Decision, PolicyRequest

_YES = Decision(True, rule="allow_all")


class AllowAll:
    remote = False

    def decide(self, request: PolicyRequest) -> Decision:  # noqa: ARG002 - nothing in it matters
        return _YES

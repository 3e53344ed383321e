"""Ask a policy service over HTTP.

The question is a signed POST of ``{"principal", "roles", "action", "tool", "digest", "spec"}``, the answer
``{"allow": true or false, "reason": "..."}`` with status 200. Anything else means that nobody answered. A service that
does not know a policy rule which the tool names says so with ``"unknown_rules": ["<uri>"]``; it serves the others.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

from toolcrib.adapters.http import Reply
from toolcrib.adapters.signing import SignedPost
from toolcrib.core.errors import DeniedError, PolicyUnavailableError, UnavailableError
from toolcrib.core.spec import rules_named
from toolcrib.ports import Decision, PolicyRequest

_log = logging.getLogger(__name__)


class WebhookPolicy:
    """Unreachable means PolicyUnavailableError, or yes if ``fail_open`` says so."""

    remote = True

    def __init__(self, url: str, *, secret: str = "", seconds: float = 5, fail_open: bool = False) -> None:
        self._fail_open = fail_open
        self._post = SignedPost(url, "the policy webhook", secret=secret, seconds=seconds)

    def decide(self, request: PolicyRequest) -> Decision:
        try:
            return self._answer(self._ask(request), rules_named(request.spec))
        except PolicyUnavailableError as error:
            if not self._fail_open:
                raise
            _log.warning("allowed without a decision, as configured: %s", error)
            return Decision(True, "the policy service did not answer, and is configured open", "webhook:open")

    def close(self) -> None:
        self._post.close()

    def _ask(self, request: PolicyRequest) -> Reply:
        question = {
            "principal": request.principal,
            "roles": list(request.roles),
            "action": request.action,
            "tool": request.tool,
            "digest": request.digest,
            "spec": dict(request.spec),
        }
        try:
            return self._post.send(question)
        except (TimeoutError, UnavailableError, DeniedError) as error:
            raise PolicyUnavailableError(f"the policy service could not be asked: {error}") from None

    def _answer(self, reply: Reply, named: Sequence[str]) -> Decision:
        if reply.status != 200:
            raise PolicyUnavailableError(f"the policy service answered with status {reply.status} instead of 200")
        try:
            answer = reply.json()
        except ValueError:
            raise PolicyUnavailableError("the policy service did not answer with JSON") from None
        if not isinstance(answer, dict) or not isinstance(answer.get("allow"), bool):
            raise PolicyUnavailableError("the policy service's answer has no 'allow' that is true or false")
        reason, unknown = answer.get("reason"), answer.get("unknown_rules")
        unserved = tuple(uri for uri in named if isinstance(unknown, list) and uri in unknown)
        return Decision(answer["allow"], reason[:1000] if isinstance(reason, str) else "", "webhook", unserved)

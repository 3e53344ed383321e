"""What is refused at the door itself goes on record too: a role that is lacking.

Calls and writes are recorded where they are made, with whatever refuses them there. Here is what never gets so far, and
reads, of which only refusals are recorded. Who asks again and again does not fill the disk: each caller has so many
events, and the others are in the log alone. So are requests without valid credentials, which are nobody's.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from starlette.types import Scope

from toolcrib.calling.blocking import HOUSEKEEPING, ask
from toolcrib.calling.recording import Recorder, with_rule
from toolcrib.core.errors import DeniedError, RateLimitedError
from toolcrib.core.roles import ROLE_RULE, Principal
from toolcrib.surfaces.http.gate import PRINCIPAL
from toolcrib.surfaces.http.limits import RateLimit
from toolcrib.surfaces.http.routes import ACTION, ROUTE


class Refusals:
    """Records at most 100 changes and runs of a caller at once and one a second, and 10 reads and one a minute."""

    def __init__(self, recorder: Recorder | None, clock: Callable[[], float] = time.monotonic) -> None:
        self._recorder = recorder
        self._effects = RateLimit(1.0, 100, clock)
        self._reads = RateLimit(1 / 60, 10, clock)

    async def record(self, scope: Scope, error: Exception, tool: str = "") -> None:
        """Record ``error`` if it is a refusal that nobody else has recorded; ``tool`` is what the path does not say."""
        principal: Principal | None = scope.get(PRINCIPAL)
        action = scope.get(ACTION)
        if self._recorder is None or action is None or principal is None or not principal.may:
            return
        if not isinstance(error, DeniedError) or not (action == "read" or error.rule == ROLE_RULE):
            return
        try:
            (self._reads if action == "read" else self._effects).take(principal.key)
        except RateLimitedError:
            return
        method, path = scope[ROUTE]
        detail = with_rule(f"{method} {path}: {error}", error.rule)
        name = tool or _tool(scope)
        await ask(HOUSEKEEPING, self._recorder, self._recorder.refuse, name, action, principal.name, detail)


def _tool(scope: Scope) -> str:
    """The tool that was asked for, as far as that can be told without the body."""
    named = next((value.decode("latin-1") for key, value in scope["headers"] if key == b"mcp-name"), "")
    return str(scope.get("path_params", {}).get("tool_id", named))

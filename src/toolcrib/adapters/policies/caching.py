"""Remember decisions for a while, around any policy."""

from __future__ import annotations

import time
from collections.abc import Callable

from toolcrib.calling.remembered import Remembered
from toolcrib.ports import Decision, Policy, PolicyRequest

_Key = tuple[str, tuple[str, ...], str, str, str]


class CachingPolicy:
    """Asks ``inner`` once per principal with its roles, action, tool and digest within ``seconds``.

    A digest stands for the whole spec, so a changed tool is asked about anew; a request without one is not kept.
    A policy that could not be asked is not remembered.
    """

    def __init__(
        self, inner: Policy, *, seconds: float = 30, size: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.remote = inner.remote
        self._inner = inner
        self._seconds = seconds
        self._kept: Remembered[_Key, Decision] = Remembered(size, clock=clock)

    def decide(self, request: PolicyRequest) -> Decision:
        if not request.digest:
            return self._inner.decide(request)
        key = (request.principal, request.roles, request.action, request.tool, request.digest)
        decision = self._kept.get(key)
        if decision is None:
            decision = self._inner.decide(request)
            self._kept.put(key, decision, seconds=self._seconds)
        return decision

    def clear(self) -> None:
        self._kept.clear()

"""Remember decisions for a while, around any policy."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

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
        self._size = size
        self._clock = clock
        self._kept: OrderedDict[_Key, tuple[float, Decision]] = OrderedDict()
        self._lock = threading.Lock()

    def decide(self, request: PolicyRequest) -> Decision:
        if not request.digest:
            return self._inner.decide(request)
        key = (request.principal, request.roles, request.action, request.tool, request.digest)
        now = self._clock()
        with self._lock:
            until, decision = self._kept.get(key, (now, None))
        if decision is not None and now < until:
            return decision
        decision = self._inner.decide(request)
        with self._lock:
            self._kept[key] = (now + self._seconds, decision)
            self._kept.move_to_end(key)
            while len(self._kept) > self._size:
                self._kept.popitem(last=False)
        return decision

    def clear(self) -> None:
        with self._lock:
            self._kept.clear()

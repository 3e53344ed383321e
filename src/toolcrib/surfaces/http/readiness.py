"""Whether the service can do its work now: whether it can write where it must."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future

from toolcrib.core.errors import StoreError, ToolcribError

_log = logging.getLogger(__name__)


class Readiness:
    """``parts`` are tried one after the other, each by its name, in a thread that does nothing else.

    One trial at a time, however many ask; its answer holds for ``remembered`` seconds. A part that takes longer than
    ``patience`` seconds is not ready, and nobody who asks waits longer than that.
    """

    def __init__(
        self, parts: Mapping[str, Callable[[], object]], *, patience: float = 5.0, remembered: float = 1.0
    ) -> None:
        self._parts = parts
        self._patience = patience
        self._remembered = remembered
        self._lock = threading.Lock()
        self._trial: _Trial | None = None

    async def problem(self) -> ToolcribError | None:
        """What keeps the service from working; None if nothing does."""
        trial = self._current()
        if trial.outcome.done():
            return trial.outcome.result()
        left = max(0.0, trial.began + self._patience - time.monotonic())
        try:
            return await asyncio.wait_for(asyncio.wrap_future(trial.outcome), left)
        except TimeoutError:
            return StoreError(f"the {trial.part} did not answer within {self._patience:g} s")

    def _current(self) -> _Trial:
        with self._lock:
            if self._trial is None or self._trial.is_old(self._remembered):
                self._trial = _Trial(self._parts)
                threading.Thread(target=self._trial.run, name="toolcrib-readiness", daemon=True).start()
            return self._trial


class _Trial:
    def __init__(self, parts: Mapping[str, Callable[[], object]]) -> None:
        self._parts = parts
        self.part = next(iter(parts), "service")
        self.began = time.monotonic()
        self.ended = 0.0
        self.outcome: Future[ToolcribError | None] = Future()
        self.outcome.set_running_or_notify_cancel()  # who stops waiting does not stop the others

    def is_old(self, seconds: float) -> bool:
        return self.outcome.done() and time.monotonic() > self.ended + seconds

    def run(self) -> None:
        problem = self._first_problem()
        self.ended = time.monotonic()
        self.outcome.set_result(problem)

    def _first_problem(self) -> ToolcribError | None:
        for part, attempt in self._parts.items():
            self.part = part  # who waits in vain is told what for
            try:
                attempt()
            except ToolcribError as error:
                return error
            except Exception:  # noqa: BLE001 - a thread is a boundary, and somebody waits for an answer
                _log.exception("the %s could not be tried", self.part)
                return StoreError(f"the {self.part} could not be tried; the log has the reason")
        return None

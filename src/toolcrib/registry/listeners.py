"""Those who listen to a registry."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

from toolcrib.core.errors import ToolValidationError, did_you_mean
from toolcrib.core.events import EVENT_NAMES, RegistryEvent

Handler = Callable[[Any], object]

_log = logging.getLogger("toolcrib")


class Listeners:
    """Handlers run in the order they came; one that raises is logged, and the rest still run."""

    def __init__(self) -> None:
        self._handlers: dict[str, tuple[Handler, ...]] = {}
        self._lock = threading.Lock()

    def on(self, event: str, handler: Handler) -> None:
        if event not in EVENT_NAMES:
            raise ToolValidationError(
                f"there is no event {event!r}{did_you_mean(event, EVENT_NAMES)}; there are {', '.join(EVENT_NAMES)}"
            )
        with self._lock:
            self._handlers[event] = (*self._handlers.get(event, ()), handler)

    def off(self, event: str, handler: Handler) -> None:
        """Stop calling the handler. One that was never there is a no-op."""
        with self._lock:
            self._handlers[event] = tuple(known for known in self._handlers.get(event, ()) if known != handler)

    def tell(self, event: RegistryEvent) -> None:
        for handler in self._handlers.get(event.event, ()):
            try:
                handler(event)
            except Exception:  # noqa: BLE001 - a listener is somebody else's code: it must not harm the registry
                _log.exception("a handler of %r raised", event.event)

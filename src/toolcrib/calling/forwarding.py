"""What tools log in another process, on its way to the handlers of this one."""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable

from toolcrib.core.logs import TOOLS, logger_of


class _Sender(logging.Handler):
    """Sends records as text: what was formatted over there need not be importable here."""

    def __init__(self, send: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            plain = copy.copy(record)
            plain.msg, plain.args = record.getMessage(), None
            if record.exc_info:
                plain.exc_text = logging.Formatter().formatException(record.exc_info)
                plain.exc_info = None
            self._send(plain)
        except Exception:  # such as an extra that cannot be pickled: said on the standard error, as logging does
            self.handleError(record)


def send_logs(send: Callable[[logging.LogRecord], None], tool: str, level: int) -> None:
    """From now on, records of tools go to ``send`` and nowhere else; the tool's own from ``level`` on."""
    tools = logging.getLogger(TOOLS)
    tools.handlers, tools.propagate = [_Sender(send)], False
    logger_of(tool).setLevel(level)


def emit(record: logging.LogRecord) -> None:
    """A record from another process, by the rules of this one."""
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)

"""What tools log in another process, on its way to the handlers of this one."""

from __future__ import annotations

import logging
from collections.abc import Callable

from toolcrib.core.logs import TOOLS, logger_of

_TRACEBACKS = logging.Formatter()


class _Sender(logging.Handler):
    """Sends records as text: what was formatted over there need not be importable here."""

    def __init__(self, send: Callable[[logging.LogRecord], None]) -> None:
        super().__init__()
        self._send = send

    def emit(self, record: logging.LogRecord) -> None:
        try:
            told = {**record.__dict__, "msg": record.getMessage(), "args": None}
            if record.exc_info:
                told |= {"exc_text": _TRACEBACKS.formatException(record.exc_info), "exc_info": None}
            self._send(logging.makeLogRecord(told))
        except Exception:  # such as an extra that cannot be pickled: said on the standard error, as logging does
            self.handleError(record)


def send_logs(send: Callable[[logging.LogRecord], None], tool: str, level: int) -> None:
    """From now on, records of tools go to ``send`` and nowhere else; the tool's own from ``level`` on."""
    tools = logging.getLogger(TOOLS)
    for handler in tools.handlers[:]:
        tools.removeHandler(handler)
    tools.addHandler(_Sender(send))
    tools.propagate = False
    logger_of(tool).setLevel(level)


def emit(record: logging.LogRecord) -> None:
    """A record from another process, by the rules of this one."""
    logger = logging.getLogger(record.name)
    if logger.isEnabledFor(record.levelno):
        logger.handle(record)

"""The logger that a tool finds in its context. Nothing of ours is logged here: what a tool says is its own doing."""

from __future__ import annotations

from collections.abc import Mapping
from logging import Logger, LogRecord, getLogger
from typing import Any

TOOLS = "toolcrib.tools"
"""The logger above those of all tools."""


def logger_of(tool: str) -> Logger:
    return getLogger(f"{TOOLS}.{tool}" if tool else TOOLS)


class CallLogger(Logger):
    """Logs under the tool's name, for one call: ``tool``, ``call_id`` and ``principal`` are on each record.

    Level, filters and handlers are those of the tool's own logger.
    """

    def __init__(self, tool: str, call_id: str, principal: str) -> None:
        self._own = logger_of(tool)
        self._call = {"tool": tool, "call_id": call_id, "principal": principal}
        super().__init__(self._own.name)
        self.parent = self._own

    def isEnabledFor(self, level: int) -> bool:  # noqa: N802 - as logging calls it
        return level >= self.level and self._own.isEnabledFor(level)

    def makeRecord(self, *words: Any, **more: Any) -> LogRecord:  # noqa: N802 - as logging calls it
        record = super().makeRecord(*words, **more)
        fields = record.__dict__
        given = fields.get("details")
        told = {name: value for name, value in self._call.items() if value}
        fields.update(self._call, details={**told, **given} if isinstance(given, Mapping) else told)
        return record

    def handle(self, record: LogRecord) -> None:
        kept: Any = self._own.filter(record)  # from Python 3.12 on it may be another record
        if kept and not self._own.disabled:
            super().handle(kept if isinstance(kept, LogRecord) else record)

    def __reduce__(self) -> tuple[Any, ...]:
        return CallLogger, tuple(self._call.values())

"""Log lines for people or for programs, and nothing secret in either."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import Any

from toolcrib.core.masking import without_secrets


class JsonLines(logging.Formatter):
    """One JSON object a line; ``extra={"details": {...}}`` adds fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        details = getattr(record, "details", None)
        if isinstance(details, dict):
            line.update(details)
        line.update(_trace())
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return without_secrets(json.dumps(line, default=str, ensure_ascii=False))


class PlainLines(logging.Formatter):
    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%Y-%m-%d %H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        line = super().format(record)
        details = getattr(record, "details", None)
        if isinstance(details, dict):
            shown = ((name, value) for name, value in details.items() if name not in ("method", "status"))
            line += "".join(f" {name}={_on_one_line(value)}" for name, value in shown)
        return without_secrets(line)


def _on_one_line(value: object) -> str:
    """What a caller sent must not look like a line of ours."""
    text = str(value)
    return text if text.isprintable() else repr(text)


def _trace() -> dict[str, str]:
    from opentelemetry import trace

    context = trace.get_current_span().get_span_context()
    return {"trace_id": f"{context.trace_id:032x}"} if context.is_valid else {}


def log_config(level: str, style: str) -> dict[str, Any]:
    """A configuration for :func:`logging.config.dictConfig` that covers the service and its server."""
    formatter = "toolcrib.surfaces.logs.JsonLines" if style == "json" else "toolcrib.surfaces.logs.PlainLines"
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"lines": {"()": formatter}},
        "handlers": {"lines": {"class": "logging.StreamHandler", "formatter": "lines", "stream": "ext://sys.stderr"}},
        "root": {"level": "WARNING", "handlers": ["lines"]},
        "loggers": {
            "toolcrib": {"level": level.upper()},
            "_granian": {"level": "WARNING"},
            "python_multipart": {"level": "ERROR"},  # what is wrong with an upload is in its answer
        },
    }

"""Calls in a log, with the secrets taken out.

Use it to see what an agent does. Outermost, so that what other layers refuse is in the log too.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.calling.layers import Layer, has_failed, plain
from toolcrib.core.context import ToolContext
from toolcrib.core.errors import ToolcribError
from toolcrib.core.json import MASK, as_json
from toolcrib.core.masking import REDACTION, Redaction, without_marked
from toolcrib.core.tool import Runner, Tool

Redact = Callable[[Any], Any]


def redact(
    *names: str, patterns: tuple[str, ...] | list[str] = (), pointers: tuple[str, ...] | list[str] = ()
) -> Redaction:
    """What takes secrets out of a value: see :class:`Redaction`. ``names`` are masked beside those that always are."""
    return Redaction((*REDACTION.names, *names), patterns, pointers)


def logged(
    logger: logging.Logger | str = "toolcrib.calls",
    *,
    arguments: bool = True,
    results: bool = True,
    redact: Redact = REDACTION,
    level: int = logging.INFO,
    longest: int = 2000,
    clock: Callable[[], float] = time.perf_counter,
) -> Layer:
    """A layer that writes one line for each call: at ``level``, and as a warning if it failed.

    ``arguments``, ``results`` and the texts of errors pass through ``redact`` first, and are cut to ``longest``
    characters. Programs find the same in the record's ``tool_call``.
    """
    shows_arguments = arguments
    log = logging.getLogger(logger) if isinstance(logger, str) else logger
    if not hasattr(log, "isEnabledFor"):
        raise TypeError(f"logger is a logging.Logger or the name of one, not {logger!r:.60}")

    def shown(value: Any, schema: Mapping[str, Any] | None = None) -> str:
        try:
            text = json.dumps(as_json(redact(without_marked(schema, value))), ensure_ascii=False)
        except Exception:  # a redaction that fails must not show what it should have hidden
            return MASK
        return text if len(text) <= longest else f"{text[:longest]}... ({len(text):,} characters)"

    def layer(run: Runner) -> Runner:
        async def told(tool: Tool, arguments: dict[str, Any], context: ToolContext) -> Any:
            if not log.isEnabledFor(max(level, logging.WARNING)):
                return await run(tool, arguments, context)
            facts: dict[str, Any] = {"tool": tool.spec.name, "outcome": "broke", "principal": context.principal}
            if shows_arguments:
                facts["arguments"] = shown(arguments, tool.spec.parameters)
            started = clock()
            try:
                value = await run(tool, arguments, context)
                if has_failed(value):
                    facts |= {"outcome": value.error_code or "failed", "error": shown(value.error)}
                else:
                    facts["outcome"] = "done"
                    if results:
                        facts["result"] = shown(plain(value), tool.spec.returns)
                return value
            except ToolcribError as error:
                facts |= {"outcome": error.code, "error": shown(error.message)}
                raise
            except asyncio.CancelledError:
                facts["outcome"] = "cancelled"
                raise
            finally:
                facts["seconds"] = clock() - started
                _write(log, level, facts)

        return told

    return layer


def _write(log: logging.Logger, level: int, facts: dict[str, Any]) -> None:
    line = f"call of {facts['tool']!r}: {facts['outcome']!s:.200} after {facts['seconds'] * 1000:.3g} ms"
    for name in ("arguments", "result", "error"):
        if name in facts:
            line += f"; {name} {facts[name]}"
    if not line.isprintable():  # whatever a tool says, it begins no new line and commands no terminal
        line = "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in line)
    succeeded = facts["outcome"] in ("done", "cancelled")
    log.log(level if succeeded else max(level, logging.WARNING), "%s", line, extra={"tool_call": facts})

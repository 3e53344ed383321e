"""What a registry has handed over, kept for the next request: the definitions of an agent change seldom."""

from __future__ import annotations

from typing import Any

from toolcrib.core.tool import Tool
from toolcrib.formats import Deferring, Handover, HandoverOptions, handed_over
from toolcrib.formats.kept import KeptHandover

_MOST_KEPT = 8
"""Formats and options of one registry."""


class Handovers:
    """The last of each format and options, which holds as long as the tools are the very same, in the same order."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[list[Tool], KeptHandover]] = {}

    def handover(self, tools: list[Tool], format: str, options: HandoverOptions) -> Handover:
        deferring = Deferring.of(options).answered(tool.spec for tool in tools)
        key = (format, bool(options.get("strict")), bool(options.get("cache")), deferring)
        try:
            kept = self._kept.get(key)
        except TypeError:  # something that no option can be, and is told of
            kept = None
        if kept is not None and kept[0] == tools:
            return kept[1].given()
        answered: HandoverOptions = {**options, "defer": deferring.defer, "namespaces": deferring.namespaces}
        handed = handed_over([tool.spec for tool in tools], format, **answered)
        self._kept[key] = tools, KeptHandover(handed)
        for oldest in list(self._kept)[:-_MOST_KEPT]:
            self._kept.pop(oldest, None)
        return handed

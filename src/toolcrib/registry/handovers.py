"""What a registry has handed over, kept for the next request: the definitions of an agent change seldom."""

from __future__ import annotations

from typing import Any

from toolcrib.core.tool import Tool
from toolcrib.formats import Handover, HandoverOptions, handed_over
from toolcrib.formats.kept import KeptHandover

_MOST_KEPT = 8
"""Formats and options of one registry."""
_PLAIN = (str, bool, int, float, type(None))


class Handovers:
    """The last of each format and options, which holds as long as the tools are the very same, in the same order."""

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[Any, tuple[list[Tool], KeptHandover]] = {}

    def handover(self, tools: list[Tool], format: str, options: HandoverOptions) -> Handover:
        key = _key(format, options)
        if key is None:
            return handed_over([tool.spec for tool in tools], format, **options)
        kept = self._kept.get(key)
        if kept is not None and kept[0] == tools:
            return kept[1].given()
        handed = handed_over([tool.spec for tool in tools], format, **options)
        self._kept[key] = tools, KeptHandover(handed)
        for oldest in list(self._kept)[:-_MOST_KEPT]:
            self._kept.pop(oldest, None)
        return handed


def _key(format: str, options: HandoverOptions) -> Any:
    """Tells handovers apart; None if a function decides over it, whose mind may change."""
    key: list[Any] = [format]
    for option, value in sorted(options.items()):
        values = tuple(value) if isinstance(value, list | tuple | set | frozenset) else (value,)
        if not all(isinstance(each, _PLAIN) for each in values):
            return None
        key.append((option, type(value), values))
    return tuple(key)

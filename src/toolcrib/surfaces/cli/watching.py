"""What a tool tells while it runs, on the last line of the terminal."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolcrib.surfaces.cli.output import printable

if TYPE_CHECKING:
    from toolcrib.core.progress import Listener, ToolEvent

_FROM_THE_START = "\r\x1b[K"
"""Back to the beginning of the line, which is empty then."""


@contextmanager
def watching() -> Iterator[Listener | None]:
    """Hears a call, and shows how far it is until it ends; None where nobody watches, such as in a script."""
    if not sys.stderr.isatty():
        yield None
        return
    line = _Line()
    try:
        yield line.show
    finally:
        line.clear()


class _Line:
    def __init__(self) -> None:
        self._items = 0
        self._progress = ""
        self._is_written = False

    def show(self, event: ToolEvent) -> None:
        if event.kind == "item":
            self._items += 1
        else:
            far = "" if event.fraction is None else f"{event.fraction:4.0%} "
            self._progress = far + printable(event.message)
        items = f"  {self._items} item{'s' * (self._items != 1)}" if self._items else ""
        width = shutil.get_terminal_size().columns - 1
        self._write((self._progress + items)[:width])

    def clear(self) -> None:
        if self._is_written:
            self._write("")

    def _write(self, text: str) -> None:
        self._is_written = True
        sys.stderr.write(_FROM_THE_START + text)
        sys.stderr.flush()

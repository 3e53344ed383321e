"""What a command prints: JSON for programs, a table for people."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, redirect_stdout
from typing import Any

from toolcrib.core.json import as_json


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """``value`` as JSON, readable Unicode if stdout can take it."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    print(json.dumps(as_json(value), indent=indent, ensure_ascii=encoding != "utf8"))


def prints_aside() -> AbstractContextManager[object]:
    """Within it what tools print goes to stderr: stdout is for the answer, which a program may read."""
    return redirect_stdout(sys.stderr)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, empty: str = "nothing found") -> None:
    """A table as wide as the terminal; the last column takes what room is left."""
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = list(rows)
    if not rows:
        print(empty)
        return
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="ellipsis", no_wrap=column != columns[-1])
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(highlight=False).print(table)


def print_fields(fields: Iterable[tuple[str, object]]) -> None:
    """Names and values, one below the other."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in fields:
        grid.add_row(name, Text(_lines(value)))
    Console(highlight=False).print(grid)


def complain(program: str, message: str) -> None:
    """One sentence on stderr, whatever the message held."""
    print(f"{program}: {' '.join(printable(message).split())}", file=sys.stderr)


def printable(value: object) -> str:
    """Text on one line and without control characters: what others wrote into a tool must not steer the terminal."""
    text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
    return "".join(map(_shown, text))


def _shown(letter: str) -> str:
    if letter.isprintable():
        return letter
    return " " if letter.isspace() else "\N{REPLACEMENT CHARACTER}"


def _lines(value: object) -> str:
    if isinstance(value, dict) or (isinstance(value, list | tuple) and any(isinstance(item, dict) for item in value)):
        value = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    lines = value.splitlines() if isinstance(value, str) else [value]
    return "\n".join(map(printable, lines))

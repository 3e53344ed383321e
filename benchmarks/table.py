"""Prints results as a Markdown table, so that what a run prints can go into docs/performance.md as it is."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    widths = [max(len(str(row[at])) for row in [header, *rows]) for at in range(len(header))]
    line = lambda cells: "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(cells, widths)) + " |"  # noqa: E731
    print(f"\n{title}\n")
    print(line(header))
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in rows:
        print(line(row))
    print(flush=True)

"""Prints results as a Markdown table, so that what a run prints can go into docs/performance.md as it is."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    widths = [max(len(str(row[at])) for row in [header, *rows]) for at in range(len(header))]
    print(f"\n{title}\n")
    print(_line(header, widths))
    print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
    for row in rows:
        print(_line(row, widths))
    print(flush=True)


def _line(cells: Sequence[object], widths: Sequence[int]) -> str:
    return "| " + " | ".join(str(cell).ljust(width) for cell, width in zip(cells, widths, strict=True)) + " |"

"""Reading what the user names on the command line. A complaint says which file."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.json import read_json

_T = TypeVar("_T")
STDIN = "-"


def read_text(file: str) -> str:
    """The text of a file, or of standard input for ``-``."""
    try:
        return sys.stdin.read() if file == STDIN else Path(file).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise ToolValidationError(
            f"{file}: the file is not UTF-8 text ({error.reason} at byte {error.start})"
        ) from None
    except OSError as error:
        raise ToolValidationError(f"{file}: cannot be read: {(error.strerror or str(error)).lower()}") from None


def read_json_file(file: str) -> Any:
    """The JSON of a file, or one value a line (JSON Lines)."""
    text = read_text(file)
    try:
        return read_json(text)
    except ValueError as error:
        lines = [line for line in text.splitlines() if line.strip()]
        if len(lines) > 1 and lines[0].lstrip().startswith("{") and lines[0].rstrip().endswith("}"):
            return [_line(file, number, line) for number, line in enumerate(lines, 1)]
        raise ToolValidationError(f"{file}: the file is not JSON: {error}") from None


def _line(file: str, number: int, line: str) -> Any:
    try:
        return read_json(line)
    except ValueError as error:
        raise ToolValidationError(f"{file}: line {number} is not JSON: {error}") from None


def each_tool(file: str, data: Any, parse: Callable[[Any], _T]) -> list[_T]:
    """The tools of a file that holds one, or a list of them."""
    items = data if isinstance(data, list) else [data]
    tools = []
    for number, item in enumerate(items, 1):
        with naming(f"{file}: entry {number}" if isinstance(data, list) else file):
            tools.append(parse(item))
    return tools


@contextmanager
def naming(place: str) -> Iterator[None]:
    """Say where it happened before the words of a ToolValidationError."""
    try:
        yield
    except ToolValidationError as error:
        raise ToolValidationError(f"{place}: {error.message}") from error

"""What a docstring says of a function: a description, and one for each parameter and the result."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import docstring_parser

_NUMPY = re.compile(
    r"^[ \t]*(Parameters|Returns|Other Parameters|Yields|Raises|Examples)[ \t]*\n[ \t]*-{3,}", re.MULTILINE
)
_GOOGLE = re.compile(r"^[ \t]*(Args|Arguments|Parameters|Params|Returns|Yields|Raises|Examples?):[ \t]*$", re.MULTILINE)
_SPHINX = re.compile(r"^[ \t]*:(param|parameter|arg|argument|key|keyword|returns?|raises?|type)\b", re.MULTILINE)

_Parse = Callable[[str], "docstring_parser.Docstring"]


@dataclass(frozen=True, slots=True)
class Docstring:
    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str | None) -> Docstring:
    """Reads Google, NumPy and Sphinx style; anything else is all description."""
    if not text:
        return Docstring()
    if ":" in text or "---" in text:
        for marks, parse in _styles():
            if marks.search(text):
                return _parsed(text, parse)
    return Docstring(inspect.cleandoc(text))


@cache
def _styles() -> tuple[tuple[re.Pattern[str], _Parse], ...]:
    from docstring_parser import google, numpydoc, rest

    return (_NUMPY, numpydoc.NumpydocParser().parse), (_GOOGLE, google.GoogleParser().parse), (_SPHINX, rest.parse)


def _parsed(text: str, parse: _Parse) -> Docstring:
    from docstring_parser import ParseError

    try:
        doc = parse(text)
    except ParseError:
        return Docstring(inspect.cleandoc(text))
    description = "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)
    return Docstring(
        description,
        {param.arg_name: _one_line(param.description) for param in doc.params if param.description},
        _one_line(doc.returns.description) if doc.returns else "",
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())

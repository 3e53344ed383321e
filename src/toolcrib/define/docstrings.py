"""What a docstring says of a function: a description, and one for each parameter and the result."""

from __future__ import annotations

import inspect
import re
from dataclasses import dataclass, field

_GOOGLE = re.compile(r"^\s*(Args|Arguments|Parameters|Params|Returns|Yields|Raises|Example|Examples):\s*$", re.MULTILINE)
_NUMPY = re.compile(r"^\s*(Parameters|Returns|Other Parameters|Yields|Raises|Examples)\s*\n\s*-{3,}\s*$", re.MULTILINE)
_SPHINX = re.compile(r"^\s*:(param|parameter|arg|argument|key|keyword|returns?|raises?|type)\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Docstring:
    description: str = ""
    parameters: dict[str, str] = field(default_factory=dict)
    returns: str = ""


def read_docstring(text: str | None) -> Docstring:
    """Reads Google, NumPy and Sphinx style; anything else is all description."""
    if not text:
        return Docstring()
    text = inspect.cleandoc(text)
    for marks, style in ((_NUMPY, "NUMPYDOC"), (_GOOGLE, "GOOGLE"), (_SPHINX, "REST")):
        if marks.search(text):
            return _parsed(text, style)
    return Docstring(text)


def _parsed(text: str, style: str) -> Docstring:
    from docstring_parser import DocstringStyle, ParseError, parse

    try:
        doc = parse(text, style=DocstringStyle[style])
    except ParseError:
        return Docstring(text)
    description = "\n\n".join(part for part in (doc.short_description, doc.long_description) if part)
    return Docstring(
        description,
        {param.arg_name: _one_line(param.description) for param in doc.params if param.description},
        _one_line(doc.returns.description) if doc.returns else "",
    )


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())

"""Python bindings: ``package.module:attribute`` of a tool or a tool class.

A catalogue can hold specs from anywhere, and importing a module runs it. So a reference is followed only if the
operator lists it word for word, and only to a tool: whoever wrote a function for other callers did not mean it for
strangers.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterable

from toolcrib.adapters.runners.bound import described_tool
from toolcrib.core.errors import DeniedError, SettingsError, ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define import as_tool

_WORD = r"[A-Za-z_]\w*"
_REFERENCE = re.compile(rf"({_WORD}(?:\.{_WORD})*):({_WORD})", re.ASCII)


def listed_references(texts: Iterable[str]) -> frozenset[str]:
    """The references that an operator lists; SettingsError for one that is none, such as a pattern or a module."""
    listed = frozenset(texts)
    wrong = next((text for text in sorted(listed) if not _REFERENCE.fullmatch(text)), None)
    if wrong is not None:
        raise SettingsError(
            f"python_tools lists {wrong!r}; write each tool word for word, as 'package.module:attribute'"
        )
    return listed


def python_tool(spec: ToolSpec, listed: frozenset[str]) -> Tool:
    """The tool that ``spec.binding.python`` names, under the catalogue's description of it."""
    reference = spec.binding.python
    if reference not in listed:
        shipped = reference.startswith("toolcrib.")
        way_out = "bind it to the name of the tool, such as 'goto'" if shipped else "list it in TOOLCRIB_PYTHON_TOOLS"
        raise DeniedError(f"{spec.name!r} may not run {reference!r}; {way_out}, word for word", rule="python_tools")
    module_name, _, attribute = reference.partition(":")
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ToolValidationError(f"the module {module_name!r} of {spec.name!r} cannot be imported: {error}") from error
    found = getattr(module, attribute, None)
    if found is None:
        raise ToolValidationError(f"the module {module_name!r} of {spec.name!r} defines no tool {attribute!r}")
    if inspect.isroutine(found):
        raise ToolValidationError(f"{reference!r} of {spec.name!r} is a plain function; put @tool on it")
    return described_tool(as_tool(found), spec, isolate=True)

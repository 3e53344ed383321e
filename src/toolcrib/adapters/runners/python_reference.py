"""Python bindings: ``package.module:attribute`` of a tool, a function or a tool class.

A catalogue can hold specs from anywhere, and importing a module runs it. So only modules that the settings list are
imported, and only what was written in them counts: a module that is allowed does not lend out what it imports.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Sequence
from typing import Any

from toolcrib.adapters.runners.bound import described_tool
from toolcrib.core.errors import DeniedError, ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool

_REFERENCE = re.compile(r"([A-Za-z]\w*(?:\.[A-Za-z]\w*)*):([A-Za-z]\w*)")


def python_tool(spec: ToolSpec, allowed: Sequence[str]) -> Tool:
    """The code that ``spec.binding.python`` names, under the catalogue's description of it."""
    match = _REFERENCE.fullmatch(spec.binding.python)
    if match is None:
        raise ToolValidationError(
            f"the binding {spec.binding.python!r} of {spec.name!r} is not 'package.module:attribute'"
        )
    module_name, attribute = match.groups()
    if not _is_below(module_name, allowed):
        raise DeniedError(
            f"the module {module_name!r} of {spec.name!r} may not be imported; list it in TOOLCRIB_PYTHON_MODULES",
            rule="python_modules",
        )
    try:
        module = importlib.import_module(module_name)
    except ImportError as error:
        raise ToolValidationError(f"the module {module_name!r} of {spec.name!r} cannot be imported: {error}") from error
    found = getattr(module, attribute, None)
    if found is None or not _is_its_own(found, allowed):
        raise ToolValidationError(f"the module {module_name!r} of {spec.name!r} defines no tool {attribute!r}")
    return described_tool(found, spec, isolate=True)


def _is_below(module: str, allowed: Sequence[str]) -> bool:
    return any(root in ("*", module) or module.startswith(f"{root}.") for root in allowed)


def _is_its_own(found: Any, allowed: Sequence[str]) -> bool:
    code = found.function if isinstance(found, Tool) else found
    owner = inspect.unwrap(code) if callable(code) else type(code)
    home = getattr(owner, "__module__", None) or type(code).__module__
    return isinstance(home, str) and _is_below(home, allowed)

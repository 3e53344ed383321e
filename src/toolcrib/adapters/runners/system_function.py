"""Tools that are functions of the host process, found by their id."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from toolcrib.adapters.runners.bound import described_tool
from toolcrib.core.errors import MissingConfigError, did_you_mean
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool
from toolcrib.define import as_tool, make_tool


def function_tool(spec: ToolSpec, functions: Mapping[str, Any]) -> Tool:
    """The function (or tool) that the host registered under the spec's ``system_function_rpc_id``, as that spec says.

    It runs as its own definition says, inline or in a thread: it is the host's code.
    """
    wanted = spec.binding.system_function_rpc_id
    if wanted not in functions:
        raise MissingConfigError(
            f"{spec.name!r} needs the system function {wanted!r}, which this process has not registered"
            f"{did_you_mean(wanted, functions)}"
        )
    found = functions[wanted]
    if inspect.isroutine(found):  # the catalogue describes it, so it need not describe itself
        found = make_tool(found, name=spec.name, description=spec.description or spec.name)
    return described_tool(as_tool(found), spec, isolate=False)

"""Tools that are functions of the host process, found by their id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from toolcrib.adapters.runners.bound import described_tool
from toolcrib.core.errors import MissingConfigError, did_you_mean
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Tool


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
    return described_tool(functions[wanted], spec, isolate=False)

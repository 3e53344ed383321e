"""A catalogued spec with a runner: a tool whose code is somewhere else."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from toolcrib.core.errors import ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner, Tool

Credentials = Callable[[], Mapping[str, Any]]
"""Opens a tool's credentials at the moment of a call; they are never kept."""


def no_credentials() -> Mapping[str, Any]:
    return {}


def bound_tool(spec: ToolSpec, runner: Runner) -> Tool:
    """The tool that ``runner`` runs. There is no function here to be called directly."""

    def elsewhere(*_: Any, **__: Any) -> Any:
        raise ToolValidationError(f"the code of {spec.name!r} is not in this process; use execute()")

    return Tool(spec, elsewhere, runner)

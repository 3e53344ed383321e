"""The three ways to run a Python function as a tool, each with a deadline. If it was not kept the result says so.

==========  =======================  ==========================================================
isolation   for                      at the deadline
==========  =======================  ==========================================================
inline      async functions          cancelled
thread      plain functions          told ``still_running``; past a cap the tool refuses calls
process     anything untrusted       killed, with everything it started, and replaced
==========  =======================  ==========================================================
"""

from __future__ import annotations

from toolcrib.calling.inline import run_async_inline, run_inline
from toolcrib.calling.thread import run_in_thread
from toolcrib.core.errors import ToolValidationError
from toolcrib.core.spec import ToolSpec
from toolcrib.core.tool import Runner

__all__ = ["default_isolation", "run_async_inline", "run_in_thread", "run_inline", "runner_for"]


def default_isolation(is_async: bool) -> str:
    return "inline" if is_async else "thread"


def runner_for(spec: ToolSpec, is_async: bool) -> Runner:
    """The runner that a spec's ``isolation`` asks for."""
    isolation = spec.isolation or default_isolation(is_async)
    if isolation == "process":
        from toolcrib.calling.process import run_in_process  # slow to import, and most programs never need it

        return run_in_process
    if isolation == "thread":
        return run_in_thread
    if is_async:
        return run_async_inline
    if spec.timeout_seconds is not None:
        raise ToolValidationError(
            f"tool {spec.name!r} is a plain function that runs 'inline', where nobody can stop it at its deadline; "
            "make it async, drop timeout_seconds, or choose isolation 'thread' or 'process'"
        )
    return run_inline

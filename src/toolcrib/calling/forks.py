"""A forked child has the memory of its parent, but neither its threads nor its children."""

from __future__ import annotations

import os
from collections.abc import Callable


def in_forked_child(forget: Callable[[], None]) -> None:
    """Call ``forget`` in every process that is forked from this one."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=forget)

"""The live tools of a process: keep, find, hand over, run."""

from toolcrib.registry.registry import ToolRegistry

__all__ = ["ToolRegistry"]

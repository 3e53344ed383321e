"""Live tools to and from other people's agent frameworks: one file each, its package imported when it is asked for."""

from toolcrib.frameworks.langchain import to_structured_tool

__all__ = ["to_structured_tool"]

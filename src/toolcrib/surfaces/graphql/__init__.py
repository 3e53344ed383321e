"""The GraphQL door: ``tools(query: JSON)`` and ``tool(tool_id)``, with the names of ``ToolEntry``."""

from toolcrib.surfaces.graphql.door import ENDPOINTS, Graphs

__all__ = ["ENDPOINTS", "Graphs"]

"""``tools(query: JSON)`` and ``tool(tool_id)``, with the names of ``ToolEntry``."""

from toolcrib.surfaces.graphql.execution import GraphQL, Reader

__all__ = ["GraphQL", "Reader"]

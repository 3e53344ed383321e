"""The Model Context Protocol's door: the same tools, run along the same path. Only this package knows the SDK."""

from toolcrib.surfaces.mcp.server import HttpDoor, build_server, serve_stdio
from toolcrib.surfaces.mcp.toolbox import Toolbox, large_results

__all__ = ["HttpDoor", "Toolbox", "build_server", "large_results", "serve_stdio"]

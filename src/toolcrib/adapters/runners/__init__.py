"""What makes a catalogued binding runnable: an HTTP service, a host's function, an uploaded bundle, an MCP server."""

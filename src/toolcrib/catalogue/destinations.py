"""Where a tool's credentials go: the code or the host that its binding leads to, however that is written.

Credentials are sealed with what this says. So a change of this module closes what is sealed already: a new kind of
binding is a new line, an old one stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from toolcrib.core.addresses import WEB_PORTS, check_service_url, is_url
from toolcrib.core.spec import Binding
from toolcrib.formats.bundle import bundle_digest

_WORDS = {
    "python": "the tool",
    "system_function_rpc_id": "the system function",
    "service_url": "the service",
    "mcp": "the MCP server",
    "source_code_link": "the code",
    "command": "the command",
}


@dataclass(frozen=True, slots=True)
class Destination:
    """Two are equal if what is sent to the one goes to the other. ``way`` is a field of the binding, or empty."""

    way: str
    target: str

    def __str__(self) -> str:
        return f"{_WORDS[self.way]} {self.target!r:.200}" if self.way else "a tool that says of no way to run"


def destination_of(binding: Binding) -> Destination:
    """Where the credentials of a tool with that binding go."""
    way = binding.nearest
    match way:
        case "python":
            return Destination(way, binding.shipped or binding.python)
        case "service_url":
            return Destination(way, _address(binding.service_url))
        case "mcp":
            server = binding.mcp_server
            return Destination(way, _address(server) if is_url(server) else server)
        case "source_code_link":
            return Destination(way, bundle_digest(binding.source_code_link) or binding.source_code_link)
    return Destination(way, getattr(binding, way) if way else "")


def kept_destination(document: Mapping[str, Any]) -> Destination:
    """Where those of a stored document go, which may be older than the rules of today."""
    return destination_of(Binding.model_construct(**document["binding"]))


def _address(url: str) -> str:
    """What is requested, with the query: it may say to whom the host hands a request on."""
    try:
        parts = check_service_url(url)
    except ValueError:
        return url  # it is never called
    return parts._replace(netloc=parts.netloc.removesuffix(f":{WEB_PORTS[parts.scheme]}")).geturl()
